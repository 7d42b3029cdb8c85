"""What the judge costs: logs of any length, made of one recorded session, and the processor time to judge them.

python -m bench.judging                      # the three logs, 100,000 entries each
python -m bench.judging --entries 20000 --profile calls
python -m bench.judging --live 4000          # what so many calls cost a server, with its judge and without
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
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
from .servers import Cores, Server, all_servers, running

Shape: TypeAlias = Literal["calls", "progress", "sessions"]
"""One session of calls in one piece, one of calls with ten reports, or sessions of one call, each of another client."""

# `initialize`, its notification and `tools/list`; a call in one piece; a call with ten reports; DELETE.
_RECORDED: Final = Path(__file__).with_name("session.ndjson")
_OPENING, _CALL, _PROGRESS, _CLOSING = (2, 16), (17, 23), (24, 57), (58, 60)
_IDS: Final = ("connection", "session", "call", "stream")
# Seconds between two requests of a client.
_PAUSE_S: Final = 0.005


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


async def live(calls: int, rounds: int = 3) -> None:
    """Print processor time and rate of the calls, by turns with the judge and without: the best of the rounds."""
    ours, cores = all_servers("", Path())[0], Cores.divided()
    without = replace(ours, command=(*ours.command, "--no-judge"))
    eras: tuple[Era, ...] = get_args(Era)
    for era in eras:
        for clients in (1, 32):
            found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
            for _ in range(rounds):
                for judges, server in ((True, ours), (False, without)):
                    found[judges].append(await _call_s(replace(server, era=era), clients, calls, cores))
            judged, passed = map(min, zip(*found[True], strict=True))
            alone, passed_alone = map(min, zip(*found[False], strict=True))
            line = f"{era:6} {clients:2} clients: {judged * 1e6:.0f} us a call, {alone * 1e6:.0f} us with --no-judge"
            rates = f"{1 / passed:,.0f} calls a second, {1 / passed_alone:,.0f}"
            sys.stdout.write(f"{line}: {judged / alone - 1:+.1%}; {rates}: {passed_alone / passed - 1:+.1%}\n")
            sys.stdout.flush()


async def _call_s(server: Server, clients: int, calls: int, cores: Cores) -> tuple[float, float]:
    """The processor time of the server for a call, and the time that passes for each."""
    async with running(server, "calls", cores) as ours, AsyncExitStack() as stack:
        opened = []
        for _ in range(clients):
            connection = await stack.enter_async_context(Connection(ours.port))
            opened.append((connection, await open_client(connection, ours.port, server.era)))
        ids, began, since = count(FIRST_ID), 0.0, 0.0
        for part in (calls // 4, calls):  # the first is to warm up
            numbers, began, since = islice(ids, part), ours.cpu_s(), trio.current_time()
            async with trio.open_nursery() as nursery:
                for connection, client in opened:
                    nursery.start_soon(_call, connection, client, server, numbers)
        return (ours.cpu_s() - began) / calls, (trio.current_time() - since) / calls


async def _call(connection: Connection, client: Client, server: Server, ids: Iterator[int]) -> None:
    for id in ids:
        head, _ = await connection.exchange(client.call(server.echo, id))
        if head.status != 200:
            raise WrongAnswerError(f"a call was answered {head.status}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=get_args(Shape), metavar="calls|progress|sessions")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--profile", action="store_true", help="show the functions that take most of the time")
    parser.add_argument("--live", type=int, metavar="CALLS", help="measure a server")
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
