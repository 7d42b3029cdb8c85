"""All rooms of one process: opened, found, and ended. Each room is one task of `Rooms.serve`."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final, NamedTuple

import trio

from ..core.budgets import Admission, Rates
from ..engine.engine import Engine
from ..engine.modern.rounds import KEY_BYTES, keys_from
from ..engine.services import AddressLimitError, AddressShares, Limit, LimitError, SharedLimits
from ..log.events import LimitReached
from ..server.endpoints.asgi import Scope, holder_of
from ..server.endpoints.rate_limit import RateLimiter, messages_of
from ..server.listener.calls import Contained
from ..settings import Settings
from ..web.paths import Paths, SharedPages
from ..wire.errors import Refusal, Rejection, shutting_down, too_many
from .ids import FRESH_S, RANDOM_BYTES, SKEW_S, RoomIds, secret_of
from .room import COUNTED, Room, room_settings

logger = logging.getLogger(__name__)

_HOUR_S: Final = 3600.0
# No id opens its room for longer.
_ENDED_S: Final = FRESH_S + 2 * SKEW_S
_WARN_S: Final = 60.0
_AHEAD: Final = (
    f"a room cannot be opened: the clock of the process that made its id is over {SKEW_S:g} s ahead of this one"
)
_NOT_HERE: Final = (
    "a request is for a room that is not here: it ended, or another process has it and the balancer does not hash the "
    "path segment behind /r/"
)
_TWICE: Final = (
    "a request has a session that its room never began: another process has that room, too, and the balancer does not "
    "hash the path segment behind /r/; or the client made the session up"
)
_NOT_BEGUN: Final = (
    "This process has not opened the room, so there is no such session or page: begin without one. If the room is in "
    "use, another process has it: the balancer must hash the path segment behind /r/ (docs/rooms.md)"
)
# They take a megabyte, as those of the rate of requests.
_MOST_CLIENTS: Final = 10_000
# Ids of rooms that have ended. Of more, the first to end may open anew while its id is fresh.
_MOST_ENDED: Final = 10_000
# So many sessions, tasks and so on for each place of `max_rooms`, all rooms together: by default 1,000 sessions for one
# address, which take 0.13 GB at the most, and not 100 in each of its rooms.
_OF_EACH_ROOM: Final = 4


ENDED: Final = ("owner", "idle", "shutdown", "failed")
"""Why rooms end: by their owner, after their time without use, with the server, or by a defect."""

REFUSED: Final = ("unknown", "elsewhere", "full", "address", "rate", "shutdown")
"""Why there is no room: there is none with the id, or in another process; `max_rooms`, `address_share`,
`rooms_per_hour`; the server ends."""


class Found(NamedTuple):
    """A room, and if the id that found it is the owner's."""

    room: Room
    is_owner: bool


