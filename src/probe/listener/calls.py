"""The application calls of one connection, and what each of them has yet to receive."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio.task_group import TaskGroup
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent
from hypercorn.typing import Scope as HypercornScope
from trio.lowlevel import ParkingLot

from .outbox import HIGH_WATER, Outbox, PeerGoneError
from .turnstile import Entrance

LOG = logging.getLogger("probe.listener")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""A plain ASGI application for the scopes `http` and `websocket`; it is never called with `lifespan`."""

MESSAGE_COST = 64
"""Bytes that each unread message counts beside its payload, so that a flood of empty ones is bounded, too."""

UNAVAILABLE = ((b"content-length", b"0"), (b"connection", b"close"), (b"retry-after", b"5"))
"""The headers of the 503 for a request that the end of the server cut off."""

_UNAVAILABLE_RESPONSE: tuple[Message, ...] = (
    {"type": "http.response.start", "status": 503, "headers": UNAVAILABLE},
    {"type": "http.response.body"},
)

WRITE_TIMEOUT = "write timeout"
"""Why the server cuts off a peer that does not read."""


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Log any error of the block and end it there. Cancellation and interrupts pass.

    The defects of hypercorn are errors of any kind (`KeyError`, `AttributeError`, `LocalProtocolError`, ...), so a
    list of expected ones would not hold: this is the boundary that keeps one connection's error from all others.
    """
    try:
        yield
    except* PeerGoneError:
        # Peers leave all the time, and a call that only sends learns of it like this.
        LOG.debug("the peer of %s has gone", what)
    except* Exception:
        LOG.exception("error in %s", what)


class Inbox:
    """What one application call has yet to receive.

    Putting never waits, so a call that does not read cannot hold the connection's reader (and with it the resets of
    other streams). The bound is elsewhere: on HTTP/1.1 the reader stops while `size` is large, on HTTP/2 bytes are
    acknowledged only when taken, so the peer's flow-control window runs out.
    """

    def __init__(self, turn: Callable[[], Awaitable[None]]) -> None:
        self._turn = turn
        self.size = 0
        self.taken: Callable[[int], None] = _nobody_counts
        self.cut_off = ""
        """Why the server ended the connection or the stream; empty while it did not."""
        self._messages: deque[Message] = deque()
        self._arrived = ParkingLot()
        self._closed = False

    async def __call__(self, message: ASGIReceiveEvent) -> None:
        """Put; this is the callable that hypercorn's streams hold."""
        self.put(cast(Message, message))

    def put(self, event: Message) -> None:
        """Give the call something to receive. Dropped after `close`."""
        if self._closed:
            self.taken(_payload(event))
            return
        self._messages.append(event)
        self.size += _payload(event) + MESSAGE_COST
        self._arrived.unpark_all()

    async def receive(self) -> Message:
        """The next message; a disconnect is the last one and is given again each time.

        Beyond ASGI, `http.disconnect` has a `reason` where it was this server that cut the connection off.
        """
        await trio.lowlevel.checkpoint()
        await self._something()
        if self._messages[0]["type"] == "websocket.receive":
            # Each message is a request of its own, also of a peer that has gone: to serve it is the same work.
            await self._turn()
            # Another task of the call may have closed the WebSocket meanwhile.
            await self._something()
        if self._messages[0]["type"].endswith(".disconnect"):
            return {**self._messages[0], "reason": self.cut_off} if self.cut_off else self._messages[0]
        message = self._messages.popleft()
        self.size -= _payload(message) + MESSAGE_COST
        self.taken(_payload(message))
        return message

    async def _something(self) -> None:
        while not self._messages:
            await self._arrived.park()

    @property
    def disconnected(self) -> bool:
        """Whether the connection or the stream is over."""
        return bool(self._messages) and self._messages[-1]["type"].endswith(".disconnect")

    def hang_up(self) -> None:
        """The call closes its WebSocket: the messages that are left are for nobody, the end is still told."""
        self._keep([message for message in self._messages if message["type"] != "websocket.receive"])

    def close(self) -> None:
        """The call has ended: what is left and what still comes counts as taken."""
        self._closed = True
        self._keep([])

    def _keep(self, messages: Sequence[Message]) -> None:
        """Only these are left to be received; the others count as taken."""
        left = self.size - MESSAGE_COST * len(self._messages)
        kept = sum(map(_payload, messages))
        self._messages = deque(messages)
        self.size = kept + MESSAGE_COST * len(messages)
        self.taken(left - kept)


