"""Gives application calls their input, and catches their errors."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import trio
from trio.lowlevel import ParkingLot

from .outbox import PeerGoneError

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

WRITE_TIMEOUT = "write timeout"
"""Why the server cuts off a peer that does not read."""


class Contained:
    """A context manager that logs any error of the block and ends it there. Cancellation and interrupts pass.

    The defects of hypercorn are errors of any kind (`KeyError`, `AttributeError`, `LocalProtocolError`, ...), so a
    list of expected ones would not hold: this is the boundary that keeps one connection's error from all others. It is
    no generator, because each open stream holds two of them.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """End the block, and its error; of a group what is no error goes on."""
        if error is None:
            return False
        group = error if isinstance(error, BaseExceptionGroup) else BaseExceptionGroup("", [error])
        gone, others = group.split(PeerGoneError)
        failures, passing = (None, None) if others is None else others.split(Exception)
        if gone is not None:
            # Peers leave all the time, and a call that only sends learns of it like this.
            LOG.debug("the peer of %s has gone", self._what)
        if failures is not None:
            LOG.error("error in %s", self._what, exc_info=error)
        if passing is None:
            return True
        if gone is None and failures is None:
            return False
        try:
            raise passing from None
        finally:
            # The trace of what goes on holds this frame, which would hold that.
            del error, group, gone, others, failures, passing


class Inbox:
    """The events that one application call has yet to receive.

    Putting never waits, so a call that does not read cannot hold the connection's reader (and with it the resets of
    other streams). The bound is elsewhere: on HTTP/1.1 the reader stops while `size` is large, on HTTP/2 bytes are
    acknowledged only when taken, so the peer's flow-control window runs out.
    """

    def __init__(self, turn: Callable[[], Awaitable[object]]) -> None:
        self._turn = turn
        self.size = 0
        self.taken: Callable[[int], None] = _nobody_counts
        self.cut_off = ""
        """Why the server ended the connection or the stream; empty while it did not."""
        self._messages: deque[Message] = deque()
        self._arrived = ParkingLot()
        self._closed = False

    async def __call__(self, message: Any) -> None:
        """Put; this is the callable that hypercorn's streams hold."""
        self.put(message)

    def put(self, event: Message) -> None:
        """Give the call something to receive. Dropped after `close`."""
        if self._closed:
            self.taken(_payload(event))
            return
        if _is_mere_end(event) and self._messages and self._messages[-1]["type"] == "http.request":
            self._messages[-1]["more_body"] = False
            return
        self._messages.append(event)
        self.size += _payload(event) + MESSAGE_COST
        self._arrived.unpark_all()

    async def receive(self) -> Message:
        """The next message; a disconnect is the last one and is given again each time.

        Beyond ASGI, `http.disconnect` has a `reason` where it was this server that cut the connection off.
        """
        if self._messages and _is_last_part(self._messages[0]):
            # It comes once. Others run in between where there are more: a window has room for 65,535 of one byte each.
            await trio.lowlevel.checkpoint_if_cancelled()
        elif self._messages and self._messages[0]["type"] != "websocket.receive":
            await trio.lowlevel.checkpoint()
        # To wait for something is a checkpoint, and so is the turn of a message.
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


def _is_mere_end(message: Message) -> bool:
    """Whether a message says nothing but that the body of a request is complete."""
    return message["type"] == "http.request" and not (message.get("body") or message.get("more_body"))


def _is_last_part(message: Message) -> bool:
    return message["type"] == "http.request" and not message.get("more_body")


def _payload(message: Message) -> int:
    return len(message.get("body") or message.get("bytes") or message.get("text") or b"")
