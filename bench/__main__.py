"""`python -m bench`: measures every server in turn and prints one report. Takes about twenty minutes."""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, get_args

import trio

from . import load, pipes, report, tools
from .client import Era, WrongAnswerError
from .feed import Dashboards, feed
from .growth import Growing, grown
from .hosts import Hosting, hosted
from .http1 import BrokenResponseError
from .replicas import replicated
from .results import CONCURRENCIES, Results
from .servers import (
    NO_SERVER,
    OUR_MODERN,
    OUR_SERVER,
    ROOT,
    UPPER_BOUND,
    Cores,
    Measurement,
    Running,
    Server,
    StartError,
    all_servers,
    running,
)
from .start import cold_start

_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often. Rounds are interleaved over the servers, so that a slow moment hits them all."""

    rounds: int = 3
    pairs: int = 20
    warm_up_s: float = 0.5
    window_s: float = 2.0
    shape: load.Shape = field(default_factory=load.Shape)
    cancellations: int = 120
    busy_clients: int = 32
    listening: load.Listening = field(default_factory=load.Listening)
    dashboards: Dashboards = field(default_factory=Dashboards)
    hosting: Hosting = field(default_factory=Hosting)
    piping: pipes.Piping = field(default_factory=pipes.Piping)
    many: load.Shape = field(default_factory=lambda: _many(10_000, 30))
    growing: Growing = field(default_factory=Growing)
    starts: int = 5


def _many(streams: int, messages: int) -> load.Shape:
    return load.Shape(
        streams=streams, streams_per_session=500, opened_per_second=400, messages=messages, step_ms=1000, warm_up_s=1
    )


_QUICK = Plan(
    rounds=1,
    pairs=2,
    warm_up_s=0.2,
    window_s=0.5,
    shape=load.Shape(streams=100, messages=20, warm_up_s=1),
    cancellations=40,
    listening=load.Listening(subscriptions=100, ticks=2, warm_up_s=1),
    dashboards=Dashboards(turns=2, warm_up_s=0.5, window_s=1.0),
    hosting=Hosting(turns=1, warm_up_s=0.5, window_s=1.0),
    piping=pipes.Piping(warm_up_s=0.3, window_s=0.5),
    many=_many(500, 5),
    growing=Growing(sessions=(10, 100), entries=(100, 1000), dashboards=(1, 5), window_s=1.0),
    starts=1,
)


def main() -> int:
    """Run what the options ask for; returns the exit code: 1 for a server that does not do what it should."""
    options = _options()
    if missing := tools.missing():
        _note(f"error: the load needs {' and '.join(missing)}: Debian has them as wrk and nghttp2-client")
        return 1
    # The load makes no reference cycles, and a pause of its collector would be booked as a server's lateness.
    gc.disable()
    cores = Cores.divided()
    lines = list(report.machine(cores, options.node))
    plan = replace(_QUICK if options.quick else Plan(), **({"rounds": options.rounds} if options.rounds else {}))
    results, failed = Results(), False
    try:
        trio.run(partial(_measure, plan, options, cores, results), strict_exception_groups=True)
    except* (StartError, WrongAnswerError, BrokenResponseError, OSError, trio.TooSlowError) as group:
        # The figures so far took minutes: they are reported all the same.
        _note(f"error: {_first(group)!r}")
        failed = True
    lines += report.tables(results)
    if options.compare is not None:
        lines += report.compared(json.loads(options.compare.read_text()), results.figures())
    if options.save is not None:
        options.save.write_text(json.dumps(results.figures(), indent=1))
    sys.stdout.write("\n".join(["", "# Benchmark", "", *lines, ""]))
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure this server beside others.")
    parser.add_argument("--quick", action="store_true", help="two minutes, to see that all works; rough figures")
    parser.add_argument("--only", choices=get_args(Measurement), help="one of the measurements")
    parser.add_argument("--era", choices=get_args(Era), help="only servers spoken to in this way, and the upper bound")
    parser.add_argument("--rounds", type=int, help="rounds of the calls, each with fresh servers")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show the change against such a file")
    node = os.environ.get("PROBE_NODE") or shutil.which("node")
    parser.add_argument("--node", default=node, required=node is None, help="the node binary; default $PROBE_NODE")
    modules = ROOT / "tests" / "node" / "node_modules"
    parser.add_argument("--node-modules", type=Path, default=modules, help="where the TypeScript SDK is installed")
    return parser.parse_args()


async def _measure(plan: Plan, options: argparse.Namespace, cores: Cores, results: Results) -> None:
    always = (UPPER_BOUND, NO_SERVER)
    servers = [
        server
        for server in all_servers(options.node, options.node_modules)
        if options.era in (None, server.era) or server.name in always
    ]
    with trio.fail_after(_LIMIT_S):
        if options.only in (None, "calls"):
            for server in _rotated(servers, plan.rounds):
                await _measure_calls(server, plan, cores, results)
        for measurement, fits, measure in _once(plan, cores, results):
            for server in servers if options.only in (None, measurement) else ():
                if fits(server):
                    _note(f"{measurement}: {server.name}")
                    async with running(server, measurement, cores) as process:
                        await measure(process)
        for measurement, measure_alone in _alone(plan, cores, results):
            for server in servers if options.only in (None, measurement) else ():
                if server.name not in (UPPER_BOUND, NO_SERVER):
                    _note(f"{measurement}: {server.name}")
                    await measure_alone(server)
        if options.only in (None, "replicas"):
            _note("replicas")
            shape = {"warm_up_s": plan.warm_up_s, "window_s": plan.window_s}
            results.replicas = await replicated(cores, plan.busy_clients, plan.pairs, **shape)


_Once: TypeAlias = tuple[Measurement, Callable[[Server], bool], Callable[[Running], Awaitable[None]]]
"""A measurement that each server has once, if it has what is measured."""


def _once(plan: Plan, cores: Cores, results: Results) -> list[_Once]:
    async def streams(process: Running) -> None:
        results.streams[process.server.name] = await load.streams(process, plan.shape)

    async def cancellations(process: Running) -> None:
        idle = await load.cancellations(process, plan.cancellations, 0)
        busy = await load.cancellations(process, plan.cancellations, plan.busy_clients)
        results.cancellations[process.server.name] = (idle, busy)

    async def listens(process: Running) -> None:
        results.listens[process.server.name] = await load.listens(process, plan.listening)

    async def feeds(process: Running) -> None:
        results.feeds[process.server.name] = await feed(process, plan.dashboards)

    async def hosts(process: Running) -> None:
        results.hosts[process.server.name] = await hosted(process, plan.hosting, cores)

    async def http2(process: Running) -> None:
        shape = {"warm_up_s": plan.warm_up_s, "window_s": plan.window_s}
        results.http2[process.server.name] = await tools.calls_http2(process, plan.busy_clients, **shape)

    async def websocket(process: Running) -> None:
        results.pipes[f"{process.server.name}, WebSocket"] = await pipes.over_websocket(process, plan.piping)

    async def many(process: Running) -> None:
        results.many[process.server.name] = await load.streams(process, plan.many)

    return [
        ("http2", lambda server: server.name in (OUR_MODERN, UPPER_BOUND), http2),
        ("pipes", lambda server: server.name == OUR_SERVER, websocket),
        ("streams", lambda server: server.name != NO_SERVER, streams),
        ("many", lambda server: server.audited, many),
        ("cancellation", lambda server: server.cancels, cancellations),
        ("listen", lambda server: server.listens, listens),
        ("feed", lambda server: server.audited, feeds),
        ("hosts", lambda server: server.audited, hosts),
    ]


def _alone(plan: Plan, cores: Cores, results: Results) -> list[tuple[Measurement, Callable[[Server], Awaitable[None]]]]:
    """Measurements that start the server themselves."""

    async def stdio(server: Server) -> None:
        if server.name == OUR_SERVER:
            results.pipes[f"{server.name}, stdio"] = await pipes.over_stdio(server, cores, plan.piping)

    async def start(server: Server) -> None:
        results.starts[server.name] = await cold_start(server, cores, plan.starts)

    async def growth(server: Server) -> None:
        if server.name == OUR_SERVER:
            results.growth[server.name] = await grown(server, cores, plan.growing)

    return [("pipes", stdio), ("start", start), ("growth", growth)]


def _rotated(servers: list[Server], rounds: int) -> Iterator[Server]:
    for first in range(rounds):
        yield from servers[first % len(servers) :] + servers[: first % len(servers)]


async def _measure_calls(server: Server, plan: Plan, cores: Cores, results: Results) -> None:
    _note(f"calls: {server.name}")
    async with running(server, "calls", cores) as process:
        for concurrency in CONCURRENCIES:
            found = await tools.calls(process, concurrency, warm_up_s=plan.warm_up_s, window_s=plan.window_s)
            results.calls.setdefault((server.name, concurrency), []).append(found)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _note(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
