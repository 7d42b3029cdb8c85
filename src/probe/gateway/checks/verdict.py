"""The verdict of a check, with the values that were measured on both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from ..side import Way
from ..trials import Run, Trial


class Verdict(StrEnum):
    """The verdicts from the best to the worst, as far as they can be compared."""

    SAME = "same"
    NOT_APPLICABLE = "n/a"
    CHANGED = "changed"
    UNCLEAR = "unclear"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a check. `found` is None where that cannot be said; `verdict` stands in for the catalogue's.

    `cases` are those of the fault that were found, by their names in the catalogue.
    """

    found: bool | None
    direct: str = ""
    through: str = ""
    evidence: str = ""
    verdict: Verdict | None = None
    cases: tuple[str, ...] = ()


def not_applicable(why: str) -> Seen:
    """The gateway does not offer what is checked, or another fault hides it."""
    return Seen(None, evidence=why, verdict=Verdict.NOT_APPLICABLE)


def unclear(why: str) -> Seen:
    """Nothing can be said."""
    return Seen(None, evidence=why, verdict=Verdict.UNCLEAR)


def compared(direct: str, through: str, *, found: bool, evidence: str = "") -> Seen:
    """The fault is there or not."""
    return Seen(found, direct, through, evidence)


def told(direct: str, through: str, evidence: str) -> Seen:
    """A difference that a gateway is allowed."""
    return Seen(True, direct, through, evidence, Verdict.CHANGED)


@dataclass(frozen=True, slots=True)
class Case:
    """All trials of a run, as the check of some steps sees them. Skipped trials are left out."""

    run: Run

    def of(self, step: str, way: Way) -> list[Trial]:
        """The trials of a step on one way."""
        return [trial for trial in self.run.of(step, way) if not trial.skipped]

    def one(self, step: str, way: Way) -> Trial | None:
        """The only trial of a step on one way."""
        return next(iter(self.of(step, way)), None)

    def both(self, step: str) -> tuple[Trial, Trial] | None:
        """The first trial on each way; None where one of them is missing."""
        direct, through = self.one(step, "direct"), self.one(step, "through")
        return None if direct is None or through is None else (direct, through)

    def offers(self, what: str, way: Way) -> bool:
        """Whether a way offers something."""
        return what in self.run.offers[way]


@dataclass(frozen=True, slots=True)
class Check:
    """One fault: its number in the catalogue, the steps that show it, and the function that judges them.

    Where `alone` is set, the way through the gateway is enough.
    """

    number: int
    steps: tuple[str, ...]
    judge: Callable[[Case], Seen]
    alone: bool = False


def middle(values: list[float]) -> float:
    """The median."""
    return median(values)


def listed(items: list[str], most: int = 5) -> str:
    """A list as people read it, cut where it is long."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def members(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}
