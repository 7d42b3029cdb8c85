"""`python -m load`: one flood after the other against one server, and a table of what it did.

With `--rooms` each flood comes from inside one room, and the client beside it is those of all other rooms. With
`--idle` so many rooms are opened on a server of their own, before, and left alone.

The exit code is 1 when memory has grown beyond its margin, a task is left, or the client beside a flood was not served
within the aim. The server is a process on one core, the flood and the client beside it share the other.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio
from bench.servers import Cores

from . import floods, rooms
from .process import ROOT, Target, target, visit
from .report import AIM_MS, MARGIN_MB, Found, faults, load, save, table
from .rooms import percentile

_CALLS_PER_SECOND = 5
# Of the clients of all rooms.
_CALLS_IN_ROOMS = 50
# They load what all rooms share.
_FIRST_ROOMS = 20
# For new rooms, beyond those that are in use.
_MORE_ROOMS = 500
# Beyond every time in the settings below: what is not gone by then does not go.
_SETTLE_S = 30.0
_SAMPLE_S = 0.25
# More than a process keeps for itself, and less than the margin: what has its time is waited for.
_KEPT_BYTES = 8_000_000

SETTINGS: dict[str, Any] = {
    "port": 0,
    "trusted_proxies": "127.0.0.1",
    # Thousands of sessions, each with two connections.
    "max_sessions": 3000,
    "max_connections": 8000,
    # What a flood leaves behind has to be gone within seconds, not within an hour.
    "session_idle_s": 3,
    "session_first_s": 3,
    "stream_retention_s": 3,
    "stream_max_s": 6,
    "task_ttl_ms": 4000,
    "task_ttl_max_ms": 4000,
    "write_timeout_s": 4,
    # More than the twenty seconds between the calls of a session.
    "idle_connection_s": 25,
    # So small that the first flood fills them: otherwise their filling would look like a leak.
    "event_log_events": 2000,
    "event_log_bytes": 8 * 1024 * 1024,
    "call_records": 200,
}


async def _flooded(
    server: Target, name: str, seconds: float, share: float, hostile: str, others: Sequence[str]
) -> Found:
    paths = [hostile, *others] if others else []
    await rooms.read_by_judges(server, paths)
    before, usual = await server.figures()
    peak = before
    found: dict[str, Any] = {}

    async def visited() -> None:
        found.update(await visit(server.port, seconds, _CALLS_IN_ROOMS if others else _CALLS_PER_SECOND, others))

    async def watched() -> None:
        nonlocal peak
        while True:
            peak = max(peak, server.memory())
            await trio.sleep(_SAMPLE_S)

    flood, run = floods.start(name, server.port, seconds, share, hostile)
    async with trio.open_nursery() as beside:
        beside.start_soon(watched)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(visited)
            await run()
        beside.cancel_scope.cancel()
    await rooms.read_by_judges(server, paths)
    after, left = await _settled(server, before, usual)
    late = found["late_ms"]
    return Found(
        flood=name,
        per_second=round(flood.done / seconds, 1),
        errors=dict(flood.errors),
        served=len(late),
        failed=found["failed"],
        late_p50=percentile(late, 50),
        late_p99=percentile(late, 99),
        late_max=percentile(late, 100),
        before=before,
        peak=peak,
        after=after,
        left=dict(left),
    )


async def _settled(server: Target, before: int, usual: Counter[str]) -> tuple[int, Counter[str]]:
    """Memory once every task is gone that was not there before, and what was kept; or when the time is up."""
    memory, tasks = await server.figures()
    # Not a cancel scope: a question that is cut short would end the generator of the answers.
    until = trio.current_time() + _SETTLE_S
    while (tasks - usual or memory - before > _KEPT_BYTES) and trio.current_time() < until:
        await trio.sleep(0.5)
        memory, tasks = await server.figures()
    return memory, tasks - usual


async def _measure(options: argparse.Namespace, cores: Cores) -> tuple[list[str], list[Found], list[str]]:
    """Lines about the server and its rooms, what was found of the floods, and the faults of rooms."""
    if options.rooms or options.idle:
        return await _measure_rooms(options, cores)
    async with target(SETTINGS, cores) as server:
        fresh, _ = await server.figures()
        found = await _all_floods(server, options, list(floods.FLOODS), "", [])
    return [f"Before the first flood it had {fresh / 1e6:.0f} MB."], found, []


async def _measure_rooms(options: argparse.Namespace, cores: Cores) -> tuple[list[str], list[Found], list[str]]:
    lines, found, wrong = [], [], []
    if options.idle:
        _note("idle rooms")
        most = options.idle + _FIRST_ROOMS
        settings = {"port": 0, "trusted_proxies": "127.0.0.1", "rooms": "only", "max_rooms": most}
        async with target(settings, cores) as server:
            first = await rooms.opened(server, _FIRST_ROOMS)
            idle = await rooms.idle(server, options.idle, first.paths)
        lines, wrong = [*idle.lines()], [*idle.faults()]
        _note("\n".join(lines))
    if options.rooms:
        of_rooms = {"rooms": "only", "room_idle_s": 8, "max_rooms": options.rooms + _MORE_ROOMS}
        # The logs of all rooms are full together.
        logs = {"event_log_events": 100, "event_log_bytes": 256 * 1024 * 1024, "call_records": 100}
        settings = SETTINGS | of_rooms | logs
        async with target(settings, cores) as server, rooms.in_use(server, options.rooms) as paths:
            found = await _all_floods(server, options, list(floods.IN_ROOM), paths[0], paths[1:])
    return lines, found, wrong


async def _all_floods(
    server: Target, options: argparse.Namespace, names: Sequence[str], hostile: str, others: Sequence[str]
) -> list[Found]:
    found = []
    # Two rounds, of which the second counts: what the first one made the process grow to is no leak, unless the
    # second does it again.
    lengths = floods.lengths(options.only or names, options.seconds / 2)
    for counts in (False, True):
        for name, seconds in lengths.items():
            _note(name if counts else f"warming up: {name}")
            one = await _flooded(server, name, seconds, options.share, hostile, others)
            found += [one] * counts
    return found


def _note(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="load", description="Flood a server, one flood after the other.")
    parser.add_argument("--seconds", type=float, default=600, help="for two rounds of all floods; default 600")
    parser.add_argument("--only", action="append", choices=list(floods.IN_ROOM), help="one flood; may be repeated")
    parser.add_argument("--share", type=float, default=1.0, help="part of the usual clients, for a small machine")
    parser.add_argument("--aim-ms", type=float, default=AIM_MS, help="p99 of the client beside a flood")
    parser.add_argument("--margin-mb", type=float, default=MARGIN_MB, help="what memory may have grown by")
    parser.add_argument("--rooms", type=int, default=0, help="so many rooms, and the floods come from one of them")
    parser.add_argument("--idle", type=int, default=0, help="so many idle rooms on a server of their own")
    file = ROOT / ".nox" / "load.json"
    parser.add_argument("--file", type=Path, default=file, help="what to compare with, and then this run")
    return parser.parse_args()


def main() -> int:
    """Run what the options ask for."""
    options = _options()
    # A connection of each client, twice: here and, as it is inherited, in the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    about, found, wrong = trio.run(_measure, options, Cores.divided(), strict_exception_groups=True)
    lines = [*table(found, load(options.file)), "", *about, ""]
    wrong = [f"- {line}" for line in (*wrong, *faults(found, aim_ms=options.aim_ms, margin_mb=options.margin_mb))]
    sys.stdout.write("\n".join([*lines, *(wrong or ["Everything is within its bounds."]), ""]))
    save(options.file, found, {"seconds": options.seconds, "share": options.share})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
