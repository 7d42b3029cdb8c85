"""A client with draft streams, whose connections drop and come back: over HTTP, and over a pipe, with one face.

Every message it gets is checked against the schema of its revision, or that of the draft.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from ..support.http import Answer, Event
from ..support.legacy import Legacy
from ..support.pipes import MARK, STREAMS, Pipe, pipe
from ..support.probe import Probe
from ..support.schemas import schema

Message = dict[str, Any]
RESUME, POLL, POLL_ALL = "stream/resume", "stream/poll", "stream/poll/all"
CREATE, END, PROGRESS = "notifications/stream/create", "notifications/stream/end", "notifications/progress"


@dataclass
class Client:
    """What a client knows, whatever connection it has: also the secrets of its streams, and the last of them."""

    revision: str = "2025-11-25"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: STREAMS)
    secret: str | None = None
    secrets: dict[str, str] = field(default_factory=dict)
    http: Legacy | None = None
    ids: Any = field(default_factory=lambda: count(1))
    methods: dict[Any, tuple[str, bool]] = field(default_factory=dict)

    def note(self, message: Message) -> Message:
        """A message from the server, checked."""
        known = self.methods.get(message.get("id"), (None, False)) if "method" not in message else (None, False)
        schema(self.revision).check_message(message, method=known[0], task=known[1])
        if message.get("method") == CREATE:
            about = mark(message)
            if "secret" in about:
                self.secret = self.secrets[about["streamId"]] = about["secret"]
        return message

    def forget(self) -> None:
        self.secret = None
        self.secrets.clear()


class Link(ABC):
    """One connection of a client, over HTTP all of its exchanges. `heard` has what has been heard, in its order."""

    def __init__(self, probe: Probe, nursery: trio.Nursery, client: Client) -> None:
        self.probe = probe
        self.client = client
        self.heard: list[Message] = []
        self._nursery = nursery
        self._arrived, self._arriving = trio.open_memory_channel[Message](inf)

    @abstractmethod
    async def open(self) -> Message | None:
        """Connect; the result of `initialize`, where there was one."""

    @abstractmethod
    async def say(self, message: Any, headers: dict[str, str] | None = None) -> None:
        """Send a message; `headers` are for HTTP."""

    @abstractmethod
    async def cut(self) -> None:
        """The connection breaks at this moment."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The session in the event log."""

    async def drop(self) -> None:
        """The connection breaks when all that was sent has come."""
        await wait_all_tasks_blocked()
        await self.cut()

    async def another(self) -> Link:
        """A further connection of the same client. Over HTTP it has the same session."""
        link = type(self)(self.probe, self._nursery, self.client)
        await link.open()
        return link

    async def back(self, after_s: float = 5.0) -> Link:
        """Drop the connection, and come back after so many seconds: no sooner than the draft allows by default."""
        await self.drop()
        await trio.sleep(after_s)  # real time: a client of sockets comes back later
        return await self.another()

    # What is sent.

    def request(self, method: str, params: Mapping[str, Any] | None = None, id: Any = None) -> Message:
        """A request with a fresh id unless one is given."""
        message: Message = {"jsonrpc": "2.0", "id": next(self.client.ids) if id is None else id, "method": method}
        as_task = "task" in (params or {}) and self.client.revision >= "2025-11-25"
        self.client.methods[message["id"]] = (method, as_task and method == "tools/call")
        return message if params is None else {**message, "params": dict(params)}

    def tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, id: Any = None, token: Any = None, **params: Any
    ) -> Message:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.request("tools/call", {"name": name, "arguments": dict(arguments or {}), **meta, **params}, id)

    def about(self, stream: str | None, **claim: Any) -> Message:
        """The params of the draft's requests: about a stream, with this in `_meta` beside the secret."""
        secret = self.client.secrets.get(stream or "", self.client.secret)
        claim = {**({} if secret is None else {"secret": secret}), **claim}
        named = {} if stream is None else {"streamId": stream}
        return {**named, "_meta": {MARK: claim}} if claim else named

    def resume(self, stream: str, *, id: Any = None, **claim: Any) -> Message:
        return self.request(RESUME, self.about(stream, **claim), id)

    async def start(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Call a tool; returns the id of its stream, once that is told."""
        await self.say(self.tool(name, arguments, **options))
        return str((await self.until(is_method(CREATE)))[-1]["params"]["stream"]["streamId"])

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self.say({"jsonrpc": "2.0", "method": method, "params": dict(params)})

    async def cancel(self, id: Any, reason: str = "changed my mind") -> None:
        await self.notify("notifications/cancelled", {"requestId": id, "reason": reason})

    async def answer(self, question: Message, result: Mapping[str, Any]) -> None:
        await self.say({"jsonrpc": "2.0", "id": question["id"], "result": dict(result)})

    # What is heard.

    def _hear(self, message: Message) -> None:
        self._arrived.send_nowait(self.client.note(message))

    async def hear(self) -> Message:
        """The next message."""
        message = await self._arriving.receive()
        self.heard.append(message)
        return message

    async def until(self, wanted: Callable[[Message], bool]) -> list[Message]:
        """Messages up to the first that is wanted, with that."""
        messages = [await self.hear()]
        while not wanted(messages[-1]):
            messages.append(await self.hear())
        return messages

    async def now(self) -> list[Message]:
        """What there is to hear at this moment, when nothing moves any more."""
        await wait_all_tasks_blocked()
        return self.waiting()

    def waiting(self) -> list[Message]:
        """What has arrived and was not heard yet."""
        messages = []
        while self._arriving.statistics().current_buffer_used:
            messages.append(self._arriving.receive_nowait())
        self.heard += messages
        return messages

    async def ask(self, request: Message, headers: dict[str, str] | None = None) -> Message:
        """Send a request and wait for what answers it; what comes before is in `heard`."""
        await self.say(request, headers)
        return (await self.until(answers(request["id"])))[-1]

    async def rest(self, request: Message, headers: dict[str, str] | None = None) -> list[Message]:
        """Send a request; all messages up to what answers it, without that."""
        await self.say(request, headers)
        return (await self.until(answers(request["id"])))[:-1]

    async def poll(self, stream: str, **claim: Any) -> Message:
        answer = await self.ask(self.request(POLL, self.about(stream, **claim)))
        return dict(answer.get("result") or answer["error"])

    async def poll_all(self, **claim: Any) -> list[Message]:
        answer = await self.ask(self.request(POLL_ALL, self.about(None, **claim)))
        return list(answer["result"]["streams"])

    async def error(self, request: Message) -> Message:
        return dict((await self.ask(request))["error"])


class HttpLink(Link):
    """All exchanges of a session that are dropped together. `events` has the server-sent events as they came."""

    def __init__(self, probe: Probe, nursery: trio.Nursery, client: Client) -> None:
        super().__init__(probe, nursery, client)
        self.events: list[Event] = []
        self._open: list[tuple[Answer, trio.Event]] = []

    async def open(self) -> Message | None:
        """The handshake, unless the client has a session."""
        if self.client.http is not None:
            return None
        self.client.http = Legacy(self.probe.app, "/mcp?tools=all")
        self.client.http.ids = self.client.ids
        return await self.client.http.initialize(self.client.revision, dict(self.client.capabilities))

    @property
    def http(self) -> Legacy:
        assert self.client.http is not None
        return self.client.http

    @property
    def label(self) -> str:
        """The session in the event log."""
        session = self.probe.engine.sessions.find(self.http.headers["mcp-session-id"])
        assert session is not None
        return session.label

    async def say(self, message: Any, headers: dict[str, str] | None = None) -> None:
        await self._nursery.start(self._follow, self.http.post(message, headers))

    async def get(self, last_event_id: str) -> None:
        await self._nursery.start(self._follow, self.http.get(last_event_id))

    async def _follow(self, opening: Any, task_status: trio.TaskStatus[None]) -> None:
        over = trio.Event()
        async with opening as answer:
            self._open.append((answer, over))
            task_status.started()
            await self._read(answer, over)
        self._open = [kept for kept in self._open if kept[1] is not over]

    async def _read(self, answer: Answer, over: trio.Event) -> None:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            body = await answer.body()
            for message in _listed(json.loads(body)) if body else ():
                self._hear(message)
            return
        while not over.is_set() and (event := await answer.next_event()) is not None:
            if not over.is_set():
                self.events.append(event)
                if event.data:
                    self._hear(event.message)

    async def cut(self) -> None:
        """Every exchange hangs up."""
        for answer, over in self._open:
            over.set()
            answer.hang_up()
        await wait_all_tasks_blocked()
        assert not self._open


class PipeLink(Link):
    """One pipe, with a session of its own."""

    def __init__(self, probe: Probe, nursery: trio.Nursery, client: Client) -> None:
        super().__init__(probe, nursery, client)
        self.pipe: Pipe | None = None
        self._over = trio.Event()
        self._label = ""

    async def open(self) -> Message | None:
        """Connect, and the handshake."""
        self.pipe = await self._nursery.start(self._serve)
        result = await self.pipe.initialize(self.client.revision, self.client.capabilities)
        self._label = self.probe.events("session.opened")[-1]["session"]
        self._nursery.start_soon(self._listen, self.pipe)
        await wait_all_tasks_blocked()
        return result

    async def _serve(self, task_status: trio.TaskStatus[Pipe]) -> None:
        async with pipe(self.probe.engine, ids=self.client.ids) as connection:
            task_status.started(connection)
            await self._over.wait()

    async def _listen(self, connection: Pipe) -> None:
        while not self._over.is_set():
            try:
                message = await connection.hear()
            except (EOFError, trio.ClosedResourceError):
                return
            if not self._over.is_set():
                self._hear(message)

    @property
    def label(self) -> str:
        return self._label

    async def say(self, message: Any, headers: dict[str, str] | None = None) -> None:
        assert self.pipe is not None
        await self.pipe.say(message)

    async def cut(self) -> None:
        """The peer has gone."""
        self._over.set()
        await wait_all_tasks_blocked()
        assert self.pipe is not None
        assert self.pipe.ending is not None


LINKS: Mapping[str, type[Link]] = {"http": HttpLink, "pipe": PipeLink}


@asynccontextmanager
async def linked(probe: Probe, transport: str, **known: Any) -> AsyncIterator[Link]:
    """A new client with a connection; `known` is for its `Client`. The block's end drops all its connections."""
    async with trio.open_nursery() as nursery:
        link = LINKS[transport](probe, nursery, Client(**known))
        await link.open()
        yield link
        nursery.cancel_scope.cancel()


def _listed(value: Any) -> list[Message]:
    return value if isinstance(value, list) else [value]


def is_method(method: str) -> Callable[[Message], bool]:
    """Whether a message is a notification or request of this method."""
    return lambda message: message.get("method") == method


def answers(id: Any) -> Callable[[Message], bool]:
    return lambda message: "method" not in message and message.get("id") == id


def mark(message: Message) -> Message:
    """What stands under the server's own key of a message; {} for an error."""
    body = message.get("params") or message.get("result") or {}
    return dict(body.get("_meta", {}).get(MARK, {}))


def sequences(messages: list[Message]) -> list[int | None]:
    return [mark(message).get("sequence") for message in messages]


def shape(messages: list[Message]) -> list[Any]:
    """What messages are, shortly: the method, or the id of what is answered."""
    return [message.get("method", message.get("id")) for message in messages]


def steps(messages: list[Message]) -> list[Any]:
    return [message["params"]["progress"] for message in messages if message.get("method") == PROGRESS]
