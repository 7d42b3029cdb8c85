"""The byte stream of a connection, and the state that all connections share."""

from __future__ import annotations

import os
import select
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import count
from typing import Any, Final, Protocol, TypeAlias

import trio
from trio.lowlevel import ParkingLot

from ...core.budgets import Shares, has_bytes
from ...core.clients import Network
from ...settings import Settings
from .calls import App
from .fair_queue import ConnectionTurns, FairQueue, TurnsBy
from .request_head import KnownHeads

READ_PIECE = 32 * 1024
"""The bytes per read; their messages or frames take at most a few megabytes."""

Address = tuple[str, int] | None

_LEFT = select.POLLHUP | select.POLLERR
_FINISHED = getattr(select, "POLLRDHUP", 0) | _LEFT
"""A FIN, which only Linux reports without reading (POLLRDHUP), and a reset."""


GoesOn: TypeAlias = Callable[[bytes], bool]
"""True if a request with this body continues earlier work, such as a cancellation."""


class ConnectionLog(Protocol):
    """Records connections below HTTP. Its methods neither wait nor raise."""

    def opened(self, number: int, address: str, port: int | None) -> None:
        """`number` counts from 1 and does not repeat."""

    def refused(self, number: int, status: int | None, why: str) -> None:
        """The bytes are no valid HTTP, or cannot be answered; `status` is None without an answer."""

    def closed(self, number: int, by: str, requests: int) -> None:
        """The connection was closed by `client`, or by the server for the reason `by`."""


class ServedConnection(Protocol):
    """A connection of one protocol, under the limits of `watch`.

    `ended_by` is `client`, or the server's reason; final when the connection is over.
    """

    @property
    def ended_by(self) -> str: ...

    @property
    def requests(self) -> int: ...

    async def run(self) -> None: ...

    async def check(self, now: float) -> None:
        """End the connection, without waiting for its peer, if it exceeds a limit."""

    async def abort(self) -> None: ...


class DateField:
    """The value of a Date header, formatted once per second."""

    def __init__(self) -> None:
        self._second = 0
        self._value = b""

    def __call__(self) -> bytes:
        now = int(time.time())
        if now != self._second:
            self._second, self._value = now, formatdate(now, usegmt=True).encode()
        return self._value


class Incomplete:
    """The incomplete messages of all WebSockets of a listener."""

    def __init__(self, most: int, share: float) -> None:
        self.bytes = 0
        self._most = most
        self._shares = Shares(share)

    def take(self, holder: str | None, size: int) -> None:
        """Count `size` bytes more, also beyond the limit: they have come already."""
        self.bytes += size
        self._shares.take("max_incoming_bytes", holder, size)

    def give_back(self, holder: str | None, size: int) -> None:
        self.bytes -= size
        self._shares.give_back("max_incoming_bytes", holder, size)

    def excess(self, holder: str | None, message: int) -> str:
        """Why an incomplete message of `message` bytes is too much; empty if it is not."""
        if not has_bytes(self._most, self.bytes, 0, message):
            return f"more than {self._most} bytes are on their way, 1/8 of it for small ones (max_incoming_bytes)"
        share = self._shares.most(self._most)
        if self._shares.held("max_incoming_bytes", holder) > max(share, message):
            return f"more than {share} bytes of this address are on their way (address_share of max_incoming_bytes)"
        return ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions of the program that a listener calls. `log` records each connection.

    `goes_on` is called for HTTP/1.1 requests with a short body that has come with the head or right behind it,
    `turns_by` for each request.
    """

    log: ConnectionLog | None = None
    goes_on: GoesOn | None = None
    turns_by: TurnsBy | None = None


NO_HOOKS: Final = Hooks()


@dataclass(frozen=True, slots=True)
class Service:
    """The state that all connections of a listener share. `running` are those that `watch` checks."""

    app: App
    settings: Settings
    tls: ssl.SSLContext | None
    incomplete: Incomplete
    trusted: Sequence[Network]
    hooks: Hooks = NO_HOOKS
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    running: set[ServedConnection] = field(default_factory=set)
    fair_queue: FairQueue = field(default_factory=FairQueue)
    ended: ParkingLot = field(default_factory=ParkingLot)
    date: DateField = field(default_factory=DateField)
    heads: KnownHeads = field(default_factory=KnownHeads)

    async def wait_ended(self) -> None:
        while self.running:
            await self.ended.park()


@dataclass(frozen=True, slots=True)
class Transport:
    """The byte stream of a connection, with TLS if it is set, and its first bytes.

    `number` is its number within the listener, counted from 1.
    """

    stream: trio.abc.Stream
    peer: Address
    here: Address
    first: bytes = b""
    number: int = 0
    plain: bool = field(init=False, repr=False, compare=False)
    """True if the system can read and write the stream by its descriptor."""
    secure: bool = field(init=False, repr=False, compare=False)
    """True for TLS; then the server cannot send after the end of the peer's direction."""

    def __post_init__(self) -> None:
        plain = isinstance(self.stream, trio.SocketStream) and sys.platform != "win32"
        object.__setattr__(self, "plain", plain)
        object.__setattr__(self, "secure", isinstance(self.stream, trio.SSLStream))

    def extensions(self, stream_id: int | None = None) -> dict[str, Any]:
        return {"probe.connection": {"number": self.number, "stream_id": stream_id}}

    async def read(self, most: int) -> bytes:
        """Receive the next bytes of the peer; empty at the end of its direction.

        Raises the errors of the stream's `receive_some`, and `OSError`. It waits for the socket first: trio would try
        to read first, mostly in vain.
        """
        if not self.plain:
            return bytes(await self.stream.receive_some(most))
        while True:
            await trio.lowlevel.wait_readable(self.number_of_socket)
            # Read again: the socket may have been closed meanwhile, and the number be another connection's.
            with suppress(BlockingIOError):
                return os.read(self.number_of_socket, most)

    def read_now(self, most: int) -> bytes | None:
        """The bytes in the socket's buffer; empty at the end of the peer's direction, None if there are none.

        None also if the stream is not plain. Raises `OSError`, and `trio.ClosedResourceError`.
        """
        if not self.plain:
            return None
        try:
            return os.read(self.number_of_socket, most)
        except BlockingIOError:
            return None

    def write_now(self, data: bytes | memoryview) -> int:
        """Write without waiting; returns the bytes taken, 0 if the stream is not plain. Raises `OSError`."""
        if not self.plain:
            return 0
        try:
            return os.write(self.number_of_socket, data)
        except BlockingIOError:
            return 0

    @property
    def number_of_socket(self) -> int:
        assert isinstance(self.stream, trio.SocketStream)
        number = self.stream.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError("this socket is closed")
        return number

    def peer_has_finished(self) -> bool:
        """True if the peer has ended its direction or reset the connection; False if unknown."""
        return _polled(self.stream, _FINISHED)

    def peer_has_reset(self) -> bool:
        """True if the peer has reset the connection; False if unknown."""
        return _polled(self.stream, _LEFT)


def connection_turns(service: Service, transport: Transport) -> ConnectionTurns:
    """The turns of one connection."""
    peer = transport.peer[0] if transport.peer else ""
    return ConnectionTurns(service.fair_queue, peer, service.trusted, service.hooks.turns_by)


def _polled(stream: trio.abc.Stream, events: int) -> bool:
    if isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    if not isinstance(stream, trio.SocketStream):
        return False
    number = stream.socket.fileno()
    if number < 0:
        return True
    poll = select.poll()
    poll.register(number, events)
    return any(found & events for _, found in poll.poll(0))
