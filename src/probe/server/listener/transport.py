"""The byte stream of a connection, the addresses of its ends, and the state that all connections share."""

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
from importlib import import_module
from itertools import count
from typing import Any, Final, Protocol, TypeAlias

import trio
from trio.lowlevel import ParkingLot

from ...core.clients import Network
from ...settings import Settings
from .calls import App
from .fair_queue import ConnectionTurns, FairQueue
from .incomplete import Incomplete
from .request_head import KnownHeads

READ_PIECE = 32 * 1024
"""Bytes per read: few enough that what one read can turn into (messages, frames) stays below a few megabytes."""

Address = tuple[str, int] | None

_LEFT = select.POLLHUP | select.POLLERR
_FINISHED = getattr(select, "POLLRDHUP", 0) | _LEFT
"""A FIN, which not every system tells without reading (only Linux has POLLRDHUP), and a reset."""


GoesOn: TypeAlias = Callable[[bytes], bool]
"""Whether a request with this body goes on with what another one began, and so takes the turn of a message."""


class ConnectionLog(Protocol):
    """Is told of the connections below HTTP. Its methods neither wait nor raise."""

    def opened(self, number: int, address: str, port: int | None) -> None:
        """A connection was accepted; `number` counts from 1 and does not repeat."""

    def refused(self, number: int, status: int | None, why: str) -> None:
        """The bytes on it are no valid HTTP, or cannot be answered. `status` is None where there was no answer."""

    def closed(self, number: int, by: str, requests: int) -> None:
        """It is closed, by `client` or why by the server, and has carried so many requests."""


class WatchedConnection(Protocol):
    """A connection that `watch` holds to its limits.

    `ended_by` is `client`, or why the server closed it; it is complete when the connection is over.
    """

    @property
    def ended_by(self) -> str:
        """`client`, or why the server closed it."""

    @property
    def requests(self) -> int:
        """How many requests it has carried."""

    async def check(self, now: float) -> None:
        """End the connection, without waiting for its peer, if it has exceeded a limit at the time `now`."""

    async def abort(self) -> None:
        """Close the socket, whatever is under way."""


class DateField:
    """The value of a Date header, made anew once in a second."""

    def __init__(self) -> None:
        self._second = 0
        self._value = b""

    def __call__(self) -> bytes:
        """The value for now."""
        now = int(time.time())
        if now != self._second:
            self._second, self._value = now, formatdate(now, usegmt=True).encode()
        return self._value


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions by which a listener tells its program something, or asks it. `log` is told of each connection.

    `goes_on` is asked about HTTP/1.1 requests whose body is short and has come with the head, or right behind it: those
    that go on with what others began do not queue behind requests that begin something.
    """

    log: ConnectionLog | None = None
    goes_on: GoesOn | None = None


NO_HOOKS: Final = Hooks()


class LateModules:
    """Modules of the listener that many servers never need, each loaded in a thread when a connection first needs it.

    So the server starts sooner, and no other connection waits for the loading.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}
        self._loading = trio.Lock()

    async def get(self, name: str) -> Any:
        """A module of this package by its name there. Raises what its import raises."""
        if name not in self._loaded:
            # Those that come at once wait here, and not each in a thread: trio has forty for the whole program.
            async with self._loading:
                if name not in self._loaded:
                    self._loaded[name] = await trio.to_thread.run_sync(import_module, f"{__package__}.{name}")
        return self._loaded[name]


@dataclass(frozen=True, slots=True)
class Service:
    """The state that all connections of a listener share. `running` are those that `watch` looks at."""

    app: App
    settings: Settings
    tls: ssl.SSLContext | None
    incomplete: Incomplete
    trusted: Sequence[Network]
    hooks: Hooks = NO_HOOKS
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    running: set[WatchedConnection] = field(default_factory=set)
    fair_queue: FairQueue = field(default_factory=FairQueue)
    ended: ParkingLot = field(default_factory=ParkingLot)
    date: DateField = field(default_factory=DateField)
    heads: KnownHeads = field(default_factory=KnownHeads)
    late: LateModules = field(default_factory=LateModules)

    async def wait_ended(self) -> None:
        """Wait until no connection runs."""
        while self.running:
            await self.ended.park()


@dataclass(frozen=True, slots=True)
class Transport:
    """The byte stream of a connection, behind TLS if there is any, and the first bytes that came.

    `number` tells the connections of a listener apart.
    """

    stream: trio.abc.Stream
    peer: Address
    here: Address
    first: bytes = b""
    number: int = 0
    plain: bool = field(init=False, repr=False, compare=False)
    """Whether the bytes of the stream are those of a socket that the system reads and writes by its number."""

    def __post_init__(self) -> None:
        """Find out how the stream is read and written, once."""
        plain = isinstance(self.stream, trio.SocketStream) and sys.platform != "win32"
        object.__setattr__(self, "plain", plain)

    def extensions(self, stream_id: int | None = None) -> dict[str, Any]:
        """The ASGI extension that says which connection, and which HTTP/2 stream of it, carries a request."""
        return {"probe.connection": {"number": self.number, "stream_id": stream_id}}

    @property
    def secure(self) -> bool:
        """Whether it is TLS; then nothing can be sent any more once the peer has ended its direction."""
        return isinstance(self.stream, trio.SSLStream)

    async def read(self, most: int) -> bytes:
        """Receive the next bytes of the peer, at least one; none when it sends nothing more.

        Raises what the stream's `receive_some` raises, and `OSError`. A peer mostly waits for its answer before it says
        more, so this waits for the socket first, where trio's own way tries in vain before.
        """
        if not self.plain:
            return bytes(await self.stream.receive_some(most))
        while True:
            await trio.lowlevel.wait_readable(self.number_of_socket)
            # Asked again: it may have been closed meanwhile, and the number be another connection's.
            with suppress(BlockingIOError):
                return os.read(self.number_of_socket, most)

    def read_now(self, most: int) -> bytes | None:
        """The bytes that the socket has already; empty where the peer has ended, None where nothing is there.

        None also where it cannot be asked. Raises `OSError`, and `trio.ClosedResourceError`.
        """
        if not self.plain:
            return None
        try:
            return os.read(self.number_of_socket, most)
        except BlockingIOError:
            return None

    def write_now(self, data: bytes | memoryview) -> int:
        """How much of it the socket takes without waiting; 0 where that cannot be told. Raises `OSError`.

        trio's own way gives every other task a turn first, which costs as much as the system call.
        """
        if not self.plain:
            return 0
        try:
            return os.write(self.number_of_socket, data)
        except BlockingIOError:
            return 0

    @property
    def number_of_socket(self) -> int:
        """The number of the socket; raises `trio.ClosedResourceError` where it is closed."""
        assert isinstance(self.stream, trio.SocketStream)
        number = self.stream.socket.fileno()
        if number < 0:
            raise trio.ClosedResourceError("this socket is closed")
        return number

    def peer_has_finished(self) -> bool:
        """Whether the peer has ended its direction or reset the connection, without reading. False if unknown."""
        return _polled(self.stream, _FINISHED)

    def peer_has_reset(self) -> bool:
        """Whether nothing can be sent to the peer any more. False if unknown."""
        return _polled(self.stream, _LEFT)


def connection_turns(service: Service, transport: Transport) -> ConnectionTurns:
    """The turns of the requests of a connection."""
    return ConnectionTurns(service.fair_queue, transport.peer[0] if transport.peer else "", service.trusted)


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
