"""The input of application calls, and the handling of their errors."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

import trio
from trio.lowlevel import ParkingLot

from ...core.callbacks import nothing

LOG = logging.getLogger("probe.listener")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""A plain ASGI application for the scopes `http` and `websocket`; it is never called with `lifespan`."""

MESSAGE_COST = 64
"""The bytes of an unread message beside its payload: a flood of empty messages is bounded, too."""

UNAVAILABLE = ((b"content-length", b"0"), (b"connection", b"close"), (b"retry-after", b"5"))

WRITE_TIMEOUT = "write timeout"


class PeerGoneError(OSError):
    """The bytes cannot be delivered any more: the peer has left, or the server has cut it off."""


class Contained:
    """A context manager that logs any `Exception` of the block and ends it there. Cancellation and interrupts pass.

    The defects of hypercorn raise errors of any kind (`KeyError`, `LocalProtocolError`, ...), so a list of expected
    ones would have gaps. It has no state, so calls at the same time share one.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Suppress errors; the part of a group with cancellations or interrupts is raised again."""
        if error is None:
            return False
        group = error if isinstance(error, BaseExceptionGroup) else BaseExceptionGroup("", [error])
        gone, others = group.split(PeerGoneError)
        failures, passing = (None, None) if others is None else others.split(Exception)
        if gone is not None:
            # Peers leave all the time; a call that only sends gets this error then.
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
            # The traceback of `passing` refers to this frame; without the `del` they would be a cycle.
            del error, group, gone, others, failures, passing


CONTAINED_CALL: Final = Contained("the application")


class Inbox:
    """The events that one application call has yet to receive.

    `put` never waits, so a call that does not read cannot block the connection's reader. The bound is elsewhere: on
    HTTP/1.1 the reader stops while `size` is large; on HTTP/2 bytes are acknowledged when taken, so the peer's window
    runs out.
    """

    def __init__(self, turn: Callable[[], Awaitable[object]]) -> None:
        self._turn = turn
        self.size = 0
        self.taken: Callable[[int], None] = nothing
        self.cut_off = ""
        """The reason if the server ended the connection or the stream; else empty."""
        self._messages: deque[Message] = deque()
        self._arrived = ParkingLot()
        self._closed = False

    async def __call__(self, message: Any) -> None:
        self.put(message)

    def put(self, event: Message) -> None:
        """Append an event; dropped after `close`."""
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
        """The next message. The last one is a disconnect, which each later call returns again."""
        if self._messages and _is_last_part(self._messages[0]):
            # Only the last part is returned. Other tasks run in between if more parts follow, since a window has room
            # for 65,535 parts of one byte.
            await trio.lowlevel.checkpoint_if_cancelled()
        elif self._messages and self._messages[0]["type"] != "websocket.receive":
            await trio.lowlevel.checkpoint()
        # Both waiting for an event and waiting for a turn are checkpoints.
        await self._something()
        if self._messages[0]["type"] == "websocket.receive":
            # Each message is work like a request, also that of a peer that has gone.
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
        return bool(self._messages) and self._messages[-1]["type"].endswith(".disconnect")

    def hang_up(self) -> None:
        """The call closes its WebSocket: unread messages are dropped, but the disconnect is kept."""
        self._keep([message for message in self._messages if message["type"] != "websocket.receive"])

    def close(self) -> None:
        self._closed = True
        self._keep([])

    def _keep(self, messages: Sequence[Message]) -> None:
        left = self.size - MESSAGE_COST * len(self._messages)
        kept = sum(map(_payload, messages))
        self._messages = deque(messages)
        self.size = kept + MESSAGE_COST * len(messages)
        self.taken(left - kept)


def _is_mere_end(message: Message) -> bool:
    return message["type"] == "http.request" and not (message.get("body") or message.get("more_body"))


def _is_last_part(message: Message) -> bool:
    return message["type"] == "http.request" and not message.get("more_body")


def _payload(message: Message) -> int:
    return len(message.get("body") or message.get("bytes") or message.get("text") or b"")
