"""What was found, the judgement of it, and the table: Markdown, readable as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MARGIN_MB = 24.0
"""What memory may have grown by when a flood is over. A process never shrinks to the byte: small objects that live on
keep whole blocks of memory in use."""

AIM_MS = 1000.0
"""What 99 of 100 calls of the client beside a flood have to be answered in: a person hardly waits for that."""

_MB = 1e6


@dataclass(frozen=True, slots=True)
class Found:
    """One flood. Rates by second, times in milliseconds, memory in bytes; `left` are tasks that should have ended.

    `late_max` and the percentiles are of the client beside the flood, which was answered `served` times; `failed` is
    what else happened to it.
    """

    flood: str
    per_second: float
    errors: Mapping[str, int]
    served: int
    failed: Mapping[str, int]
    late_p50: float
    late_p99: float
    late_max: float
    before: int
    peak: int
    after: int
    left: Mapping[str, int]

    @property
    def grown_mb(self) -> float:
        """How much more memory there is in use than before."""
        return (self.after - self.before) / _MB


def faults(found: Sequence[Found], *, aim_ms: float, margin_mb: float) -> Iterator[str]:
    """Each thing that is not as it should be, as a sentence."""
    for one in found:
        if one.grown_mb > margin_mb:
            yield f"{one.flood}: memory is {one.grown_mb:.1f} MB above what it was; the margin is {margin_mb:g} MB"
        if one.left:
            yield f"{one.flood}: tasks are left: " + ", ".join(f"{n} {name}" for name, n in one.left.items())
        if one.failed or not one.served:
            yield f"{one.flood}: the client beside it was not served: {_kinds(one.failed)}, answered {one.served} times"
        if one.late_p99 > aim_ms:
            yield f"{one.flood}: the client beside it waited {one.late_p99:.0f} ms (p99); the aim is {aim_ms:g} ms"
    if found and (grown := (found[-1].after - found[0].before) / _MB) > 2 * margin_mb:
        yield f"all floods together: memory is {grown:.1f} MB above what it was; the margin is {2 * margin_mb:g} MB"


def table(found: Sequence[Found], earlier: Mapping[str, Found]) -> Iterator[str]:
    """The lines of the report; in parentheses what was found at the run before."""
    columns = ["flood", "answers per second", "errors", "late p50 / p99 / max ms", "memory MB", "tasks left"]
    rows = [[one.flood, *_cells(one, earlier.get(one.flood))] for one in found]
    cells = [columns, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    yield from [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cells(one: Found, before: Found | None) -> list[str]:
    def then(text: str) -> str:
        return f" ({text})" if before is not None else ""

    old = before or one
    return [
        f"{one.per_second:,.0f}" + then(f"{old.per_second:,.0f}"),
        _kinds(one.errors),
        f"{one.late_p50:.0f} / {one.late_p99:.0f} / {one.late_max:.0f}" + then(f"p99 {old.late_p99:.0f}"),
        f"{one.before / _MB:.0f}, {one.peak / _MB:.0f}, {one.after / _MB:.0f}" + then(f"{old.grown_mb:+.0f}"),
        str(sum(one.left.values())),
    ]


def _kinds(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{kind}: {number:,}" for kind, number in sorted(errors.items())) or "none"


def load(path: Path) -> dict[str, Found]:
    """The floods of an earlier run by their names; none without a file, or from one of another make."""
    try:
        return {one["flood"]: Found(**one) for one in json.loads(path.read_text())["floods"]}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def save(path: Path, found: Sequence[Found], about: Mapping[str, Any]) -> None:
    """Write a run for the next one to compare with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**about, "floods": [asdict(one) for one in found]}, indent=1) + "\n")
