"""Guesses from the log of a probe alone about the program before it: what is likely, and never more.

A server cannot see that a stream is held back, since its socket takes the bytes at once. It sees how it is spoken to,
when connections end, and what comes twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import trio
from pydantic_core import from_json

from .behind import BehindError, Row
from .client.live import Sending, exchanging
from .client.target import Target

_MOST_AT_ONCE = 4
_HEAP_S = 1.0
_TWICE_S = 10.0
_LINES_S = 60.0
_PASSED_ON = ("via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Likely:
    """Something that the log suggests: the check that would show it, and the entries that it rests on."""

    check: str
    said: str
    entries: tuple[int, ...]


async def rows_of(api: Target) -> list[Row]:
    """The whole log of a probe. Raises `BehindError`."""
    at = api.at(f"{api.path}/events.ndjson")
    async with exchanging(at, Sending("log", "GET")) as live:
        await live.wait_over(_LINES_S)
        body = live.body
    record = live.record()
    if record.status != 200 or record.end != "complete":
        raise BehindError(f"the log at {at.url} cannot be read: {record.problem or record.status or record.end}")
    await trio.lowlevel.checkpoint()
    rows = [from_json(line) for line in body.splitlines() if line]
    return [row for row in rows if "seq" in row]


def observed(rows: Sequence[Row]) -> list[Likely]:
    """The guesses that the entries suggest."""
    heads = [row for row in rows if row["kind"] == "http.request"]
    return [
        *_versions(heads),
        *_passed_on(heads),
        *_cut(rows),
        *_repeated(rows),
        *_sessions(rows),
        *_initialized(rows),
        *_capabilities(rows),
    ]


def _versions(heads: Sequence[Row]) -> list[Likely]:
    old = [row["seq"] for row in heads if row["http_version"] == "1.0"]
    return [Likely("upstream.http10", f"{len(old)} of {len(heads)} requests are HTTP/1.0", _some(old))] if old else []


def _passed_on(heads: Sequence[Row]) -> list[Likely]:
    named: Counter[str] = Counter()
    seqs: list[int] = []
    for row in heads:
        found = [name for name, _ in row["headers"] if name in _PASSED_ON]
        named.update(found)
        seqs += [row["seq"]] if found else []
    said = ", ".join(f"{name} ({count})" for name, count in named.most_common())
    return [Likely("headers", f"a gateway stands before the probe: {said}", _some(seqs))] if named else []


def _cut(rows: Sequence[Row]) -> list[Likely]:
    """Ages at which the other end closed a response: a heap of them at one age is a time-out."""
    began = {row["exchange"]: row["mono"] for row in rows if row["kind"] == "http.request"}
    ages: dict[int, list[int]] = {}
    for row in rows:
        if row["kind"] == "http.closed" and row["by"] == "client" and row["exchange"] in began:
            age = row["mono"] - began[row["exchange"]]
            if age > 5 * _HEAP_S:
                ages.setdefault(round(age / _HEAP_S), []).append(row["seq"])
    return [
        Likely("quiet.cut", f"{len(seqs)} responses were closed after {age * _HEAP_S:g} s", _some(seqs))
        for age, seqs in sorted(ages.items())
        if len(seqs) >= 3
    ]


def _repeated(rows: Sequence[Row]) -> list[Likely]:
    last: dict[str, Row] = {}
    twice: list[int] = []
    for row in rows:
        if row["kind"] != "message.received" or row["method"] != "tools/call" or row["exchange"] is None:
            continue
        key = repr((row["session"], row["message"]))
        before = last.get(key)
        if before is not None and before["exchange"] != row["exchange"] and row["mono"] - before["mono"] < _TWICE_S:
            twice += [before["seq"], row["seq"]]
        last[key] = row
    count = len(twice) // 2
    return [Likely("retry.twice", f"{count} calls came twice with the same bytes", _some(twice))] if twice else []


def _sessions(rows: Sequence[Row]) -> list[Likely]:
    calls = Counter(row["session"] for row in rows if row["kind"] == "call.started" and row["tool"] is not None)
    opened = [row for row in rows if row["kind"] == "session.opened"]
    single = [row["seq"] for row in opened if calls[row["session"]] == 1]
    if len(opened) >= 5 and len(single) > 0.8 * len(opened):
        return [Likely("sessions.each", f"{len(single)} of {len(opened)} sessions have one call", _some(single))]
    return []


def _initialized(rows: Sequence[Row]) -> list[Likely]:
    told = {
        row["session"]
        for row in rows
        if row["kind"] == "message.received" and row["method"] == "notifications/initialized"
    }
    without = [row["seq"] for row in rows if row["kind"] == "session.opened" and row["session"] not in told]
    said = f"{len(without)} sessions without notifications/initialized"
    return [Likely("initialized.lost", said, _some(without))] if without else []


def _capabilities(rows: Sequence[Row]) -> list[Likely]:
    empty = [row["seq"] for row in rows if row["kind"] == "session.opened" and row["capabilities"] == {}]
    return (
        [Likely("capabilities", f"{len(empty)} sessions whose client declares nothing", _some(empty))] if empty else []
    )


def _some(seqs: Sequence[int]) -> tuple[int, ...]:
    return tuple(seqs[:_MOST_AT_ONCE])


def shown(found: Sequence[Likely], count: int) -> str:
    """The likely faults as lines for a terminal."""
    lines = [f"{count} entries; what is likely, from the side of the probe alone:"]
    lines += [f"likely  {each.check}: {each.said} (entries {', '.join(map(str, each.entries))})" for each in found]
    return "\n".join([*lines, *([] if found else ["nothing"]), ""])
