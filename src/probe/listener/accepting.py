"""Accepting while the system is short of descriptors or memory: the listener waits and goes on."""

from __future__ import annotations

import errno
from math import inf

import trio

from .calls import LOG

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""accept(2): the limit of the process or of the system on open files, or no memory for a socket."""

PAUSE_S = 0.1
"""Connections that end meanwhile give back what is short. The kernel keeps those that wait (`sockets.BACKLOG`)."""

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


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """A listening socket whose `accept` outlasts a shortage. Owns `listener` and closes it."""

    def __init__(self, listener: trio.abc.Listener[trio.SocketStream], shortage: Shortage) -> None:
        self._listener = listener
        self._shortage = shortage

    async def accept(self) -> trio.SocketStream:
        """The next connection. Raises what `trio.SocketListener` raises, but none of `SHORTAGES`."""
        while True:
            try:
                return await self._listener.accept()
            except OSError as error:
                if error.errno not in SHORTAGES:
                    raise
                self._shortage.tell(error)
            await trio.sleep(PAUSE_S)

    async def aclose(self) -> None:
        """Close the listening socket."""
        await self._listener.aclose()