def _nobody_counts(size: int) -> None:
    pass


def _payload(message: Message) -> int:
    return len(message.get("body") or message.get("bytes") or message.get("text") or b"")


class AppTasks(TaskGroup):
    """hypercorn's task group, which its streams use to start application calls; it knows those that run.

    The nursery is hypercorn's own member; nothing here but `spawn_app` touches it. `extensions` gives the ASGI
    extensions of a request by its HTTP/2 stream; `started` counts the calls.
    """

    def __init__(
        self, outbox: Outbox, entrance: Entrance, extensions: Callable[[int | None], dict[str, Any]]
    ) -> None:
        super().__init__()
        self._outbox = outbox
        self._entrance = entrance
        self._extensions = extensions
        self.idle_since = trio.current_time()
        self._inboxes: set[Inbox] = set()
        self.started = 0
        self._ended = ParkingLot()

    @property
    def running(self) -> int:
        """How many application calls run."""
        return len(self._inboxes)

    async def wait_ended(self) -> None:
        """Wait until no application call runs."""
        while self._inboxes:
            await self._ended.park()

    def cut_off(self, why: str) -> None:
        """Let the calls that run know why their disconnect is going to come: it is not the peer that leaves."""
        for inbox in self._inboxes:
            if not inbox.disconnected:
                inbox.cut_off = why

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: HypercornScope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Inbox:
        """Start one application call; the result takes what the peer sends to it."""
        about = cast(Any, scope)
        # hypercorn passes a method of the stream, and the stream by nothing else.
        stream_id = getattr(getattr(send, "__self__", None), "stream_id", None)
        about["extensions"] = {**about.get("extensions", {}), **self._extensions(stream_id)}
        inbox = Inbox(partial(self._entrance.say, about["headers"]))
        self._inboxes.add(inbox)
        self.started += 1
        assert self._nursery is not None
        self._nursery.start_soon(self._call, app, scope, inbox, send)
        return inbox

    async def _call(self, app: Any, scope: Any, inbox: Inbox, send: Any) -> None:
        response = _Response(send, self._outbox)
        over = False
        try:
            try:
                with contained("the application"):
                    await app(scope, inbox.receive, response.send)
                over = True
            finally:
                # Cancelled, which only the end of the server does. hypercorn would answer 500, as for a defect.
                if not (over or inbox.disconnected):
                    for message in () if response.begun else _UNAVAILABLE_RESPONSE:
                        await send(message)
        finally:
            inbox.close()
            try:
                # hypercorn's sign for "the call has ended": answers 500 or ends the stream where the call did not.
                await send(None)
            finally:
                self._inboxes.discard(inbox)
                self._ended.unpark_all()
                self.idle_since = trio.current_time()


class _Response:
    """What one application call sends."""

    def __init__(self, send: Any, outbox: Outbox) -> None:
        self.begun = False
        self._send = send
        self._outbox = outbox

    async def send(self, message: Message) -> None:
        """ASGI's `send`. Cancelled, it may have sent a part of a body; then nothing may follow it."""
        self.begun = True
        for piece in _pieces(message):
            await self._pass_on(piece)

    async def _pass_on(self, message: Message) -> None:
        turns = self._outbox.turns
        try:
            await self._send(message)
        except PeerGoneError:
            await trio.lowlevel.checkpoint()
            raise
        # Often nothing waited, not even where there is nobody to send to, and a call that goes on sending would stop
        # all others. Not after a head, of which there is one: so it leaves together with a body that follows.
        if self._outbox.turns == turns and message["type"] != "http.response.start":
            await trio.lowlevel.checkpoint()


def _pieces(message: Message) -> Iterator[Message]:
    """The same message; a large body in pieces.

    What waits for a slow peer is held by who sends it. In one piece it would be held a second time, in the outbox.
    """
    body = message.get("body") or b""
    at = 0
    while len(body) - at > HIGH_WATER:
        yield {**message, "body": body[at : at + HIGH_WATER], "more_body": True}
        at += HIGH_WATER
    yield {**message, "body": body[at:]} if at else message
