"""Accept several connections at a time, also after a shortage of descriptors or memory."""

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
"""Errors of accept(2): the limit of open files of the process or the system, or no memory for a socket."""

PAUSE_S = 0.1
"""The pause after a shortage, in seconds.

Connections that end meanwhile free descriptors. The kernel keeps waiting connections (`sockets.BACKLOG`).
"""

AT_ONCE = 64
"""The most connections that are accepted in one pass of the scheduler.

With one in each pass, a server with thousands of busy connections accepts only a few a second, since its passes are
long. The kernel's queue then overflows, and resets connections that have already sent a request.
"""

QUIET_S = 60.0
"""The shortest time between two log lines about a shortage, in seconds."""


class Shortage:
    """Logs that connections cannot be accepted, for all listening sockets of a server."""

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
    """The connections that may be accepted together: those waiting in `sock`, at most `free()` of them.

    `expect` is called for each accepted connection. It counts from then on, though its task starts a pass later. With
    no free place the next connection is accepted a pass later, so that a connection that makes room has ended.
    """

    sock: socket.socket
    free: Callable[[], int]
    expect: Callable[[], None]


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """A listening socket; its `accept` goes on after a shortage. Owns `listener` and closes it.

    `places` belongs to the same socket; without it each `accept` takes one connection.
    """

    def __init__(
        self, listener: trio.abc.Listener[trio.SocketStream], shortage: Shortage, places: Places | None = None
    ) -> None:
        self._listener = listener
        self._shortage = shortage
        self._places = places
        self._accepted: deque[socket.socket] = deque()

    async def accept(self) -> trio.SocketStream:
        """The next connection. Raises the errors of `trio.SocketListener`, but none of `SHORTAGES`.

        Other tasks run meanwhile, unless the connection was accepted together with an earlier one.
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
        """Accept the connections behind the first one. An error is left to the next `accept`, which gets it again."""
        places = self._places
        if places is not None:
            places.expect()
            with suppress(OSError):
                while len(self._accepted) < AT_ONCE - 1 and places.free() > 0:
                    self._accepted.append(places.sock.accept()[0])
                    places.expect()

    async def aclose(self) -> None:
        """Close the listening socket, and the accepted connections that were not returned."""
        while self._accepted:
            self._accepted.popleft().close()
        await self._listener.aclose()
