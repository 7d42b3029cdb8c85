"""The aims, one line each: what is wanted, what was measured, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .results import CONCURRENCIES, Results
from .servers import OUR_MODERN, OUR_SERVER, UPPER_BOUND

_TYPESCRIPT = "TypeScript SDK, node"
_PYTHON = {OUR_SERVER: "Python SDK, uvicorn", OUR_MODERN: "Python SDK, modern"}


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim. `measured` has to be at least the bound, or at most where `most`."""

    what: str
    measured: float
    bound: float
    unit: str = ""
    most: bool = False

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.measured <= self.bound if self.most else self.measured >= self.bound

    def line(self) -> Sequence[str]:
        """A row of the table."""
        sign = "<=" if self.most else ">="
        verdict = "met" if self.met else "not met"
        return (self.what, f"{sign} {self.bound:g}{self.unit}", f"{self.measured:.3g}{self.unit}", verdict)


def aims(results: Results) -> list[Aim]:
    """Those for which something was measured; of ratios, both sides."""
    figures = results.figures()
    found = [aim for name in (OUR_SERVER, OUR_MODERN) for aim in _of(name, figures)]
    if _REPLICAS in figures:
        found.append(Aim(_REPLICAS, figures[_REPLICAS], 0.85))
    return found


def _of(name: str, figures: Mapping[str, float]) -> Iterable[Aim]:
    for concurrency, bound in zip(CONCURRENCIES, (1.2, 1.0, 0.9), strict=True):
        what = f"calls a second at {concurrency}"
        yield from _ratio(f"{name}: {what}", figures, (name, _TYPESCRIPT), bound)
        yield from _ratio(f"{name}: {what}", figures, (name, _PYTHON[name]), 2.5)
    yield from _ratio(f"{name}: processor a call", figures, (name, UPPER_BOUND), 0.33, most=True)
    yield from _ratio(f"{name}: processor a streamed message", figures, (name, _TYPESCRIPT), 1.0, most=True)
    yield from _ratio(f"{name}: HTTP/2 calls a second", figures, (name, UPPER_BOUND), 0.8)
    for what, bound, unit in _BOUNDS:
        key = f"{name}: {what}"
        if key in figures:
            yield Aim(key, figures[key], bound, unit, most=True)
    beside = f"{name}: calls beside dashboards"
    if beside in figures:
        yield Aim(f"{beside}, of those without", figures[beside], 0.9)


_REPLICAS = "2 replicas: calls a second, of the ideal"
_BOUNDS = (
    ("lateness p99 of a streamed message", 50.0, " ms"),
    ("lateness p99 of 10,000 streams", 250.0, " ms"),
    ("missing messages of 10,000 streams", 0.0, ""),
    ("memory of an open stream", 25.0, " kB"),
    ("cancellation p99 under load", 15.0, " ms"),
    ("added by a tool host", 1.5, " ms"),
    ("cold start", 0.7, " s"),
)


def _ratio(
    what: str, figures: Mapping[str, float], of: tuple[str, str], bound: float, *, most: bool = False
) -> Iterable[Aim]:
    own, other = of
    measure = what.removeprefix(f"{own}: ")
    theirs = f"{other}: {measure}"
    if what in figures and theirs in figures and figures[theirs]:
        yield Aim(f"{what}, against {other}", figures[what] / figures[theirs], bound, most=most)
