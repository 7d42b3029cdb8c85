"""What tests of the client judge expect of one rule."""

from __future__ import annotations

from typing import Any

from probe.judge.verdicts import Verdict

from .logs import Log, judged

FAIL, WARN, UNCLEAR, PASS, SILENT = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.NOT_OBSERVED,
)


def check(log: Log, rule: str, verdict: Verdict, label: str = "acme", **options: Any) -> None:
    """A rule has a verdict; where that is a fault, no other rule finds one, and else none does."""
    found = judged(log, **options).get(label)
    if found is None or rule not in found.verdicts:
        assert verdict is SILENT
        return
    assert found[rule] is verdict, found.remarks[rule]
    assert set(found.faults) == ({rule} if verdict > UNCLEAR else set()), found.faults
