"""A client of one era on any port: checks every message, answers what it is asked, and writes down what it heard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from ..support.evidence import check_modern
from ..support.modern import PREFIX, SUBSCRIPTION_ID, VERSION, WITH_TASKS
from ..support.schemas import schema
from .ports import Json, Port

Respond: TypeAlias = Callable[[str, Json], Json]
"""The answer (`result` or `error`) to a request of the server, by its method and params."""
Lanes: TypeAlias = dict[str, list[Any]]

BEGUN = "The task has begun."
CLIENT = {"name": "test-client", "version": "1.2.3"}
_PAGE = re.compile(r"https?://(127\.0\.0\.1|localhost):\d+\S*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def obliging(method: str, params: Json) -> Json:
    """Who sits at the client: sends each form as it is filled in, declines to open pages."""
    match method:
        case "elicitation/create" if "url" in params:
            return {"result": {"action": "decline"}}
        case "elicitation/create":
            fields = params["requestedSchema"]["properties"]
            return {"result": {"action": "accept", "content": {name: _filled(fields[name]) for name in fields}}}
        case "sampling/createMessage":
            said = {"type": "text", "text": "old pond"}
            return {"result": {"role": "assistant", "content": said, "model": "test", "stopReason": "endTurn"}}
        case "roots/list":
            return {"result": {"roots": [{"uri": "file:///home/ada", "name": "home"}]}}
    assert method == "ping", method
    return {"result": {}}


def _filled(field: Json) -> Any:
    given = {"string": "ada@example.com", "integer": 3, "number": 0.5, "boolean": True, "array": []}
    return field.get("default", field.get("enum", [given[field["type"]]])[0])


class Speaker:
    """What both eras share. `heard` has every message in order of arrival, `raw` the last one as it came."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.respond: Respond = obliging
        self.heard: list[Json] = []
        self.raw = b""
        self.ids = count(1)
        self._names: dict[str, str] = {}
        self._tokens: dict[Any, Any] = {}

    async def say(self, request: Json) -> Any:
        """Send a request; its id."""
        meta = request.get("params", {}).get("_meta", {})
        if isinstance(meta.get("progressToken"), str):
            self._tokens[meta["progressToken"]] = request["id"]
        await self.port.send(request)
        return request["id"]

    async def hear(self) -> Json:
        """The next message, checked; what the server asks is answered."""
        self.raw = await self.port.receive()
        assert b"\n" not in self.raw, "one line for a message"
        assert b"\r" not in self.raw, "and nothing at its end"
        message: Json = json.loads(self.raw)
        self.check(message)
        self.heard.append(message)
        if "method" in message and "id" in message:
            answer = self.respond(message["method"], message.get("params", {}))
            await self.port.send({"jsonrpc": "2.0", "id": message["id"], **answer})
        return message

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The first message that is wanted, among those not heard yet."""
        while not wanted(message := await self.hear()):
            pass
        return message

    async def response(self, id: Any) -> Json:
        """The response to a request: the last message that belongs to it."""
        return await self.until(lambda message: "method" not in message and _same(message.get("id"), id))

    async def told(self, method: str, **params: Any) -> Json:
        """The first notification of a method that has these params, also among those that were heard before."""

        def wanted(message: Json) -> bool:
            said = message.get("params", {})
            return message.get("method") == method and all(said.get(key) == params[key] for key in params)

        return next(filter(wanted, self.heard), None) or await self.until(wanted)

    def check(self, message: Json) -> None:
        """Raise for a message that the revision does not define here."""
        raise NotImplementedError

    # -- what is written down

    def lanes(self, since: int) -> Lanes:
        """What was heard, without what differs from run to run: in order for each request, and for each kind of
        notification that belongs to none. Which of two comes first is not said by any transport.
        """
        lanes: Lanes = {}
        for message in self.heard[since:]:
            if not self._by_chance(message):
                lanes.setdefault(self._lane(message), []).append(self.plain(message))
        return lanes

    def _by_chance(self, message: Json) -> bool:
        """Whether it depends on time alone that this was heard: a subscription is told how its task stands when it
        arrives, which is at its beginning or already at its first step; and a clock ticks again before it is given up.
        """
        if message.get("method") == "notifications/resources/updated":
            return message is not self.heard[self.heard.index(message)]
        params = message.get("params", {})
        return SUBSCRIPTION_ID in params.get("_meta", {}) and params.get("statusMessage") == BEGUN

    def _lane(self, message: Json) -> str:
        if "method" not in message:
            return f"to {message.get('id')!r}"
        params = message.get("params", {})
        if "progressToken" in params:
            return f"to {self._tokens[params['progressToken']]!r}"
        subscription = params.get("_meta", {}).get(SUBSCRIPTION_ID)
        return str(message["method"]) if subscription is None else f"to {subscription!r}"

    def plain(self, value: Any, key: str = "") -> Any:
        """A value with names in place of ids, times and addresses."""
        match value:
            case dict():
                named = "method" in value and "id" in value
                return {name: "question" if named and name == "id" else self.plain(value[name], name) for name in value}
            case list():
                return [self.plain(item) for item in value]
            case str() if key in ("taskId", "elicitationId", "requestState"):
                return self._names.setdefault(value, f"{key} {len(self._names) + 1}")
            case str():
                for id, name in self._names.items():
                    value = value.replace(id, name)
                return _TIME.sub("time", _PAGE.sub("page", value))
        return value


class Legacy(Speaker):
    """A client with a session."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.revision = "2025-11-25"
        self._asked: dict[Any, tuple[str, bool]] = {}

    async def initialize(self, revision: str, capabilities: Json) -> None:
        """The handshake."""
        params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": CLIENT}
        self.revision = revision
        answer = await self.ask("initialize", params)
        assert answer["result"]["protocolVersion"] == revision
        await self.notify("notifications/initialized")

    def request(self, method: str, params: Json | None = None, *, token: Any = None, **more: Any) -> Json:
        """A request; with `token`, it has a progress token."""
        id = more.get("id", next(self.ids))
        said = {**(params or {}), **({} if token is None else {"_meta": {"progressToken": token}})}
        self._asked[id] = method, method == "tools/call" and "task" in said
        return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": said} if said else {})}

    async def ask(self, method: str, params: Json | None = None, **more: Any) -> Json:
        return await self.response(await self.say(self.request(method, params, **more)))

    async def tool(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        """Call a tool and wait for the response."""
        params = {"name": name, "arguments": arguments or {}}
        task = more.pop("task", None)
        return await self.ask("tools/call", params if task is None else {**params, "task": task}, **more)

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self.port.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    async def cancel(self, id: Any) -> None:
        await self.notify("notifications/cancelled", {"requestId": id})

    def check(self, message: Json) -> None:
        method, task = self._asked.get(message.get("id"), (None, False))
        # -32601 and its like answer what the revision does not have
        named = None if "method" in message or "error" in message else method
        schema(self.revision).check_message(message, method=named, task=task)


class Modern(Speaker):
    """A client that says everything in each request."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._asked: dict[Any, Json] = {}

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        token: Any = None,
        meta: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] = WITH_TASKS,
        **more: Any,
    ) -> Json:
        """A request; `meta` is added to what each says, None as a value leaves something out."""
        id = more.get("id", next(self.ids))
        said = {
            PREFIX + "protocolVersion": VERSION,
            PREFIX + "clientInfo": CLIENT,
            PREFIX + "clientCapabilities": dict(capabilities),
            **({} if token is None else {"progressToken": token}),
            **(meta or {}),
        }
        kept = {name: value for name, value in said.items() if value is not None}
        self._asked[id] = request = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": {**(params or {}), "_meta": kept},
        }
        return request

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Json:
        return await self.response(await self.say(self.request(method, params, **more)))

    async def tool(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    async def rounds(self, method: str, params: Json, **more: Any) -> Json:
        """A request, again and again with the answers that it asks for; the last response."""
        retry: Json = {}
        for _ in range(10):
            answer = await self.ask(method, {**params, **retry}, **more)
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            asked = result["inputRequests"]
            answers = {key: self.respond(item["method"], item["params"])["result"] for key, item in asked.items()}
            retry = {"inputResponses": answers, "requestState": result["requestState"]}
        raise AssertionError("the server asks for ever")

    async def cancel(self, id: Any) -> None:
        await self.port.give_up(id)

    def check(self, message: Json) -> None:
        if "method" not in message:
            check_modern(message, self._asked[message["id"]])
            return
        check_modern(message, self._about(message["params"]))

    def _about(self, params: Json) -> Json:
        """The request that a notification belongs to."""
        subscription = params.get("_meta", {}).get(SUBSCRIPTION_ID)
        if subscription is not None:
            return self._asked[subscription]
        if "progressToken" in params:
            return self._asked[self._tokens[params["progressToken"]]]
        # A log message says nothing of its request: the stories have one at a time that wants any.
        return next(asked for asked in reversed(self._asked.values()) if PREFIX + "logLevel" in _meta(asked))


def _meta(request: Json) -> Json:
    return dict(request["params"]["_meta"])


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
