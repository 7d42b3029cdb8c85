"""The application calls of one HTTP/2 connection; hypercorn's streams start them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, cast

import trio
from hypercorn.config import Config
from hypercorn.trio.task_group import TaskGroup
from hypercorn.typing import AppWrapper, ASGISendEvent
from hypercorn.typing import Scope as HypercornScope
from trio.lowlevel import ParkingLot

from ..calls import UNAVAILABLE, Contained, Inbox, Message
from ..fair_queue import ConnectionTurns
from ..outbox import HIGH_WATER, Outbox, PeerGoneError
from .request_stream import RequestStream

_UNAVAILABLE_RESPONSE: tuple[Message, ...] = (
    {"type": "http.response.start", "status": 503, "headers": UNAVAILABLE},
    {"type": "http.response.body"},
)


class AppTasks(TaskGroup):
    """hypercorn's task group for application calls; it also counts the running ones.

    The nursery is hypercorn's own member, and only `spawn_app` uses it. `extensions` returns the ASGI extensions of a
    request from its HTTP/2 stream; `started` counts the calls.
    """

    def __init__(
        self, outbox: Outbox, turns: ConnectionTurns, extensions: Callable[[int | None], dict[str, Any]]
    ) -> None:
        super().__init__()
        self._outbox = outbox
        self._turns = turns
        self._extensions = extensions
        self.idle_since = trio.current_time()
        self._inboxes: set[Inbox] = set()
        self.started = 0
        self._ended = ParkingLot()

    @property
    def running(self) -> int:
        """The number of running application calls."""
        return len(self._inboxes)

    async def wait_ended(self) -> None:
        """Wait until no application call runs."""
        while self._inboxes:
            await self._ended.park()

    def cut_off(self, why: str) -> None:
        """Set the reason of the coming disconnect for all running calls; the server causes it, not the peer."""
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
        """Start one application call. hypercorn puts the events of the peer into the result."""
        about = cast(Any, scope)
        # hypercorn passes a method of the stream, but not the stream.
        stream: RequestStream = cast(Any, send).__self__
        about["extensions"].update(self._extensions(stream.stream_id), **stream.more)
        inbox = Inbox(partial(self._turns.wait_request, about["headers"], message=True))
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
                with Contained("the application"):
                    await app(scope, inbox.receive, response.send)
                over = True
            finally:
                # Only the end of the server cancels this. hypercorn would answer 500, as for a defect.
                if not (over or inbox.disconnected):
                    for message in () if response.begun else _UNAVAILABLE_RESPONSE:
                        await send(message)
        finally:
            inbox.close()
            try:
                # None means to hypercorn that the call has ended: it answers 500 or ends the stream, if the call has
                # not.
                await send(None)
            finally:
                self._inboxes.discard(inbox)
                self._ended.unpark_all()
                self.idle_since = trio.current_time()


class _Response:
    """The sending half of one application call."""

    def __init__(self, send: Any, outbox: Outbox) -> None:
        self.begun = False
        self._send = send
        self._outbox = outbox

    async def send(self, message: Message) -> None:
        """ASGI's `send`. If cancelled, it may have sent a part of a body; then no more can be sent."""
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
        # The steps above often do not wait, not even if the peer has gone, so an endless sender would block all other
        # tasks. A head does not wait here, since there is only one: it leaves together with the body behind it.
        if self._outbox.turns == turns and message["type"] != "http.response.start":
            await trio.lowlevel.checkpoint()


def _pieces(message: Message) -> Iterator[Message]:
    """Split a message with a large body into several.

    The application holds the rest of the body while a slow peer reads; in one piece the outbox would hold it again.
    """
    body = message.get("body") or b""
    at = 0
    while len(body) - at > HIGH_WATER:
        yield {**message, "body": body[at : at + HIGH_WATER], "more_body": True}
        at += HIGH_WATER
    yield {**message, "body": body[at:]} if at else message
