"""Accepting: several connections at a time, and on, when the system was short of descriptors or memory."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import trio

from .calls import LOG

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""accept(2): the limit of the process or of the system on open files, or no memory for a socket."""

PAUSE_S = 0.1
"""Connections that end meanwhile give back what is short. The kernel keeps those that wait (`sockets.BACKLOG`)."""

AT_ONCE = 64
"""Connections that are accepted in one pass of the scheduler, where there are places for them. With one in each, a
server with thousands of busy connections, whose passes take long, accepts a few a second: the kernel's queue overflows,
and it resets connections that have already sent a request."""

QUIET_S = 60.0
"""A shortage is told so often: it can last, and each line of it says the same."""


class Shortage:
    """Tells that connections cannot be accepted, for all listening sockets of a server."""

    def __init__(self) -> None:
        self._told_at = -inf

    def tell(self, error: OSError) -> None:
        """Log one line, without a traceback, unless there was one in the last `QUIET_S` seconds."""
        now = trio.current_time()
        if now - self._told_at >= QUIET_S:
            self._told_at = now
            LOG.error("no connection can be accepted now: %s", error.strerror)


@dataclass(frozen=True, slots=True)
class Places:
    """How many connections may be accepted together: those that wait in `sock`, as far as `free` says they find room.

    `expect` is called for each that was accepted: it counts from then on, as its task runs a pass later. Where none is
    free the next connection comes a pass later, so that one that has to make room for it has ended.
    """

    sock: socket.socket
    free: Callable[[], int]
    expect: Callable[[], None]


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """A listening socket whose `accept` outlasts a shortage. Owns `listener` and closes it.

    `places` are about the socket of `listener`; without them each `accept` takes one connection.
    """

    def __init__(
        self, listener: trio.abc.Listener[trio.SocketStream], shortage: Shortage, places: Places | None = None
    ) -> None:
        self._listener = listener
        self._shortage = shortage
        self._places = places
        self._accepted: deque[socket.socket] = deque()

    async def accept(self) -> trio.SocketStream:
        """The next connection. Raises what `trio.SocketListener` raises, but none of `SHORTAGES`.

        It lets other tasks run only where no connection was accepted together with an earlier one.
        """
        if self._accepted:
            await trio.lowlevel.checkpoint_if_cancelled()
            return trio.SocketStream(trio.socket.from_stdlib_socket(self._accepted.popleft()))
        while True:
            try:
                first = await self._listener.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                self._shortage.tell(error)
            else:
                self._accept_others()
                return first
            await trio.sleep(PAUSE_S)

    def _accept_others(self) -> None:
        """Take what waits behind the first one. Errors are left to the next `accept`, which meets them again."""
        places = self._places
        if places is not None:
            places.expect()
            with suppress(OSError):
                while len(self._accepted) < AT_ONCE - 1 and places.free() > 0:
                    self._accepted.append(places.sock.accept()[0])
                    places.expect()

    async def aclose(self) -> None:
        """Close the listening socket, and the connections that nobody has taken."""
        while self._accepted:
            self._accepted.popleft().close()
        await self._listener.aclose()
