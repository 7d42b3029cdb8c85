"""One room: its engine and its application, when it was used, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, Final

import trio

from ..engine.engine import Engine
from ..server.endpoints.asgi import WHOLE_BODY, Receive, Scope, Send
from ..settings import Limits, Settings, described
from ..web.paths import Paths
from ..wire.errors import SHUTTING_DOWN
from .ids import secret_of

# Seconds for downloads of the log to end, once the work of a room is over.
_DOWNLOAD_S: Final = 10.0
_ENDED: Final = "this room has ended"
# Seconds for cancelled requests to leave, whatever they shield.
_LEAVE_S: Final = 10.0
# Seconds for readers to take the last bytes of their streams after the drain.
_FLUSH_S: Final = 2.0
# Seconds to take the last entries of the log: what follows it, such as the export of spans, outlives the room.
_READ_S: Final = 1.0

_DOWNLOADS: Final = ("/api/export", "/api/events.ndjson")

COUNTED: Final = (
    "max_sessions",
    "max_tasks",
    "max_calls",
    "max_listens",
    "max_interactions",
    "max_websockets",
    "max_tool_hosts",
    "max_draft_streams",
    "max_feed_readers",
)
"""The limits of which a room has its share, and all rooms together have a bound."""

# Bounds of one message, stream or client stay. So does that of the log: of all rooms, the one with the most gives up.
_SHARED: Final = (
    *COUNTED,
    "max_incoming_bytes",
    "max_unsent_bytes",
    "max_replay_bytes",
    "draft_stream_bytes",
    "call_records",
)


def room_settings(settings: Settings) -> Settings:
    """The settings of all rooms: `room_share` of the limits, and no file, key or secret of the server.

    Each room has its id as `toolhost_secret`.
    """
    limits = settings.limits
    rows = {spec.name: spec for spec in described(Limits)}
    shares = {name: int(getattr(limits, name) * limits.room_share) for name in _SHARED}
    least = {name: max(share, int(rows[name].low or 0)) for name, share in shares.items()}
    # The largest body must fit in seven eighths of it.
    least["max_incoming_bytes"] = max(least["max_incoming_bytes"], -(-limits.max_body_bytes * 8 // 7))
    return replace(
        settings,
        rooms="off",
        toolhost_secret="",
        forward_secret="",
        request_state_keys="",
        audit_db="",
        metrics=False,
        telemetry=False,
        # One address may have the whole room.
        limits=replace(limits, **least, address_share=1.0),
    )


class Room:
    """A room under two ids: `id` for its owner, `reading` for the read-only address.

    It is in use while a request of the protocol runs or a task works; `idle_s` seconds after the last use it ends.
    `holder` is the client address that opened it. `release` is called once, when it has ended. `ready` is set when
    requests can be served, or never will be.
    """

    def __init__(
        self,
        id: str,
        reading: str,
        engine: Engine,
        paths: Paths,
        idle_s: float,
        holder: str | None,
        release: Callable[[Room], None],
    ) -> None:
        self.id = id
        self.reading = reading
        # Both have the same routing key before it.
        self.secret, self.shown = (secret_of(each).encode() for each in (id, reading))
        self.engine = engine
        self.paths = paths
        self.idle_s = idle_s
        self.holder = holder
        self.ready = trio.Event()
        self.ended = trio.Event()
        # By number in the process: the number in the room, and its requests.
        self.connections: dict[int, list[int]] = {}
        self.numbers = count(1)
        self.requests: set[trio.CancelScope] = set()
        self.shown_requests: set[trio.CancelScope] = set()
        # Those with a body of which more is to come: nothing of them waits to be sent.
        self._arriving: set[trio.CancelScope] = set()
        # True from a request that found no place on, until one finds a place.
        self.is_full = False
        self._downloads = 0
        self._left = trio.lowlevel.ParkingLot()
        self._hurried = False
        # One of `rooms.ENDED`.
        self.why = "failed"
        self._release = release
        self._ending = trio.Event()
        self._in_use = 0
        self._used_at = engine.clock.now()

    def expires_at(self) -> float:
        """When it ends if it is used no more, in seconds since 1970."""
        clock = self.engine.clock
        return clock.wall() + self._last_use() + self.idle_s - clock.now()

    @property
    def is_over(self) -> bool:
        """True if its owner or its idle time has ended it. During a drain it takes requests."""
        return self.ended.is_set() or (self._ending.is_set() and self.why != "shutdown")

    def _last_use(self) -> float:
        tasks = self.engine.tasks
        if self._in_use or tasks.any_works:
            return self.engine.clock.now()
        return max(self._used_at, tasks.worked_at)

    async def end(self) -> None:
        """Cancel running work, and return when the room has ended."""
        self.engine.hurry()
        self.why = "owner"
        self._ending.set()
        await self.ended.wait()

    def hurry(self) -> None:
        """Make `drain` end without waiting for work or downloads."""
        self.engine.hurry()
        self._hurried = True
        self._left.unpark_all()

    async def serve(self) -> None:
        """Run it until `end`, the end of its idle time, or the drain of its engine."""
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.engine.serve)
                self.ready.set()
                await self._wait_over()
                if not self._ending.is_set():
                    self.why = "idle"
                    self._ending.set()
                if self.is_over:
                    _cancel(self._arriving)
                await self.drain(_ENDED)
                with trio.move_on_after(_FLUSH_S):
                    await self.paths.wait_idle()
                self._cancel_requests()
                nursery.cancel_scope.cancel()
        finally:
            # Some may have come since, or the engine has failed.
            self._cancel_requests()
            with ExitStack() as last:
                # The last one first, and each whatever fails.
                last.callback(self.ready.set)
                last.callback(self.ended.set)
                last.callback(self._release, self)
                if self.engine.observer.has_followers:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + _READ_S):
                        await self.engine.observer.reach(self.engine.log.last)

    async def let_go(self) -> None:
        """Free what it had, once its requests have left. The collector has to, if one does not leave in time."""
        with trio.move_on_after(_LEAVE_S):
            while self.requests or self.shown_requests:
                await self._left.park()
            self.engine.let_go()

    def _cancel_requests(self) -> None:
        _cancel({*self.requests, *self.shown_requests})

    @contextmanager
    def until_over(self) -> Iterator[None]:
        """Cancel the block, which reads a body, when its owner or its idle time ends the room. It swallows that."""
        with trio.CancelScope() as reading:
            self._arriving.add(reading)
            try:
                yield
            finally:
                self._arriving.remove(reading)

    async def drain(self, why: str = SHUTTING_DOWN) -> None:
        """Let running work and downloads of the log finish within their times. Clients get the reason `why`."""
        if not self._ending.is_set():
            self.why = "shutdown"
            self._ending.set()
        if not self.engine.draining:
            await self.engine.drain(why)
        await self.engine.drained.wait()
        # A longer one breaks off: its response has no end, which is an error for every client.
        with trio.move_on_after(_DOWNLOAD_S):
            while self._downloads and not self._hurried:
                await self._left.park()

    async def _wait_over(self) -> None:
        while not self._ending.is_set():
            at = self._last_use() + self.idle_s
            if at <= self.engine.clock.now():
                return
            with trio.move_on_at(at):
                await self._ending.wait()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Serve one request of its owner. False if the room ended before a response."""
        is_use = not _looks(scope["path"])
        self._in_use += is_use
        try:
            return await self._run(self.requests, scope, receive, send)
        finally:
            self._in_use -= is_use
            if is_use:
                self._used_at = self.engine.clock.now()

    async def show(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """As `answer`, for a reader: it is no use of the room."""
        return await self._run(self.shown_requests, scope, receive, send)

    async def _run(self, requests: set[trio.CancelScope], scope: Scope, receive: Receive, send: Send) -> bool:
        has_begun = False

        async def receiving() -> MutableMapping[str, Any]:
            event = await receive()
            if not event.get("more_body"):
                self._arriving.discard(running)
            return event

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            self._arriving.discard(running)
            await send(message)

        is_download = scope["path"].startswith(_DOWNLOADS)
        arrives = scope["type"] == "http" and WHOLE_BODY not in scope.get("extensions", {})
        with trio.CancelScope() as running:
            requests.add(running)
            if arrives:
                self._arriving.add(running)
            self._downloads += is_download
            try:
                await self.paths(scope, receiving if arrives else receive, sending)
            finally:
                requests.remove(running)
                self._arriving.discard(running)
                self._downloads -= is_download
                self._left.unpark_all()
        return has_begun or not running.cancelled_caught


def _cancel(requests: set[trio.CancelScope]) -> None:
    for request in requests:
        request.cancel()


def _looks(path: str) -> bool:
    """True for requests that an open dashboard makes by itself."""
    return path.startswith("/api/") or path == "/dashboard/events"
