"""What tests of the client judge expect of one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from probe.judge.verdicts import Verdict

from .logs import Judged, Log, judged

FAIL, WARN, UNCLEAR, PASS, SILENT = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.NOT_OBSERVED,
)
Way: TypeAlias = tuple[str, str]

WAYS: Final[tuple[Way, ...]] = (("http", "2025-11-25"), ("stdio", "2025-06-18"), ("websocket", "2025-03-26"))
"""Each transport, and each revision with sessions."""


def play(log: Log, acts: str, words: Mapping[str, Callable[[], Any]]) -> None:
    """Do what the words of a story name; a number lets so many seconds pass, and `gap` loses entries."""
    for act in acts.split():
        if act in words:
            words[act]()
        elif act == "gap":
            log.gap()
        else:
            log.idle(float(act))


def opened(log: Log, way: Way = WAYS[0], **options: Any) -> Any:
    """A session of the client acme over a transport, at a revision."""
    transport, revision = way
    return getattr(log, transport)().session(revision, **options)


def check(log: Log, rule: str, verdict: Verdict, label: str = "acme", **options: Any) -> None:
    """A rule has a verdict; where that is a fault, no other rule finds one, and else none does."""
    found = judged(log, **options).get(label)
    if found is None or rule not in found.verdicts:
        assert verdict is SILENT
        return
    assert found[rule] is verdict, found.remarks[rule]
    assert set(found.faults) == ({rule} if verdict > UNCLEAR else set()), found.faults


Story: TypeAlias = Callable[[], Log]
Expected: TypeAlias = Mapping[str, Verdict]


def expect(story: Story, expected: Expected, **options: Any) -> Judged:
    """What the client acme, or the only one of a story, gets: some verdicts, and no fault by another rule."""
    clients = judged(story(), **options)
    [found] = [clients["acme"]] if "acme" in clients else clients.values()
    assert {rule: found[rule] for rule in expected} == expected, {rule: found.remarks[rule] for rule in expected}
    assert found.faults == {rule: verdict for rule, verdict in expected.items() if verdict > UNCLEAR}
    return found
