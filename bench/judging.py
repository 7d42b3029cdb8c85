"""What the judge costs: logs of any length, made of one recorded session, and the processor time to judge them.

python -m bench.judging                      # the three logs, 100,000 entries each
python -m bench.judging --entries 20000 --profile calls
python -m bench.judging --live 120           # what a server's judge costs its calls: two minutes for each row
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final, Literal, TypeAlias, get_args

import trio

from probe.cli.starting import tune_garbage_collection
from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.log.ndjson import LogReader

from .client import FIRST_ID, Client, Era, WrongAnswerError, open_client
from .http1 import Connection
from .servers import Cores, Running, Server, all_servers, running

Shape: TypeAlias = Literal["calls", "progress", "sessions"]
"""One session of calls in one piece, one of calls with ten reports, or sessions of one call, each of another client."""

# `initialize`, its notification and `tools/list`; a call in one piece; a call with ten reports; DELETE.
_RECORDED: Final = Path(__file__).with_name("session.ndjson")
_OPENING, _CALL, _PROGRESS, _CLOSING = (2, 16), (17, 23), (24, 57), (58, 60)
_IDS: Final = ("connection", "session", "call", "stream")
# Seconds between two requests of a client.
_PAUSE_S: Final = 0.005
# A live judge has ten turns in it. One of them is what it would have done while its server was stopped.
_WINDOW_S: Final = 2.0
# Of fewer pairs no two values are an interval of 95 %.
_FEW: Final = 7

_Window: TypeAlias = tuple[float, float]
"""Calls a second, and the processor time of the server for one call, in seconds."""


@dataclass(slots=True)
class _Place:
    """Where the copies are: what is added to the numbers, the ids and the times of the recorded session."""

    seq: int = 1
    mono: float = 100.0
    made: int = 0
    opened: int = 0


def log(shape: Shape, entries: int) -> Iterator[bytes]:
    """The lines of a log of about so many entries."""
    header, first, *recorded = _RECORDED.read_bytes().splitlines(keepends=True)
    session = {entry["seq"]: entry for entry in map(json.loads, recorded)}
    yield from (header, first)
    place = _Place()
    if shape != "sessions":
        yield from _copied(session, _OPENING, place, opens=True)
    while place.seq < entries:
        if shape == "sessions":
            yield from _copied(session, _OPENING, place, opens=True)
        yield from _copied(session, _PROGRESS if shape == "progress" else _CALL, place)
        if shape == "sessions":
            yield from _copied(session, _CLOSING, place)
    if shape != "sessions":
        yield from _copied(session, _CLOSING, place)
    yield json.dumps({"kind": "end", "last": place.seq, "why": "complete"}).encode() + b"\n"


def _copied(
    session: dict[int, dict[str, Any]], part: tuple[int, int], place: _Place, *, opens: bool = False
) -> Iterator[bytes]:
    first, last = part
    place.made += 10
    place.opened += opens
    place.mono += _PAUSE_S
    moved, began = place.seq + 1 - first, session[first]["mono"]
    for number in range(first, last + 1):
        entry = dict(session[number])
        cause = entry["cause"]
        entry["seq"], entry["mono"] = number + moved, round(place.mono + entry["mono"] - began, 6)
        entry["at"] = 1.7e9 + entry["mono"]
        # The socket is the only thing that another part has opened.
        entry["cause"] = None if cause is None or cause < first else cause + moved
        if entry["exchange"] is not None:
            entry["exchange"] += place.made
        entry["connection"] = f"tcp{place.opened}"
        for name in ("call", "stream"):
            if entry[name] is not None:
                entry[name] += str(place.made)
        if entry["session"] is not None:
            entry["session"] = f"s{place.opened}"
        if entry.get("named") is not None:
            entry["named"] = f"s{place.opened}"
        _number_ids(entry, place.made)
        yield json.dumps(entry, separators=(",", ":")).encode() + b"\n"
    place.seq = last + moved
    place.mono += session[last]["mono"] - began


def _number_ids(entry: dict[str, Any], by: int) -> None:
    """Ids and progress tokens are others in each copy."""
    for name in ("id", "request_id", "progress_token"):
        if entry.get(name) is not None:
            entry[name] += by
    message = entry.get("message")
    if message is None:
        return
    entry["message"] = message = dict(message)
    if "id" in message:
        message["id"] += by
    params = message.get("params", {})
    if "progressToken" in params:
        message["params"] = {**params, "progressToken": params["progressToken"] + by}
    elif "_meta" in params:
        message["params"] = {**params, "_meta": {"progressToken": params["_meta"]["progressToken"] + by}}


def judged(lines: Sequence[bytes]) -> Callable[[], Judge]:
    """A function that judges a log, which is read already."""
    reader = LogReader(lines)
    items = list(reader)
    rules = catalogue()

    def judge() -> Judge:
        one = Judge(rules, FUNCTIONS)
        one.begin(reader.header)
        for item in items:
            one.take(item)
        one.end(reader.end)
        return one

    return judge


def measure(judge: Callable[[], Judge], rounds: int = 3) -> float:
    """The least processor time of some rounds, in seconds."""
    times = []
    gc.collect()
    # As the program does it. A saved log is judged as it is read, so the collector does not look at its entries then.
    tune_garbage_collection()
    for _ in range(rounds):
        gc.collect()
        began = process_time()
        judge()
        times.append(process_time() - began)
    return min(times)


async def live(seconds: float) -> None:
    """Print what the judge costs a server: pairs of windows, one with the judge and one without, for so long in a row.

    A machine that others share may run at half of its speed for seconds. So both servers are there all the time, the
    one that has no window is stopped, and each pair has a ratio of its own. Shown are the medians.
    """
    ours, cores = all_servers("", Path())[0], Cores.divided()
    without = replace(ours, command=(*ours.command, "--no-judge"))
    eras: tuple[Era, ...] = get_args(Era)
    for era in eras:
        for clients in (1, 32):
            async with AsyncExitStack() as stack:
                judging, alone = [
                    await stack.enter_async_context(_Loaded.started(replace(server, era=era), clients, cores))
                    for server in (ours, without)
                ]
                pairs = await _pairs(judging, alone, seconds)
            rate, cpu = ([with_judge[n] / other[n] for with_judge, other in pairs] for n in (0, 1))
            rates = [f"{median(each[n][0] for each in pairs):,.0f}" for n in (0, 1)]
            line = f"{era:6} {clients:2} clients: {rates[0]} calls a second, {rates[1]} with --no-judge"
            shown = [f"{_spread([each - 1 for each in ratios])}" for ratios in (rate, cpu)]
            sys.stdout.write(f"{line}; {len(pairs)} pairs: calls a second {shown[0]}, processor a call {shown[1]}\n")
            sys.stdout.flush()


async def _pairs(judging: _Loaded, alone: _Loaded, seconds: float) -> list[tuple[_Window, _Window]]:
    """Windows in pairs, after one pair that warms up; which server is first changes with each."""
    pairs: list[tuple[_Window, _Window]] = []
    until = trio.current_time() + seconds
    await judging.window(), await alone.window()
    while trio.current_time() < until or not pairs:
        if len(pairs) % 2:
            other = await alone.window()
            pairs.append((await judging.window(), other))
        else:
            pairs.append((await judging.window(), await alone.window()))
    return pairs


def _spread(ratios: Sequence[float]) -> str:
    """The median, and the two values between which it is with 95 % by the sign test, if these are enough for that."""
    ordered, count = sorted(ratios), len(ratios)
    low = int((count - 1.96 * count**0.5) / 2)
    if low < 0 or count < _FEW:
        return f"{median(ordered):+.1%}"
    return f"{median(ordered):+.1%} ({ordered[low]:+.1%} to {ordered[count - 1 - low]:+.1%})"


@dataclass(slots=True)
class _Loaded:
    """A server with clients that call again and again in windows; it is stopped (SIGSTOP) between these."""

    server: Server
    running: Running
    clients: Sequence[tuple[Connection, Client]]
    ids: Iterator[int]

    @classmethod
    @asynccontextmanager
    async def started(cls, server: Server, clients: int, cores: Cores) -> AsyncIterator[_Loaded]:
        async with running(server, "calls", cores) as ours, AsyncExitStack() as stack:
            opened = []
            for _ in range(clients):
                connection = await stack.enter_async_context(Connection(ours.port))
                opened.append((connection, await open_client(connection, ours.port, server.era)))
            ours.pause()
            try:
                yield cls(server, ours, opened, count(FIRST_ID))
            finally:
                ours.go_on()

    async def window(self) -> _Window:
        self.running.go_on()
        calls, cpu_s, since = 0, self.running.cpu_s(), trio.current_time()

        async def work(connection: Connection, client: Client) -> None:
            nonlocal calls
            while trio.current_time() < since + _WINDOW_S:
                head, _ = await connection.exchange(client.call(self.server.echo, next(self.ids)))
                if head.status != 200:
                    raise WrongAnswerError(f"a call was answered {head.status}")
                calls += 1

        async with trio.open_nursery() as nursery:
            for connection, client in self.clients:
                nursery.start_soon(work, connection, client)
        passed_s, cpu_s = trio.current_time() - since, self.running.cpu_s() - cpu_s
        self.running.pause()
        return calls / passed_s, cpu_s / calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=get_args(Shape), metavar="calls|progress|sessions")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true", help="show the functions that take most of the time")
    parser.add_argument("--live", type=float, metavar="SECONDS", help="measure a server")
    options = parser.parse_args()
    if options.live:
        trio.run(live, options.live)
        return
    for shape in options.shapes:
        judge = judged(list(log(shape, options.entries)))
        if options.profile:
            with cProfile.Profile() as profile:
                judge()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        sys.stdout.write(f"{shape:9} {options.entries:,} entries {measure(judge):6.2f} s\n")


if __name__ == "__main__":
    main()
