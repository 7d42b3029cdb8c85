"""The verdict of a check, with the values measured on both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..side import Way
from ..trials import GatewayRun, Trial


class GatewayVerdict(StrEnum):
    """The verdicts, roughly from the best to the worst."""

    SAME = "same"
    NOT_APPLICABLE = "n/a"
    CHANGED = "changed"
    UNCLEAR = "unclear"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a check. `found` is None if it is not known. `verdict` replaces the verdict of the catalogue.

    `cases` are the cases of the fault found, by their names in the catalogue.
    """

    found: bool | None
    direct: str = ""
    through: str = ""
    evidence: str = ""
    verdict: GatewayVerdict | None = None
    cases: tuple[str, ...] = ()


class UnjudgedError(Exception):
    """A check cannot compare: `seen` has its verdict, n/a or unclear, and the reason."""

    def __init__(self, why: str, verdict: GatewayVerdict) -> None:
        super().__init__(why)
        self.seen = Comparison(None, evidence=why, verdict=verdict)


def not_applicable(why: str) -> UnjudgedError:
    """The gateway does not offer what is checked, or another fault hides it."""
    return UnjudgedError(why, GatewayVerdict.NOT_APPLICABLE)


def unclear(why: str) -> UnjudgedError:
    """The trials do not decide, for example because the direct way has the fault too."""
    return UnjudgedError(why, GatewayVerdict.UNCLEAR)


def compared(direct: str, through: str, *, found: bool, evidence: str = "") -> Comparison:
    """The fault is there or not."""
    return Comparison(found, direct, through, evidence)


def listing(
    of: Callable[[Case], list[str]], same: str, other: str, *, direct: str | None = None, most: int = 5
) -> Callable[[Case], Comparison]:
    """Make a check of a list of faults: it is found if `of` gives any, such as ["id 7: refused"].

    The way through is shown as `same` or `other`, and the direct way as `direct`, or `same` without it. The evidence
    shows `most` faults.
    """

    def judge(case: Case) -> Comparison:
        wrong = of(case)
        through = other if wrong else same
        return compared(same if direct is None else direct, through, found=bool(wrong), evidence=listed(wrong, most))

    return judge


def permitted(direct: str, through: str, evidence: str) -> Comparison:
    """An allowed difference, with the verdict `changed`."""
    return Comparison(True, direct, through, evidence, GatewayVerdict.CHANGED)


@dataclass(frozen=True, slots=True)
class Case:
    """All trials of a run, as the check of some steps sees them. Skipped trials are left out."""

    run: GatewayRun

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

    def pair(self, step: str) -> tuple[Trial, Trial]:
        """The first trial on each way of a check's only step: `judge` requires both."""
        both = self.both(step)
        assert both is not None, "a check is asked only where its steps were done on both ways"
        return both

    def offers(self, what: str, way: Way) -> bool:
        """True if a way offers this, such as "tool:fail"."""
        return what in self.run.offers[way]


@dataclass(frozen=True, slots=True)
class Check:
    """One fault: its number in the catalogue, the steps it needs, and the function for their trials.

    With `alone` the way through the gateway is enough.
    """

    number: int
    steps: tuple[str, ...]
    judge: Callable[[Case], Comparison]
    alone: bool = False


def listed(items: list[str], most: int = 5) -> str:
    """A list as people read it, cut where it is long."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def members(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}
