"""Makes the parts of a server: engines, the rooms and their application, sockets and the listener."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from ..engine.engine import Engine, Randomness
from ..engine.messages import goes_on
from ..engine.services import ALONE, SharedLimits
from ..log.ndjson import OpenedFile
from ..server import listener
from ..settings import Settings, build
from ..telemetry.requests import Source
from ..tools.catalogue import TOOLSETS
from ..web.opened_files import FilePages
from ..web.paths import Paths, SharedPages

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from ..judge.live import JudgeService, JudgeTurns
    from ..rooms.endpoint import RoomsEndpoint
    from ..rooms.room import Room
    from ..rooms.rooms import Rooms

# One person sees the whole file, so its records and pages may be larger than a server's.
SHOWING = {"host": "127.0.0.1", "judge": True, "call_records": 100_000}


def new_id() -> str:
    """256 bits in visible ASCII.

    2025-11-25 basic/transports: a session id SHOULD be "globally unique and cryptographically secure".
    """
    return secrets.token_urlsafe(32)


def make_engine(settings: Settings, opened: OpenedFile | None = None) -> Engine:
    """An engine with all tools. Raises `UnknownSelectionError` for the `tools` of the settings."""
    engine = _unchecked(settings, opened)
    engine.selection(settings.tools)
    return engine


def _unchecked(
    settings: Settings,
    opened: OpenedFile | None = None,
    *,
    shared: SharedLimits = ALONE,
    turns: JudgeTurns | None = None,
) -> Engine:
    made = partial(Engine, settings, TOOLSETS, epoch=time.time(), randomness=Randomness(new_id, secrets.token_bytes))
    if settings.judge:
        made = partial(made, new_judge=partial(live_judge, turns=turns))
    return made(opened=opened, shared=shared)


def live_judge(engine: Engine, turns: JudgeTurns | None = None) -> JudgeService:
    """A judge with every rule that has begun the log of an engine; `serve` follows it."""
    # Imports of a tenth of a second, unused without a judge.
    from ..judge.judge import Judge
    from ..judge.live import JudgeService
    from ..judge.rules.all import FUNCTIONS
    from ..judge.rules.catalogue import catalogue

    rules, opened = catalogue(), engine.opened
    judge = Judge(rules, FUNCTIONS)
    judge.begin(engine.header(str(rules.version)), living=opened is None)
    saved = None if opened is None else opened.log
    return JudgeService(engine.log, engine.clock, judge, saved, turns, time.thread_time)


def file_pages(opened: OpenedFile) -> FilePages:
    """The pages about a file that was dropped on the dashboard, with an engine of their own."""
    engine = make_engine(build(SHOWING), opened)
    paths = Paths(engine)
    return FilePages(engine, paths, paths.wait_idle)


def room_metrics(rooms: Rooms | None) -> Iterable[Metric]:
    """The metrics of the rooms at this moment; none without rooms."""
    if rooms is None:
        return ()
    # Most servers have no metrics.
    from ..rooms.metrics import families

    return families(rooms)


def make_rooms(engine: Engine, pages: SharedPages) -> Rooms:
    """The rooms of a server; their judges take turns."""
    # Most servers have no rooms.
    from ..judge.live import JudgeTurns
    from ..rooms.rooms import Rooms

    turns = JudgeTurns()

    def made(settings: Settings, shared: SharedLimits) -> Engine:
        return _unchecked(settings, shared=shared, turns=turns)

    return Rooms(engine, made, secrets.token_bytes, time.time, pages)


def export_rooms(rooms: Rooms, follow: Callable[[Engine, Source], None]) -> None:
    """Have `follow` export the spans and log records of each room, with its number."""
    from ..rooms.exported import HiddenSecrets, room_number
    from ..rooms.ids import secret_of

    def opened(room: Room) -> None:
        number = room_number(room.id)
        hide = HiddenSecrets([secret_of(room.id), secret_of(room.reading)], number)
        follow(room.engine, Source("room", {"mcp_probe.room": number}, hide))

    rooms.on_open(opened)


def with_rooms(rooms: Rooms, engine: Engine, paths: Paths) -> RoomsEndpoint:
    """The application of a server with rooms; `paths` serve what is not about rooms."""
    from ..rooms.endpoint import RoomsEndpoint

    return RoomsEndpoint(rooms, engine, paths, only=engine.settings.rooms == "only")


def listen(
    endpoint: Paths | RoomsEndpoint, settings: Settings, sockets: Sequence[socket.socket], rooms: Rooms | None = None
) -> Callable[..., Awaitable[NoReturn]]:
    """Returns a service for a nursery's `start`: it serves the application on the sockets, and starts with the URLs."""
    serving = partial(listener.serve, endpoint, settings, sockets)
    hooks = listener.Hooks(endpoint.sockets, goes_on, None if rooms is None else rooms.turns_by)
    return partial(serving, reserve=endpoint.beyond, hooks=hooks)


@asynccontextmanager
async def listening_sockets(settings: Settings | None) -> AsyncIterator[list[socket.socket]]:
    """Sockets that are open during the block; none without settings. Raises `listener.ListenError`."""
    with ExitStack() as opened:
        yield [opened.enter_context(found) for found in (listener.open_sockets(settings) if settings else ())]
