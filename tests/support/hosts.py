"""A tool host in memory, frame by frame: for what a good host does, and for what it does not.

Every message of the server that it hears is checked: by the schema of the protocol, that what it answers was asked, and
that the server keeps its promises about each dispatch.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import trio
from jsonschema_rs import Draft202012Validator
from trio.testing import wait_all_tasks_blocked

from probe.wire.toolhost import MESSAGES, SUBPROTOCOL, RegisterResult

from .legacy import Legacy, RpcError
from .modern import Modern
from .probe import Probe, running

SECRET = "a secret of the operator".replace(" ", "-")
INSTANCE = "instance-of-a-test-host"
ECHO: dict[str, Any] = {
    "name": "echo",
    "description": "Gives back what it gets.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string", "maxLength": 20}}},
    "outputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}
PLAIN: dict[str, Any] = {"name": "plain", "inputSchema": {"type": "object"}}
_SCHEMA = Path(__file__).parents[2] / "docs" / "tool-hosts.schema.json"
_ERRORS = {-32700, -32600, -32601, -32602, 10, 11, 12}
"""The codes that docs/tool-hosts.md has for the server's errors, without that of a message nobody can answer."""


class Host:
    """One connection. `heard` has every message of the server in order; `closed` is the code and reason it closed with.

    While `reads` is not set, the host takes nothing from its socket.
    """

    def __init__(self, instance: str = INSTANCE) -> None:
        self.to_server, self.for_server = trio.open_memory_channel[dict[str, Any]](1000)
        self.from_server, self.for_host = trio.open_memory_channel[dict[str, Any]](1000)
        self.heard: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self.ids = count(1)
        self.instance = instance
        self.reads = trio.Event()
        self.reads.set()
        self._asked: dict[Any, str] = {}
        self._dispatches: dict[str, str] = {}

    async def say(self, value: Any) -> None:
        """Send any JSON value as a text frame."""
        await self.say_text(json.dumps(value))

    async def say_text(self, text: str) -> None:
        """Send a text frame as it is."""
        await self.to_server.send({"type": "websocket.receive", "text": text, "bytes": None})

    async def hear(self) -> dict[str, Any]:
        """The next message of the server. Raises `EOFError` when it has closed."""
        event = await self.for_host.receive()
        if event["type"] == "websocket.close":
            self.closed = (event["code"], event["reason"])
            raise EOFError(self.closed)
        message: dict[str, Any] = json.loads(event["text"])
        self.heard.append(self._check(message))
        return message

    async def hear_all(self) -> list[dict[str, Any]]:
        """Everything that the server says before nothing more can happen now; its close is in `closed`."""
        heard = []
        await wait_all_tasks_blocked()
        while self.for_host.statistics().current_buffer_used and self.closed is None:
            try:
                heard.append(await self.hear())
            except EOFError:
                break
            await wait_all_tasks_blocked()
        return heard

    async def hear_close(self) -> tuple[int, str]:
        """The server's close, which must come next."""
        try:
            raise AssertionError(await self.hear())
        except EOFError:
            assert self.closed is not None
            return self.closed

    def _check(self, message: dict[str, Any]) -> dict[str, Any]:
        if "method" in message:
            _conforms(message, message["method"])
            assert MESSAGES[message["method"]][0].model_validate(message["params"]).dump() == message["params"]
            self._follow(message)
        elif "result" in message:
            method = self._asked.pop(message["id"])
            _conforms(message, f"{method} result")
            model = RegisterResult if method in MESSAGES else None
            assert message["result"] == ({} if model is None else model.model_validate(message["result"]).dump())
        else:
            _conforms(message, "error")
            assert set(message["error"]) == {"code", "message"}, message
            assert message["error"]["code"] in _ERRORS, message
        return message

    def _follow(self, message: dict[str, Any]) -> None:
        """A dispatch begins once and is stopped once, if at all, and never before it began."""
        if message["method"] == "tool.dispatch":
            assert message["id"] not in self._dispatches, message
            self._dispatches[message["id"]] = "running"
        else:
            id = message["params"]["dispatch"]
            assert self._dispatches[id] == "running", message
            self._dispatches[id] = "cancelled"

    async def send(self, method: str, params: Any = None) -> int:
        """Send a request; its id."""
        id = next(self.ids)
        self._asked[id] = method
        await self.say({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        return id

    async def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and give back the whole answer; nothing else may come before it."""
        id = await self.send(method, params)
        answer = await self.hear()
        assert answer["id"] == id, answer
        return answer

    async def refused(self, method: str, params: Any = None) -> tuple[int, str]:
        """Send a request that is refused: the code and the message."""
        answer = await self.ask(method, params)
        return answer["error"]["code"], answer["error"]["message"]

    def registration(self, name: str = "demo", tools: Sequence[Mapping[str, Any]] = (ECHO, PLAIN)) -> dict[str, Any]:
        """The params of `host.register`."""
        return {"name": name, "instance": self.instance, "tools": list(tools)}

    async def register(self, name: str = "demo", tools: Sequence[Mapping[str, Any]] = (ECHO, PLAIN)) -> dict[str, Any]:
        """Register; returns the result."""
        answer = await self.ask("host.register", self.registration(name, tools))
        assert "result" in answer, answer
        return dict(answer["result"])

    async def update(self, *tools: Mapping[str, Any]) -> dict[str, Any]:
        """Have these tools from now on; returns the result."""
        answer = await self.ask("host.update", {"tools": list(tools)})
        assert "result" in answer, answer
        return dict(answer["result"])

    async def dispatched(self) -> tuple[str, dict[str, Any]]:
        """The next message, which is a `tool.dispatch`: its id and its params."""
        message = await self.hear()
        assert message["method"] == "tool.dispatch", message
        return message["id"], message["params"]

    async def cancelled(self) -> dict[str, Any]:
        """The next message, which is a `tool.cancel`: its params."""
        message = await self.hear()
        assert message["method"] == "tool.cancel", message
        return dict(message["params"])

    async def progress(self, dispatch: str, progress: Any, **more: Any) -> None:
        """Report."""
        params = {"dispatch": dispatch, "progress": progress, **more}
        await self.say({"jsonrpc": "2.0", "method": "tool.progress", "params": params})

    async def flood(self, dispatch: str, count: int) -> None:
        """Report every number from 0 of so many, as fast as the server takes them."""
        text = '{"jsonrpc":"2.0","method":"tool.progress","params":{"dispatch":"%s","progress":%d,"total":%d}}'
        for number in range(count):
            if number % 1000 == 0:
                await wait_all_tasks_blocked()
            said = text % (dispatch, number, count)
            self.to_server.send_nowait({"type": "websocket.receive", "text": said, "bytes": None})

    async def answer(self, dispatch: str, **result: Any) -> None:
        """Answer with a result."""
        await self.say({"jsonrpc": "2.0", "id": dispatch, "result": result})

    async def fail(self, dispatch: str, code: int, message: str, data: Any = None) -> None:
        """Answer with an error."""
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        await self.say({"jsonrpc": "2.0", "id": dispatch, "error": error})

    async def go(self, code: int = 1006) -> None:
        """Be gone."""
        await self.to_server.send({"type": "websocket.disconnect", "code": code})


@cache
def _validator(definition: str) -> Draft202012Validator:
    whole = json.loads(_SCHEMA.read_text())
    assert definition in whole["$defs"], definition
    return Draft202012Validator({"$ref": f"#/$defs/{quote(definition)}", "$defs": whole["$defs"]})


def _conforms(message: dict[str, Any], definition: str) -> None:
    """A message is what the schema says, as one from the server, and says nothing beside that."""
    _validator(definition).validate(message)
    _validator("from server").validate(message)
    kinds = [{"method", "params"}, {"id", "method", "params"}, {"id", "result"}, {"id", "error"}]
    assert set(message) - {"jsonrpc"} in kinds, message


def scope(secret: str | None = SECRET, subprotocols: Sequence[str] = (SUBPROTOCOL,), **headers: str) -> dict[str, Any]:
    """The ASGI scope of the upgrade request; `headers` replace the usual ones."""
    given = {"host": "127.0.0.1:8000", **({} if secret is None else {"authorization": f"Bearer {secret}"}), **headers}
    return {
        "type": "websocket",
        "scheme": "ws",
        "http_version": "1.1",
        "path": "/toolhost",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50000),
        "subprotocols": [*subprotocols],
    }


@asynccontextmanager
async def connected(app: Any, instance: str = INSTANCE) -> AsyncIterator[Host]:
    """A connection; the block's end is the host's, and waits until the server is done with it."""
    host, accepted = Host(instance), trio.Event()
    await host.to_server.send({"type": "websocket.connect"})

    async def send(event: dict[str, Any]) -> None:
        await host.reads.wait()
        if event["type"] == "websocket.accept":
            assert event["subprotocol"] == SUBPROTOCOL
            accepted.set()
            return
        if event["type"] == "websocket.close":
            await host.to_server.send({"type": "websocket.disconnect", "code": event["code"]})
        await host.from_server.send(event)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(app, scope(), host.for_server.receive, send)
        await accepted.wait()
        try:
            yield host
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                host.reads.set()
                await host.go()


async def handshake(app: Any, asgi_scope: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """Offer an upgrade that is refused: the status, the headers and the problem."""
    events: list[Any] = []
    given = iter([{"type": "websocket.connect"}])

    async def receive() -> dict[str, Any]:
        return next(given, {"type": "websocket.disconnect", "code": 1006})

    async def send(event: Any) -> None:
        events.append(event)

    await app(asgi_scope, receive, send)
    assert len(events) == 2, events
    head, body = events
    assert (head["type"], body["type"]) == ("websocket.http.response.start", "websocket.http.response.body")
    headers = {name.decode(): value.decode() for name, value in head["headers"]}
    return head["status"], headers, json.loads(body["body"])


@asynccontextmanager
async def hosting(**settings: Any) -> AsyncIterator[tuple[Probe, Host]]:
    """A probe with one tool host, `demo`, which has `echo` and `plain`."""
    async with running(toolhost_secret=SECRET, **settings) as probe, connected(probe.app) as host:
        await host.register()
        yield probe, host


class Call:
    """A tool call as its client has it: `progress` of its notifications, `response` once there is one.

    `over` is set when the response ends, whether or not it held an answer. `leave` hangs up.
    """

    def __init__(self, client: Legacy | Modern, request: dict[str, Any]) -> None:
        self.id = request["id"]
        self.progress: list[dict[str, Any]] = []
        self.response: dict[str, Any] | None = None
        self.over = trio.Event()
        self._client = client
        self._request = request
        self._gone = trio.Event()

    @property
    def result(self) -> dict[str, Any]:
        """The result; there must be one."""
        assert self.response is not None, "no answer"
        return dict(self.response["result"])

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error; there must be one."""
        assert self.response is not None, "no answer"
        return dict(self.response["error"])

    @property
    def failure(self) -> dict[str, Any]:
        """The facts of a tool error, which stand in a text block and in `_meta` alike."""
        result = self.result
        assert result["isError"] is True, result
        facts: dict[str, Any] = result["_meta"]["mcp-probe/error"]
        assert result["content"][0]["text"] == facts["message"]
        assert json.loads(result["content"][1]["text"]) == facts
        return facts

    def leave(self) -> None:
        """Close the connection."""
        self._gone.set()

    async def run(self) -> None:
        """Send the request and read its response to the end."""
        client = self._client
        gone: dict[str, Any] = {"gone": self._gone} if isinstance(client, Modern) else {}
        async with client.post(self._request, **gone) as answer:
            if answer.headers.get("content-type") == "application/json":
                self._hear(await answer.json())
            else:
                async for event in answer.events():
                    if event.data:
                        self._hear(event.message)
        self.over.set()

    def _hear(self, message: dict[str, Any]) -> None:
        assert self.response is None, "nothing follows the response"
        client = self._client
        if "method" in message or isinstance(client, Legacy):
            client.check(message)
        else:
            with suppress(RpcError):
                client.result(message, "tools/call", self.id)
        if "method" in message:
            assert message["method"] == "notifications/progress", message
            self.progress.append(message["params"])
        else:
            self.response = message


@asynccontextmanager
async def calling(
    client: Legacy | Modern, name: str, arguments: Mapping[str, Any] | None = None, *, token: Any = None
) -> AsyncIterator[Call]:
    """A tool call; the block's end waits for that of its response."""
    params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})}
    meta = {} if token is None else {"progressToken": token}
    if isinstance(client, Modern):
        request = client.request("tools/call", params, meta=meta)
    else:
        request = client.request("tools/call", {**params, **({"_meta": meta} if meta else {})})
    call = Call(client, request)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call.run)
        yield call
