"""Judges the trials of both ways by the catalogue of faults (`catalogue.toml`). It is pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias

from .phases import CHECKS
from .phases.step import Case, Check, GatewayVerdict, UnjudgedError, not_applicable, unclear
from .trials import GatewayRun

Severity: TypeAlias = Literal["A", "B", "C", "D"]


@dataclass(frozen=True, slots=True)
class Hint:
    """Advice about a fault: `lines` for the configuration of a product, or advice for any gateway without one."""

    product: str | None
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([*([] if self.product is None else [f"{self.product}:"]), *self.lines])


@dataclass(frozen=True, slots=True)
class Advice:
    """The hints for one fault, or for one case of it: in general, and for single products by their names."""

    general: str
    products: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def hints(self, named: str | None) -> list[Hint]:
        """The hints for the products in `named`; where none of them is known, the general one.

        Without a name the general one comes first, and each product after it.
        """
        of_products = [Hint(product, lines) for product, lines in self.products.items() if _is_in(product, named)]
        return of_products if named is not None and of_products else [Hint(None, (self.general,)), *of_products]


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One row of the catalogue."""

    number: int
    name: str
    severity: Severity
    title: str
    advice: Advice
    cases: Mapping[str, Advice] = field(default_factory=dict)

    def hints(self, named: str | None, cases: Sequence[str] = ()) -> tuple[Hint, ...]:
        """The hints for `cases` of the fault, such as "merged", or for the whole fault without cases."""
        advice = [self.cases[case] for case in cases] or [self.advice]
        return tuple(hint for each in advice for hint in each.hints(named))


def _is_in(product: str, named: str | None) -> bool:
    return named is None or any(name.lower() in named.lower() for name in (product, *_other_names().get(product, ())))


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))


def _other_names() -> Mapping[str, Sequence[str]]:
    names: Mapping[str, Sequence[str]] = _data()["products"]
    return names


def _advice(item: Mapping[str, Any]) -> Advice:
    lines = {name: (one,) if isinstance(one, str) else tuple(one) for name, one in item.get("for", {}).items()}
    return Advice(item["hint"], lines)


@cache
def catalogue() -> Mapping[int, KnownFault]:
    """All faults by their number."""
    known = [
        KnownFault(
            item["number"],
            item["name"],
            item["severity"],
            item["title"],
            _advice(item),
            {name: _advice(case) for name, case in item.get("cases", {}).items()},
        )
        for item in _data()["fault"]
    ]
    return {fault.number: fault for fault in known}


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
