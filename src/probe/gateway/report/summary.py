"""The sum of the findings: counts, the accepted ones, and the exit code."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..checks import CheckResult, Verdict

_ORDER = (
    Verdict.SAME,
    Verdict.CHANGED,
    Verdict.DEGRADED,
    Verdict.BROKEN,
    Verdict.NOT_APPLICABLE,
    Verdict.UNCLEAR,
)


class AllowedError(ValueError):
    """A file of accepted deviations is none; the message says why."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Accepted deviations: the verdict that a check may have, by its name."""

    verdicts: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, finding: CheckResult) -> bool:
        """Whether this finding is known and accepted."""
        return self.verdicts.get(finding.name) == finding.verdict

    def mark(self, finding: CheckResult) -> str:
        """Stands beside the verdict of an accepted one."""
        return " (allowed)" if self.accepts(finding) else ""


def read_allowed(text: str, names: Iterable[str]) -> Allowed:
    """Read lines such as `"close.lost" = "broken"` (TOML). Raises `AllowedError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise AllowedError(f"it is no TOML: {error}") from None
    known = set(names)
    for name, verdict in data.items():
        if name not in known:
            raise AllowedError(f'there is no check {name!r}; a line is "stream.late" = "degraded", the name in quotes')
        if verdict not in {each.value for each in Verdict}:
            raise AllowedError(f"{name} cannot be {verdict!r}, but one of {', '.join(Verdict)}")
    return Allowed(data)


def summary(findings: Sequence[CheckResult], partial: str = "") -> str:
    """One line of counts, and why the run is `partial`."""
    counts = Counter(finding.verdict for finding in findings)
    said = [f"{counts[verdict]} {_shown(verdict)}" for verdict in _ORDER if counts[verdict]]
    counted = " · ".join(said) or "nothing was checked"
    return f"{counted} · PARTIAL: {partial}" if partial else counted


def _shown(verdict: Verdict) -> str:
    return verdict.upper() if verdict == Verdict.BROKEN else str(verdict)


def exit_code(findings: Sequence[CheckResult], allowed: Allowed, *, strict: bool = False, partial: bool = False) -> int:
    """0 nothing broken, 1 broken (with `strict` also degraded), 3 nothing broken and something unclear or not done."""
    left = [finding.verdict for finding in findings if not allowed.accepts(finding)]
    bad = {Verdict.BROKEN, Verdict.DEGRADED} if strict else {Verdict.BROKEN}
    if bad.intersection(left):
        return 1
    return 3 if Verdict.UNCLEAR in left or partial or not findings else 0
