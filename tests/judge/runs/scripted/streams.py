"""The scripted client on the standard streams of servers of its own, side by side, and the verdicts on their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import structs

from probe.log import ndjson
from probe.log.event_log import Entry, Gap
from probe.log.events import ConnectionClosed, MessageReceived, MessageUnreadable, StdioChanged

from ....support.forks import forking
from ...logs import Judged, judged, recorded
from .client import Client
from .wire import Stdio

ENTRY_S: Final = 0.005
"""The time that an entry takes by a clock of marks."""
_AT_ONCE: Final = 8


@dataclass(frozen=True)
class Scene:
    """What a client does in one revision.

    `timed`: its log has the clock of the machine, else one of its marks, and of so many seconds for each entry.
    """

    revision: str
    act: Callable[[Client], object]
    timed: bool = False
    entry_s: float = ENTRY_S


def judged_alone(scenes: Mapping[str, Scene], folder: Path) -> dict[str, Judged]:
    """Play each scene with a server of its own, whose log is kept in the folder; gives the verdicts by their names."""
    starting = Lock()
    with forking() as start, ThreadPoolExecutor(_AT_ONCE) as pool:

        def perform(name: str) -> tuple[str, Judged]:
            scene = scenes[name]
            log = folder / name
            tools = "streaming" if "lifecycle.capabilities-respected" in name else "all"
            # The pages of questions are pages of the dashboard.
            pages = ("--dashboard", "0") if "elicit.url" in name else ()
            with starting:
                process = start(*pages, "--tools", tools, "--client", name, "--log-to", str(log), "--log-level", "off")
            wire = Stdio(process)
            scene.act(Client(wire, scene.revision))
            [file] = log.iterdir()
            with file.open("rb") as lines:
                items = ndjson.LogReader(lines)
                told = items if scene.timed else _marked(items, wire.pauses, scene.entry_s)
                return name, judged(recorded(told))[name]

        return dict(pool.map(perform, scenes))


def _marked(items: Iterator[Entry | Gap], pauses: Iterable[tuple[int, float]], entry_s: float) -> Iterator[Entry | Gap]:
    """The items of a log, whose clock goes on at the marks of the client, and a little with each entry.

    No verdict depends on how busy the machine was.
    """
    now, lines, seen = 0.0, 0, 0
    left = list(pauses)
    for item in items:
        if isinstance(item, Entry):
            now += entry_s
            if isinstance(item.fact, MessageReceived | MessageUnreadable) and item.context.exchange != seen:
                seen = item.context.exchange or 0
                lines += 1
            elif isinstance(item.fact, ConnectionClosed | StdioChanged):
                lines += 1
            while left and left[0][0] < lines:
                now += left.pop(0)[1]
            yield structs.replace(item, mono=now)
        else:
            yield item
