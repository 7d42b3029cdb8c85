"""Small ASGI applications, and what a test wants to know about a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

Handler = Callable[..., Any]


async def respond(send: Any, body: bytes = b"ok", *, status: int = 200, headers: tuple[Any, ...] = ()) -> None:
    """A whole response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def start(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})


async def part(send: Any, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def end(send: Any) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read_body(receive: Any) -> bytes:
    """The whole request body."""
    body = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def until_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass
class Call:
    """What happened to one application call."""

    path: str
    started: trio.Event = field(default_factory=trio.Event)
    disconnected: trio.Event = field(default_factory=trio.Event)
    released: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    sent: int = 0


@dataclass
class Recorder:
    """Runs the handler registered for a path, and keeps a `Call` per path."""

    handlers: dict[str, Handler]
    calls: dict[str, Call] = field(default_factory=dict)
    running: int = 0
    most_running: int = 0

    def call(self, path: str) -> Call:
        """The latest call of a path; made when first asked for, so a test can wait for one to come."""
        return self.calls.setdefault(path, Call(path))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One application call."""
        call = self.call(scope["path"])
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        call.started.set()
        try:
            await self.handlers.get(scope["path"], plain)(scope, receive, send, call)
        finally:
            self.running -= 1
            call.ended.set()


async def plain(scope: Any, receive: Any, send: Any, call: Call) -> None:
    await respond(send, b"ok")


async def echo(scope: Any, receive: Any, send: Any, call: Call) -> None:
    await respond(send, await read_body(receive))


async def silent(scope: Any, receive: Any, send: Any, call: Call) -> None:
    """Answer nothing until the peer leaves."""
    await read_body(receive)
    await until_disconnect(receive)
    call.disconnected.set()


async def stream_forever(scope: Any, receive: Any, send: Any, call: Call, size: int = 16384) -> None:
    """Send for as long as the peer is there; `sent` counts what `send` has returned for."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_note_disconnect, receive, call, nursery.cancel_scope)
        await start(send)
        try:
            while True:
                await part(send, b"x" * size)
                await trio.lowlevel.checkpoint()
                call.sent += size
        except OSError:
            # the peer has gone; the other task is about to hear of it.
            await trio.sleep_forever()


async def _note_disconnect(receive: Any, call: Call, scope: trio.CancelScope) -> None:
    await until_disconnect(receive)
    call.disconnected.set()
    scope.cancel()
