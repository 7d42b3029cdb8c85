"""An HTTP client for an ASGI application, in memory: whole answers, event streams, and a way to hang up."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import trio


@dataclass
class Event:
    """One server-sent event; `data` is "" for the priming event."""

    id: str | None
    data: str
    retry: int | None

    @property
    def message(self) -> Any:
        """The JSON message."""
        return json.loads(self.data)


@dataclass
class Answer:
    """A response whose head has come; the body comes in parts."""

    method: str
    path: str
    status: int
    headers: dict[str, str]
    _body: trio.MemoryReceiveChannel[bytes]
    _hung_up: trio.Event
    comments: list[str] = field(default_factory=list)
    _buffer: bytes = b""

    def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        return self._body

    async def body(self) -> bytes:
        """The whole body. One of the API is held to its description."""
        whole = b"".join([part async for part in self._body])
        if f"{self.path}/".startswith("/api/"):
            # Here, as few tests need the pages, which take long to import.
            from . import openapi

            openapi.check(self.method, self.path, self.status, self.headers, whole)
        return whole

    async def json(self) -> Any:
        """The whole body as JSON."""
        return json.loads(await self.body())

    def events(self) -> AsyncIterator[Event]:
        """Server-sent events until the response ends. Reading may stop anywhere and go on with another iterator."""
        return _Events(self)

    async def first(self, count: int) -> list[Event]:
        """The next so many events; the stream stays open."""
        return [await anext(self.events()) for _ in range(count)]

    async def next_event(self) -> Event | None:
        """The next event; None at the end of the response."""
        while True:
            while b"\n\n" in self._buffer:
                block, self._buffer = self._buffer.split(b"\n\n", 1)
                event = self._event(block.decode())
                if event is not None:
                    return event
            try:
                self._buffer += await self._body.receive()
            except trio.EndOfChannel:
                return None

    def _event(self, block: str) -> Event | None:
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        if "" in fields:
            self.comments.append(fields[""])
            return None
        retry = fields.get("retry")
        return Event(fields.get("id"), fields["data"], None if retry is None else int(retry))

    def hang_up(self) -> None:
        """The client closes its connection."""
        self._hung_up.set()


class _Events:
    """Not an async generator: those complain when they are not read to their end."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self._answer.next_event()
        if event is None:
            raise StopAsyncIteration
        return event


def http_scope(method: str, target: str, headers: Mapping[str, str] | list[tuple[str, str]]) -> dict[str, Any]:
    """The ASGI scope of one HTTP request."""
    path, _, query = target.partition("?")
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        "extensions": {},
    }


@asynccontextmanager
async def exchange(
    app: Any,
    method: str,
    target: str,
    headers: Mapping[str, str] | list[tuple[str, str]],
    body: bytes = b"",
    *,
    gone: trio.Event | None = None,
) -> AsyncIterator[Answer]:
    """One HTTP request; leaving the block hangs up, and so does whoever sets `gone`, which may be before the answer.

    An exchange that ends without an answer has the status 0.
    """
    scope = http_scope(method, target, headers)
    head: dict[str, Any] = {}
    head_came, hung_up, ended, sent = trio.Event(), trio.Event(), trio.Event(), False
    write, read = trio.open_memory_channel[bytes](10_000)

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        await trio.lowlevel.checkpoint()
        if event["type"] == "http.response.start":
            head.update(event)
            head_came.set()
            return
        if event.get("body"):
            write.send_nowait(bytes(event["body"]))
        if not event.get("more_body", False):
            write.close()

    async def run() -> None:
        try:
            await app(scope, receive, send)
        finally:
            write.close()
            head_came.set()
            ended.set()

    async def follow(gone: trio.Event) -> None:
        await gone.wait()
        hung_up.set()

    async with trio.open_nursery() as following, trio.open_nursery() as nursery:
        if gone is not None:
            following.start_soon(follow, gone)
        nursery.start_soon(run)
        await head_came.wait()
        named = {key.decode("latin-1"): value.decode("latin-1") for key, value in head.get("headers", [])}
        yield Answer(method, scope["path"], head.get("status", 0), named, read, hung_up)
        hung_up.set()
        await ended.wait()
        following.cancel_scope.cancel()


@dataclass
class HalfSent:
    """A request with three bytes of its ten; after `more` is set come the events of `then`."""

    then: list[dict[str, Any]] = field(default_factory=list)
    more: trio.Event = field(default_factory=trio.Event)
    statuses: list[int] = field(default_factory=list)

    async def run(self, app: Any, method: str, target: str, headers: Mapping[str, str]) -> None:
        """Send it. The statuses of the answers are in `statuses`."""
        events = [{"type": "http.request", "body": b"abc", "more_body": True}]

        async def receive() -> dict[str, Any]:
            if events:
                return events.pop()
            await self.more.wait()
            return self.then.pop(0)

        async def send(event: Any) -> None:
            if "status" in event:
                self.statuses.append(event["status"])

        await app(http_scope(method, target, {**headers, "content-length": "10"}), receive, send)


def messages(events: Iterable[Event]) -> list[Any]:
    """The JSON messages among events."""
    return [event.message for event in events if event.data]