class Rooms:
    """The rooms of one process. `serve` owns their tasks; `make_engine` makes the engine of one.

    `root` is the engine of the process: its limits bound all rooms, and its log has each refusal by one of these.
    `pages` are those of the process. `wall` returns the seconds since 1970 by the clock of the machine, whose
    corrections the engine's own does not follow.
    """

    def __init__(
        self,
        root: Engine,
        make_engine: Callable[[Settings, SharedLimits], Engine],
        random_bytes: Callable[[int], bytes],
        wall: Callable[[], float],
        pages: SharedPages,
    ) -> None:
        settings = root.settings
        limits = settings.limits
        self.idle_s = settings.room_idle_s
        self._root = root
        self._make_engine = make_engine
        self._random_bytes = random_bytes
        self._wall = wall
        self._warned: dict[str, float] = {}
        self._settings = room_settings(settings)
        self._ids = RoomIds(keys_from(settings.request_state_keys) or [random_bytes(KEY_BYTES)])
        self._pages = pages
        self._shared = replace(root.shared_limits(), counts=_limits_of_all(root))
        self.rate_limiter = RateLimiter(root.services)
        self._rates = Rates(limits.requests_per_second, limits.request_burst, 2 * limits.max_rooms)
        self._places = Limit("max_rooms", "There are {most} rooms already ({name})", root.services.shares)
        self._made = Rates(limits.rooms_per_hour / _HOUR_S, max(1, int(limits.rooms_per_hour)), _MOST_CLIENTS)
        self.opened = 0
        self.ended, self.refused = Counter[str](), Counter[str]()
        self._by_id: dict[str, Found] = {}
        self._on_open: list[Callable[[Room], None]] = []
        self._on_end: list[Callable[[Room], None]] = []
        # By trio's clock. A client that goes on must not open its room again while the id is fresh.
        self._ended: OrderedDict[str, float] = OrderedDict()
        # Each has a place of `max_rooms`, so the channel is never full.
        self._to_serve, self._served = trio.open_memory_channel[Room](limits.max_rooms)

    def __len__(self) -> int:
        return len(self._by_id) // 2

    def new_id(self, holder: str | None) -> str:
        """An id for the client address `holder`; None has no limit. Its room opens at the first request for it.

        Raises `Rejection` while the server drains, and beyond `rooms_per_hour`.
        """
        clock = self._root.clock
        if self._root.draining:
            self.refused["shutdown"] += 1
            raise shutting_down()
        if holder is not None:
            verdict = self._made.take(holder, clock.now())
            if verdict.first:
                self._root.log.append(LimitReached("rooms_per_hour", self._root.settings.limits.rooms_per_hour))
            if verdict.wait_s:
                self.refused["rate"] += 1
                why = "Too many rooms from this address (rooms_per_hour)"
                raise too_many(why, int(verdict.wait_s) + 1)
        return self._ids.make(self._random_bytes(RANDOM_BYTES), self._wall())

    def reading(self, id: str) -> str:
        """The id of the read-only address, for an id that this class made."""
        return self._ids.reading(id)

    async def find(self, id: str, holder: str | None, goes_on: Callable[[], bool] = bool) -> Found | None:
        """The room with an id; one that is fresh is opened for the client address `holder`.

        Returns None for any other id. Raises `Rejection` beyond `max_rooms`, if the server drains, or if the request
        cannot be the first for its room, so that another process has the room: if `goes_on`, which only a room that
        is not open needs, returns true.
        """
        found = self._by_id.get(id)
        if found is None and self._is_to_open(id):
            # Without shared keys no other process can have made the id.
            if self._root.settings.request_state_keys and goes_on():
                self._warn(_NOT_BEGUN)
                self.refused["elsewhere"] += 1
                raise Rejection(Refusal.UNKNOWN_SESSION, _NOT_BEGUN)
            found = self._open(id, holder)
        if found is not None:
            await found.room.ready.wait()
        if found is None or found.room.is_over:
            self.refused["unknown"] += 1
            return None
        return found

    def _is_to_open(self, id: str) -> bool:
        now = self._root.clock.now()
        while self._ended and next(iter(self._ended.values())) < now - _ENDED_S:
            self._ended.popitem(last=False)
        age = None if id in self._ended else self._ids.age(id, self._wall())
        if age is None:
            return False
        if age < -SKEW_S:
            self._warn(_AHEAD)
        elif age > FRESH_S and self._root.settings.request_state_keys:
            self._warn(_NOT_HERE)
        return -SKEW_S <= age <= FRESH_S

    def _warn(self, what: str) -> None:
        """Write a line to the log of the process, at most once a minute."""
        now = self._root.clock.now()
        if now >= self._warned.get(what, -inf) + _WARN_S:
            self._warned[what] = now
            logger.warning(what)

    def _open(self, id: str, holder: str | None) -> Found:
        if self._root.draining:
            self.refused["shutdown"] += 1
            raise shutting_down()
        try:
            self._places.acquire(holder, self._root.services.recorder)
        except LimitError as full:
            self.refused["address" if isinstance(full, AddressLimitError) else "full"] += 1
            raise full.rejection() from None
        reading = self._ids.reading(id)
        with ExitStack() as undone:
            undone.callback(self._places.release, holder)
            engine = self._make_engine(replace(self._settings, toolhost_secret=secret_of(id)), self._shared)
            undone.callback(engine.leave_shared)
            paths = Paths(engine, pages=self._pages, pace=partial(self._pace, id))
            room = Room(id, reading, engine, paths, self.idle_s, holder, self._release)
            for opened in self._on_open:
                opened(room)
            undone.pop_all()
        self._by_id[id], self._by_id[reading] = Found(room, is_owner=True), Found(room, is_owner=False)
        self._to_serve.send_nowait(room)
        self.opened += 1
        return self._by_id[id]

    def take_turn(self, found: Found, holder: str | None) -> float:
        """Count a request for the rate of its room, or of its readers; returns the seconds to wait."""
        room = found.room
        if holder is None:
            return 0.0
        return self._recorded(room, self._rates.take(room.id if found.is_owner else room.reading, self._now()))

    def turns_by(self, target: bytes) -> Hashable:
        """The key by which requests for a room take turns with all others: the client address that opened the room.

        So a room gets no more turns by clients at many addresses. Its readers have other turns, so that they do not
        delay the owner. None for other targets, and for a room that was opened on this machine.
        """
        parts = target.partition(b"?")[0].split(b"/", 4)
        found = self._by_id.get(b"/".join(parts[2:4]).decode("latin-1")) if parts[1:2] == [b"r"] else None
        if found is None or found.room.holder is None:
            return None
        return found.room.holder if found.is_owner else (found.room.holder, "readers")

    def note_session(self, room: Room, session: str) -> None:
        """Warn in the log of the process if a room has refused a session that it never began."""
        if room.engine.sessions.label(session) is None:
            self._warn(_TWICE)

    def _pace(self, id: str, scope: Scope, size: int) -> float:
        """Count a message on a WebSocket for its address over all rooms, and for its room over all addresses."""
        wait_s = self.rate_limiter.pace(scope, size)
        found = self._by_id.get(id)
        if found is None or holder_of(scope) is None:
            return wait_s
        charged = self._rates.charge(id, messages_of(size), self._now())
        return max(wait_s, self._recorded(found.room, charged))

    def _recorded(self, room: Room, verdict: Admission) -> float:
        if verdict.first:
            most = self._root.settings.limits.requests_per_second
            room.engine.log.append(LimitReached("requests_per_second", most))
        return verdict.wait_s

    def _now(self) -> float:
        return self._root.clock.now()

    def on_open(self, opened: Callable[[Room], None]) -> None:
        """Call it with each room before its first request."""
        self._on_open.append(opened)

    def on_end(self, ended: Callable[[Room], None]) -> None:
        self._on_end.append(ended)

    def _release(self, room: Room) -> None:
        del self._by_id[room.id], self._by_id[room.reading]
        self._places.release(room.holder)
        self._ended[room.id] = self._root.clock.now()
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)
        self.ended[room.why] += 1
        with ExitStack() as last:
            for ended in self._on_end:
                last.callback(ended, room)
            last.callback(room.engine.leave_shared)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for room in self._served:
                nursery.start_soon(_serve, room)
                # Its task has it; here it would be kept until the next one opens.
                del room

    async def drain(self) -> None:
        async with trio.open_nursery() as nursery:
            for room in self._rooms():
                nursery.start_soon(room.drain)

    def hurry(self) -> None:
        for room in self._rooms():
            room.hurry()

    async def wait_ended(self) -> None:
        """Wait until all present rooms have ended."""
        for room in self._rooms():
            await room.ended.wait()

    def _rooms(self) -> list[Room]:
        return [found.room for found in self._by_id.values() if found.is_owner]


def _limits_of_all(root: Engine) -> Mapping[str, Limit]:
    limits, why = root.settings.limits, "All rooms together have too many: the limit {name} is {most}"
    most = {name: max(getattr(limits, name), _OF_EACH_ROOM * limits.max_rooms) for name in COUNTED}
    shares = AddressShares(replace(limits, **most), root.services.recorder, scope="all_rooms:")
    return {name: Limit(name, why, shares) for name in COUNTED}


async def _serve(room: Room) -> None:
    # A defect in one room must not end the others.
    with Contained("a room"):
        await room.serve()
    with Contained("a room that has ended"):
        await room.let_go()
