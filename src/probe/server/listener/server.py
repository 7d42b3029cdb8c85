"""`serve`: accepts connections until it is cancelled."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import NoReturn

import trio

from ...core.budgets import Shares
from ...core.clients import client_key, is_within, networks
from ...settings import Settings
from .calls import LOG, App, Contained, Message, Receive, Send
from .connection import converse, watch
from .sockets import tls_context, urls
from .transport import NO_HOOKS, Hooks, Incomplete, Service

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

_KIND = "max_connections"


class Shortage:
    """Logs that connections cannot be accepted, for all listening sockets of a server."""

    def __init__(self) -> None:
        self._logged_at = -inf

    def note(self, error: OSError) -> None:
        """Log one line, without a traceback, unless there was one in the last `QUIET_S` seconds."""
        now = trio.current_time()
        if now - self._logged_at >= QUIET_S:
            self._logged_at = now
            LOG.error("no connection can be accepted now: %s", error.strerror)


@dataclass(frozen=True, slots=True)
class Places:
    """The connections that may be accepted together: those waiting in `sock`, at most `free()` of them.

    `expect` is called for each accepted connection. It counts from then on, though its task starts a pass later.
    """

    sock: socket.socket
    free: Callable[[], int]
    expect: Callable[[], None]


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """A listening socket; its `accept` goes on after a shortage. Owns `listener` and closes it."""

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
                self._shortage.note(error)
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


class ConnectionLimit:
    """Accepts at most `max_connections` at a time, and of one address its share. Trusted proxies have no share.

    Beyond that there are `reserved_connections`. On these `reserve` answers (an ASGI application, or None for no
    reserved connections) while more than `max_connections` are open. The oldest of them is closed for the next one. So
    a client that holds all of them without a request does not keep out, for example, a health probe.
    """

    def __init__(self, service: Service, reserve: App | None) -> None:
        limits = service.settings.limits
        self._app = service.app
        self._reserve = service.app if reserve is None else reserve
        self._service = service
        self._reserving = replace(service, app=self._answer)
        self._most = limits.max_connections
        self._most_reserved = 0 if reserve is None else limits.reserved_connections
        self._shares = Shares(limits.address_share)
        self._inside = 0
        self._expected = 0
        self._refused = 0
        # Connections that were closed for a new one are not among these, but count until they have ended.
        self._beyond: deque[trio.CancelScope] = deque()

    def free(self) -> int:
        """The number of free places, without those of expected connections."""
        return self._most - self._inside - self._expected

    def expect(self) -> None:
        """Count an accepted connection; the caller passes it to `serve`."""
        self._expected += 1

    async def serve(self, transport: trio.SocketStream) -> None:
        self._expected -= 1
        try:
            holder = self._holder(transport)
        except OSError:
            # The peer has gone already.
            return
        if not self._shares.has_room(_KIND, holder, self._most):
            self._refuse()
            return
        if self._inside >= self._most + 2 * self._most_reserved:
            self._refuse()
            return
        with Contained("a connection"):
            self._shares.take(_KIND, holder)
            self._inside += 1
            try:
                if self._inside <= self._most:
                    await converse(self._service, transport)
                else:
                    await self._serve_reserved(transport)
            finally:
                self._inside -= 1
                self._shares.give_back(_KIND, holder)

    async def _serve_reserved(self, transport: trio.SocketStream) -> None:
        if len(self._beyond) >= self._most_reserved:
            self._beyond.popleft().cancel()
            self._refuse()
        with trio.CancelScope() as scope:
            self._beyond.append(scope)
            try:
                await converse(self._reserving, transport)
            finally:
                if not scope.cancel_called:
                    self._beyond.remove(scope)

    def _holder(self, transport: trio.SocketStream) -> str | None:
        address = str(transport.socket.getpeername()[0])
        return None if is_within(address, self._service.trusted) else client_key(address)

    def _answer(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        app = self._app if self._inside <= self._most else self._reserve
        return app(scope, receive, send)

    def _refuse(self) -> None:
        self._refused += 1
        if self._refused.bit_count() == 1:
            # Log only powers of two, so that a client with many connections does not fill the log.
            LOG.warning("%d connections are open; refused %d so far", self._inside, self._refused)


async def serve(
    app: App,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    reserve: App | None = None,
    hooks: Hooks = NO_HOOKS,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> NoReturn:
    """Serve `app` on listening `sockets` until cancelled, which is the only way to stop it.

    `task_status.started` receives the base URLs. `app` is called for the scopes `http` and `websocket`, without
    `lifespan`: the caller starts what the application needs before `serve`, and stops it afterwards. `reserve` answers
    instead of `app` on the `reserved_connections`; without it connections beyond `max_connections` are closed at once.

    Resource handling: takes over `sockets` and closes them. When cancelled, the listening sockets are closed at once,
    the application calls are cancelled, and every connection ends within a second, whatever its peer does.

    Error handling: raises `ListenError` if the certificate cannot be used, and `NetworksError`. Errors of connections
    and application calls are logged to `probe.listener` and not raised.
    """
    shortage = Shortage()
    try:
        tls = tls_context(settings)
        incomplete = Incomplete(settings.limits.max_incoming_bytes, settings.limits.address_share)
        trusted = networks(settings.trusted_proxies.split(","))
        service = Service(app, settings, tls, incomplete, trusted, hooks)
        limit = ConnectionLimit(service, reserve)
        places = [Places(found, limit.free, limit.expect) for found in sockets]
        listeners = [PatientListener(_listener(each.sock), shortage, each) for each in places]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, service)
            task_status.started(urls(sockets, secure=tls is not None))
            await trio.serve_listeners(limit.serve, listeners)
    finally:
        for found in sockets:
            found.close()


def _listener(found: socket.socket) -> trio.SocketListener:
    return trio.SocketListener(trio.socket.from_stdlib_socket(found))
