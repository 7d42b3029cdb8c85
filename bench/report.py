"""The tables, the aims beside what was measured, and what it was measured on. Markdown, readable as it is."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

from .feed import Feed
from .hosts import Hosted
from .load import Calls, Cancellations, Streams, percentile
from .servers import OUR_MODERN, OUR_SERVER, UPPER_BOUND, Cores

CONCURRENCIES = (1, 32, 256)
_FEED_AIM = 0.9
_SHARE_AIM, _LATENESS_AIM_MS, _STREAM_AIM_KB, _CANCELLATION_AIM_MS = 0.8, 100.0, 45.0, 10.0


@dataclass(slots=True)
class Results:
    """What was measured, by server; calls also by concurrency, one entry a round; cancellations idle and under load."""

    calls: dict[tuple[str, int], list[Calls]] = field(default_factory=dict)
    streams: dict[str, Streams] = field(default_factory=dict)
    cancellations: dict[str, tuple[Cancellations, Cancellations]] = field(default_factory=dict)
    listens: dict[str, Streams] = field(default_factory=dict)
    feeds: dict[str, Feed] = field(default_factory=dict)
    hosts: dict[str, Hosted] = field(default_factory=dict)

    def per_second(self, server: str, concurrency: int) -> float:
        """The median of the rounds."""
        return median(round.per_second for round in self.calls[server, concurrency])


def machine(cores: Cores, node: str) -> Iterable[str]:
    """What the figures depend on, one line each."""
    packages = ("trio", "hypercorn", "h11", "mcp", "uvicorn")
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)  # noqa: S603  the user's own
    node_version = asked.stdout.strip()
    pinned = "not pinned" if cores.server is None else f"servers on core {cores.server}, load on core {cores.load}"
    yield f"- {_processor()}, {os.cpu_count()} cores, {platform.system()}; {pinned}"
    yield f"- {platform.python_implementation()} {platform.python_version()}, node {node_version.lstrip('v')}"
    yield "- " + ", ".join(f"{name} {version(name)}" for name in packages)
    yield f"- load average before the start: {os.getloadavg()[0]:.2f} (above 0.2, something else was running)"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def tables(results: Results) -> Iterable[str]:
    """The lines of the report, for whatever was measured."""
    if results.calls:
        yield from ["", "## Calls per second", "", *_calls(results)]
    if results.streams:
        yield from ["", "## Open streams", "", *_streams(results.streams)]
    if results.cancellations:
        yield from ["", "## From cancellation to the end of the tool's scope, ms", "", *_cancellations(results)]
    if results.listens:
        yield from ["", "## Subscriptions to a resource that ticks", "", *_streams(results.listens)]
    if results.feeds:
        yield from ["", "## Calls beside dashboards", "", *_feeds(results.feeds)]
    if results.hosts:
        yield from ["", "## Calls through a tool host", "", *_hosts(results.hosts)]
    yield from ["", "## Aims", "", *_aims(results)]


def _calls(results: Results) -> list[str]:
    names = dict.fromkeys(server for server, _ in results.calls)
    rows = [
        [name, *(_rate(results, name, concurrency) for concurrency in CONCURRENCIES), _processor_time(results, name)]
        for name in names
    ]
    columns = [f"{concurrency} at once (p50 / p99 ms)" for concurrency in CONCURRENCIES]
    return _table(["server", *columns, "processor per call"], rows)


def _feeds(measured: Mapping[str, Feed]) -> list[str]:
    rows = []
    for name, found in measured.items():
        shape = found.shape
        readers = f"{shape.readers} readers, {shape.stuck} of them stuck"
        rows.append([name, "none", *_turns(found.without), ""])
        rows.append([name, readers, *_turns(found.beside), f"{feed_share(found):.1%}"])
    return _table(["server", "dashboards", "calls per second (p50 / p99 ms)", "processor per call", "of none"], rows)


def _hosts(measured: Mapping[str, Hosted]) -> list[str]:
    rows = []
    for name, found in measured.items():
        for clients, local in found.local.items():
            through = found.hosted[clients]
            added = _median_latency(through) - _median_latency(local)
            rows.append([name, str(clients), *_turns(local), *_turns(through), f"{added:+.2f} ms"])
    own, hosts = "own tool per second (p50 / p99 ms)", "through a host"
    return _table(["server", "clients", own, "processor", hosts, "processor", "added to p50"], rows)


def _median_latency(turns: Sequence[Calls]) -> float:
    return median(percentile(turn.latencies, 50) for turn in turns)


def feed_share(found: Feed) -> float:
    """The median rate beside readers, as a part of the median one without."""
    return _median_rate(found.beside) / _median_rate(found.without)


def _median_rate(turns: Sequence[Calls]) -> float:
    return median(turn.per_second for turn in turns)


def _turns(turns: Sequence[Calls]) -> tuple[str, str]:
    p50, p99 = (median(percentile(turn.latencies, percent) for turn in turns) for percent in (50, 99))
    rate = f"{_median_rate(turns):,.0f} ({p50:.1f} / {p99:.1f})"
    return rate, f"{median(turn.processor_us for turn in turns):.0f} µs"


def _processor_time(results: Results, server: str) -> str:
    # Unlike the rates it hardly depends on what else the machine does.
    rounds = [found.processor_us for concurrency in CONCURRENCIES for found in results.calls[server, concurrency]]
    return f"{median(rounds):.0f} µs"


def _rate(results: Results, server: str, concurrency: int) -> str:
    rounds = results.calls[server, concurrency]
    p50, p99 = (median(percentile(round.latencies, percent) for round in rounds) for percent in (50, 99))
    return f"{results.per_second(server, concurrency):,.0f} ({p50:.1f} / {p99:.1f})"


def _streams(measured: Mapping[str, Streams]) -> list[str]:
    rows = [
        [
            name,
            " / ".join(f"{percentile(found.lateness, percent):.1f}" for percent in (50, 99, 100)),
            str(found.missing),
            f"{found.open_bytes / 1000:.0f} / {found.most_bytes / 1000:.0f} kB",
            f"{found.base_bytes / 1e6:.0f} MB",
            f"{found.cpu:.0%} ({found.message_us:.0f} µs)",
        ]
        for name, found in measured.items()
    ]
    columns = ["late p50 / p99 / max ms", "missing", "per stream open / most", "before", "processor (per message)"]
    return _table(["server", *columns], rows)


def _cancellations(results: Results) -> list[str]:
    rows = [[name, *map(_spread, found)] for name, found in results.cancellations.items()]
    return _table(["server", "idle p50 / p99 / max", "32 calls in flight"], rows)


def _spread(found: Cancellations) -> str:
    def shown(values: list[float]) -> str:
        return " / ".join(f"{percentile(values, percent):.1f}" for percent in (50, 99, 100))

    return shown(found.total) + (f" (inside the server {shown(found.inside)})" if found.inside else "")


def _aims(results: Results) -> list[str]:
    columns = [dict(_met(results, name)) for name in (OUR_SERVER, OUR_MODERN)]
    aims = dict.fromkeys(aim for column in columns for aim in column)
    rows = [[aim, *(column.get(aim, "") for column in columns)] for aim in aims]
    return _table(["aim", OUR_SERVER, OUR_MODERN], rows)


def _met(results: Results, name: str) -> Iterable[tuple[str, str]]:
    """Each aim that something was measured for, and what this server made of it."""
    for concurrency in CONCURRENCIES:
        if (name, concurrency) in results.calls:
            share = results.per_second(name, concurrency) / results.per_second(UPPER_BOUND, concurrency)
            what = f"calls at {concurrency}: at least {_SHARE_AIM:.0%} of {UPPER_BOUND}"
            yield what, _verdict(f"{share:.0%}", share >= _SHARE_AIM)
    if streams := results.streams.get(name):
        yield _lateness("a stream's message", streams)
        yield _size("a stream once all are open", streams.open_bytes)
        yield _size("a stream at its largest", streams.most_bytes)
    if both := results.cancellations.get(name):
        yield _cancellation("as the client sees it", both[1].total)
        yield _cancellation("inside the server", both[1].inside)
    if listens := results.listens.get(name):
        yield _lateness("a subscription's message", listens)
        yield _size("a subscription at its largest", listens.most_bytes)


    if found := results.feeds.get(name):
        share = feed_share(found)
        what = f"calls with {found.shape.readers} dashboards: at least {_FEED_AIM:.0%} of those without"
        yield what, _verdict(f"{share:.1%}", share >= _FEED_AIM)


def _lateness(what: str, found: Streams) -> tuple[str, str]:
    p99 = percentile(found.lateness, 99)
    met = p99 < _LATENESS_AIM_MS and not found.missing
    return f"{what}: lateness p99 under {_LATENESS_AIM_MS:.0f} ms", _verdict(f"{p99:.1f} ms", met)


def _size(what: str, size: float) -> tuple[str, str]:
    return f"{what}: under {_STREAM_AIM_KB:.0f} kB", _verdict(f"{size / 1000:.0f} kB", size / 1000 < _STREAM_AIM_KB)


def _cancellation(where: str, values: list[float]) -> tuple[str, str]:
    p99 = percentile(values, 99)
    what = f"cancellation p99 with 32 calls in flight, {where}: under {_CANCELLATION_AIM_MS:.0f} ms"
    return what, _verdict(f"{p99:.1f} ms", p99 < _CANCELLATION_AIM_MS)


def _verdict(measured: str, met: bool) -> str:
    return f"{measured}, {'met' if met else 'not met'}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
