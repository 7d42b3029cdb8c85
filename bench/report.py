"""The tables, the aims beside what was measured, and what it was measured on. Markdown, readable as it is."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from .aims import aims
from .feed import Feed
from .growth import Growth
from .hosts import Hosted
from .load import Cancellations, Streams, percentile
from .replicas import Pair
from .results import CONCURRENCIES, Results, added_ms, median_rate
from .servers import Cores
from .tools import Calls


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
    parts: list[tuple[str, object, Callable[[], list[str]]]] = [
        ("Calls per second", results.calls, lambda: _calls(results)),
        ("HTTP/2: 32 calls in flight on one connection", results.http2, lambda: _http2(results.http2)),
        ("One connection that carries everything", results.pipes, lambda: _pipes(results.pipes)),
        ("Open streams", results.streams, lambda: _streams(results.streams)),
        ("10,000 open streams, one message a second each", results.many, lambda: _streams(results.many)),
        ("From cancellation to the end of the scope, ms", results.cancellations, lambda: _cancellations(results)),
        ("Subscriptions to a resource that ticks", results.listens, lambda: _streams(results.listens)),
        ("Calls beside dashboards", results.feeds, lambda: _feeds(results.feeds)),
        ("Calls through a tool host", results.hosts, lambda: _hosts(results.hosts)),
        ("From the start of the process to the first answered call", results.starts, lambda: _starts(results.starts)),
        ("Rooms on replicas behind HAProxy", results.replicas, lambda: _replicas(results.replicas)),
        ("Processor per call, by what the server holds", results.growth, lambda: _growth(results.growth)),
    ]
    for title, measured, lines in parts:
        if measured:
            yield from ["", f"## {title}", "", *lines()]
    yield from ["", "## Aims", "", *_aims(results)]


def _calls(results: Results) -> list[str]:
    names = dict.fromkeys(server for server, _ in results.calls)
    rows = []
    for name in names:
        rates = [_rate(results, name, concurrency) for concurrency in CONCURRENCIES]
        rows.append([name, *rates, f"{results.processor_us(name):.0f} µs"])
    columns = [f"{concurrency} at once (p50 / p99 ms)" for concurrency in CONCURRENCIES]
    return _table(["server", *columns, "processor per call"], rows)


def _http2(measured: Mapping[str, Calls]) -> list[str]:
    rows = [[name, *_turns([found])] for name, found in measured.items()]
    return _table(["server", "calls per second (mean / max ms)", "processor per call"], rows)


def _pipes(measured: Mapping[str, Mapping[int, Calls]]) -> list[str]:
    rows = []
    for name, piped in measured.items():
        rows += [[name, str(in_flight), *_turns([found])] for in_flight, found in piped.items()]
    return _table(["server", "in flight", "calls per second (p50 / p99 ms)", "processor per call"], rows)


def _starts(measured: Mapping[str, float]) -> list[str]:
    return _table(["server", "seconds"], [[name, f"{seconds:.2f}"] for name, seconds in measured.items()])


def _growth(measured: Mapping[str, Growth]) -> list[str]:
    rows = [
        [name, what, ", ".join(f"{count:,}: {cost:.0f} µs" for count, cost in costs.items())]
        for name, found in measured.items()
        for what, costs in (
            ("sessions", found.sessions),
            ("entries of the event log", found.entries),
            ("dashboards", found.dashboards),
        )
    ]
    return _table(["server", "of", "how many, and processor per call"], rows)


def _replicas(pairs: Sequence[Pair]) -> list[str]:
    rows = []
    for number in (1, 2):
        shown = [
            (found.per_second, found.replicas_us, found.balancer_us, found.load_us)
            for found in (pair[number - 1] for pair in pairs)
        ]
        rate, *shares = (median(values) for values in zip(*shown, strict=True))
        rows.append([str(number), f"{rate:,.0f}", *(f"{microseconds:.0f} µs" for microseconds in shares)])
    columns = ["replicas", "calls per second", "processor per call: replicas", "HAProxy", "load"]
    return _table(columns, rows)


def _feeds(measured: Mapping[str, Feed]) -> list[str]:
    rows = []
    for name, found in measured.items():
        shape = found.shape
        readers = f"{shape.readers} readers, {shape.stuck} of them stuck"
        rows.append([name, "none", *_turns(found.without), ""])
        share = median_rate(found.beside) / median_rate(found.without)
        rows.append([name, readers, *_turns(found.beside), f"{share:.1%}"])
    return _table(["server", "dashboards", "calls per second (p50 / p99 ms)", "processor per call", "of none"], rows)


def _hosts(measured: Mapping[str, Hosted]) -> list[str]:
    rows = []
    for name, found in measured.items():
        for clients, local in found.local.items():
            through = found.hosted[clients]
            rows.append([name, str(clients), *_turns(local), *_turns(through), f"{added_ms(found, clients):+.2f} ms"])
    own, hosts = "own tool per second (p50 / p99 ms)", "through a host"
    return _table(["server", "clients", own, "processor", hosts, "processor", "added to p50"], rows)


def _turns(turns: Sequence[Calls]) -> tuple[str, str]:
    p50, p99 = median(turn.p50_ms for turn in turns), median(turn.p99_ms for turn in turns)
    rate = f"{median_rate(turns):,.0f} ({p50:.1f} / {p99:.1f})"
    return rate, f"{median(turn.processor_us for turn in turns):.0f} µs"


def _rate(results: Results, server: str, concurrency: int) -> str:
    return _turns(results.calls[server, concurrency])[0]


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
    return _table(["aim", "wanted", "measured", ""], [aim.line() for aim in aims(results)])


def compared(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """The figures of two runs beside each other, where both have them."""
    rows = [
        [name, f"{before[name]:,.4g}", f"{now[name]:,.4g}", f"{now[name] / before[name] - 1:+.0%}"]
        for name in now
        if before.get(name)
    ]
    return ["", "## Against the earlier run", "", *_table(["figure", "then", "now", "change"], rows)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
