"""The findings in sum: counts, accepted deviations, and the exit code."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..checks import CheckResult, GatewayVerdict

_ORDER = (
    GatewayVerdict.SAME,
    GatewayVerdict.CHANGED,
    GatewayVerdict.DEGRADED,
    GatewayVerdict.BROKEN,
    GatewayVerdict.NOT_APPLICABLE,
    GatewayVerdict.UNCLEAR,
)


class AllowedError(ValueError):
    """The file of accepted deviations has a wrong line, or is not TOML."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Accepted deviations: a verdict by the name of its check, such as {"close.lost": "broken"}."""

    verdicts: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, finding: CheckResult) -> bool:
        """True if this finding is accepted."""
        return self.verdicts.get(finding.name) == finding.verdict

    def mark(self, finding: CheckResult) -> str:
        """The text after the verdict of an accepted finding, else empty."""
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
        if verdict not in {each.value for each in GatewayVerdict}:
            raise AllowedError(f"{name} cannot be {verdict!r}, but one of {', '.join(GatewayVerdict)}")
    return Allowed(data)


def summary(findings: Sequence[CheckResult], partial: str = "") -> str:
    """One line of counts, and why the run is `partial`."""
    counts = Counter(finding.verdict for finding in findings)
    parts = [f"{counts[verdict]} {_shown(verdict)}" for verdict in _ORDER if counts[verdict]]
    counted = " · ".join(parts) or "nothing was checked"
    return f"{counted} · PARTIAL: {partial}" if partial else counted


def _shown(verdict: GatewayVerdict) -> str:
    return verdict.upper() if verdict == GatewayVerdict.BROKEN else str(verdict)


def exit_code(findings: Sequence[CheckResult], allowed: Allowed, *, strict: bool = False, partial: bool = False) -> int:
    """1 if a finding is broken (with `strict` also degraded), else 3 if one is unclear or was not done, else 0."""
    left = [finding.verdict for finding in findings if not allowed.accepts(finding)]
    bad = {GatewayVerdict.BROKEN, GatewayVerdict.DEGRADED} if strict else {GatewayVerdict.BROKEN}
    if bad.intersection(left):
        return 1
    return 3 if GatewayVerdict.UNCLEAR in left or partial or not findings else 0
