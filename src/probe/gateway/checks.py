"""Judges the trials of both ways. `judge` is pure: the same run gives the same findings, now and later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from .faults import Hint, KnownFault, catalogue
from .phases import CHECKS
from .phases.verdict import Case, Check, GatewayVerdict, UnjudgedError, not_applicable, unclear
from .trials import GatewayRun

__all__ = ["CHECKS", "CheckResult", "GatewayVerdict", "judge"]

_BY_SEVERITY: Final[Mapping[str, GatewayVerdict]] = {
    "A": GatewayVerdict.BROKEN,
    "B": GatewayVerdict.BROKEN,
    "C": GatewayVerdict.DEGRADED,
    "D": GatewayVerdict.CHANGED,
}
# Two turns of a hundred calls, with the ten before them.
_MOST_CALLS: Final = 220
_PRODUCTS: Final = ("server", "via", "x-powered-by", "x-varnish")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The finding of one check. `calls` are its calls at the probe, by way."""

    fault: KnownFault
    verdict: GatewayVerdict
    direct: str
    through: str
    evidence: str
    hints: tuple[Hint, ...]
    calls: Mapping[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        return self.fault.name


def judge(run: GatewayRun, checks: Iterable[Check] = CHECKS) -> list[CheckResult]:
    """The findings of the checks that had their steps done."""
    case = Case(run)
    product = product_of(run)
    done = {trial.step for trial in run.trials}
    return [_finding(case, check, product) for check in checks if done.intersection(check.steps)]


def _finding(case: Case, check: Check, product: str | None) -> CheckResult:
    fault = catalogue()[check.number]
    try:
        _require(case, check)
        seen = check.judge(case)
    except UnjudgedError as reason:
        seen = reason.seen
    if seen.verdict is not None:
        verdict = seen.verdict
    elif seen.found is None:
        verdict = GatewayVerdict.UNCLEAR
    else:
        verdict = _BY_SEVERITY[fault.severity] if seen.found else GatewayVerdict.SAME
    bad = verdict in (GatewayVerdict.BROKEN, GatewayVerdict.DEGRADED, GatewayVerdict.CHANGED)
    hints = fault.hints(product, seen.cases) if bad else ()
    return CheckResult(fault, verdict, seen.direct, seen.through, seen.evidence, hints, _calls(case, check))


def _require(case: Case, check: Check) -> None:
    """Raise `UnjudgedError` if a way does not offer the check's steps."""
    trials = [trial for step in check.steps for trial in case.run.of(step, "through")]
    if trials and all(trial.skipped for trial in trials):
        raise not_applicable(trials[0].skipped)
    direct = [trial for step in check.steps for trial in case.of(step, "direct")]
    if not direct and not check.alone:
        raise unclear("the direct way was not asked, or does not offer it")


def _calls(case: Case, check: Check) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for way in ("direct", "through"):
        trials = [trial for step in check.steps for trial in case.of(step, way)]
        calls = [call.started["call"] for trial in trials for call in trial.behind.all_calls(trial.mark)]
        found[way] = tuple(dict.fromkeys(calls))[:_MOST_CALLS]
    return found


def product_of(run: GatewayRun) -> str | None:
    """The names of the gateway in its responses, such as "nginx/1.27" in Server, without those of the direct way."""
    named = {way: _names(run, way) for way in ("direct", "through")}
    new = [name for name in named["through"] if name not in named["direct"]]
    return ", ".join(new) or None


def _names(run: GatewayRun, way: str) -> list[str]:
    found: dict[str, None] = {}
    for trial in run.trials:
        if trial.way == way:
            for item in trial.exchanges:
                found |= {value: None for name, value in item.headers if name.lower() in _PRODUCTS}
    return list(found)
