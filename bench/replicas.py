"""Calls through HAProxy to rooms on one and on two replicas: how calls a second grow with processes.

Servers, balancer and load share the cores of one machine, so two replicas cannot do twice as much where one keeps more
than half of the cores busy. The ideal is the lesser of twice the calls of one, and of what the cores can do if a call
takes as much of them as with one.

A client uses one room. So half of the connections call in the rooms of one replica and half in those of the other;
where there is one replica, in two rooms each. If each connection called in all rooms, all of them would wait for the
slower replica together, and the faster one would have nothing to do: that gave 0.83 of the ideal, and this 0.94.

A virtual machine may run at half of its speed for seconds. So both clusters are there all the time and have windows in
pairs, each pair has an efficiency of its own, and the median of these counts.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias
from urllib.parse import urlsplit

import trio

from .client import Sessionless, Tool
from .cluster import Cluster, asked, new_room, running
from .servers import Cores, processor_s
from .tools import Load

CORES = 2
"""`Cores` gives as many to a measurement."""

# On each replica.
_ROOMS = 4
_TOOL = Tool("long_output", {"blocks": 1, "chars": 1024})
# The clients of one room may have all that a replica has.
_OPTIONS = ("--room-share", "1")


@dataclass(frozen=True, slots=True)
class Replicated:
    """Calls a second, and what one took of the processor, in microseconds: of replicas, balancer and load."""

    per_second: float
    replicas_us: float
    balancer_us: float
    load_us: float

    @property
    def all_us(self) -> float:
        """What a call takes of all cores together."""
        return self.replicas_us + self.balancer_us + self.load_us


Pair: TypeAlias = tuple[Replicated, Replicated]
"""One replica and two, measured one behind the other."""


def efficiency(pairs: Sequence[Pair]) -> float:
    """The calls a second of two replicas, as a part of the ideal: the median of the pairs."""
    return median(two.per_second / min(2 * one.per_second, CORES * 1e6 / one.all_us) for one, two in pairs)


async def replicated(cores: Cores, connections: int, pairs: int, *, warm_up_s: float, window_s: float) -> list[Pair]:
    """Calls in rooms that are divided evenly. Raises `WrongAnswerError` for whatever is not the tool's answer.

    Which of the two is first changes with each pair.
    """
    found: list[Pair] = []
    with cores.shared(), ExitStack() as stack:
        loads: dict[int, tuple[Cluster, Load]] = {}
        for replicas in (1, 2):
            starting = running("haproxy", *_OPTIONS, replicas=replicas)
            cluster = await trio.to_thread.run_sync(stack.enter_context, starting)
            port = urlsplit(cluster.url).port or 0
            groups = [[Sessionless(port, prefix=path) for path in paths] for paths in _rooms(cluster)]
            loads[replicas] = cluster, Load(port, _TOOL, groups, connections)
        for number in range(pairs):
            measured: dict[int, Replicated] = {}
            for replicas in (1, 2) if number % 2 else (2, 1):
                with loads[3 - replicas][0].stopped():
                    measured[replicas] = await _window(*loads[replicas], warm_up_s, window_s)
            found.append((measured[1], measured[2]))
    return found


async def _window(cluster: Cluster, load: Load, warm_up_s: float, window_s: float) -> Replicated:
    snapshots: list[tuple[float, float, float]] = []

    def processor_s_of_all() -> float:
        """Called before and after the window."""
        servers_s = sum(processor_s(process.pid) for process in cluster.replicas)
        snapshots.append((servers_s, processor_s(cluster.balancer.pid), _children_s()))
        return servers_s

    calls = await load.calls(processor_s_of_all, warm_up_s=warm_up_s, window_s=window_s)
    servers_s, balancer_s, load_s = (after - before for before, after in zip(*snapshots, strict=True))
    scale = calls.processor_us / servers_s
    return Replicated(calls.per_second, calls.processor_us, balancer_s * scale, load_s * scale)


def _rooms(cluster: Cluster) -> Sequence[Sequence[str]]:
    """Two groups of paths of rooms; with two replicas, each group is of one of them."""
    found: dict[int, list[str]] = {port: [] for port in cluster.ports}
    while any(len(paths) < _ROOMS for paths in found.values()):
        room = new_room(cluster.url)
        shown = urlsplit(room["read_only"]["api"]).path
        # The read-only address opens no room, so the replica that knows it has the room.
        (holder,) = (p for p in cluster.ports if asked("GET", f"http://127.0.0.1:{p}{shown}/room")[0] == 200)
        found[holder].append(urlsplit(room["room"]).path.rstrip("/"))
    paths = [path for each in found.values() for path in each[:_ROOMS]]
    return paths[: len(paths) // 2], paths[len(paths) // 2 :]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
