"""What the judge has found of the beginning of a log is what it finds of the whole, whatever came behind it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias
from unittest.mock import patch

from msgspec import structs

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.log.context import Context
from probe.log.event_log import Entry, Gap
from probe.log.ndjson import Header

Items: TypeAlias = Sequence[Entry | Gap]
Found: TypeAlias = Counter[tuple[Any, ...]]

AT_ONCE, AT_END = 0.0, float("inf")
"""Batches: the rules are asked after each entry, or once about the whole log."""

_HEADER = Header("run", "0.0.0", 1.7e9)


def judged(items: Iterable[Entry | Gap], batch_s: float, *, watched: bool = False) -> Judge:
    """A log that was cut off behind its last item: what waits then stays without a finding.

    Where it is `watched` a person asks for the report after each entry, and so all rules that wait are asked.
    """
    judge = Judge(catalogue(), FUNCTIONS, batch_s=batch_s)
    judge.begin(_HEADER)
    for item in items:
        judge.take(item)
        if watched:
            judge.settle(everything=True)
    judge.end(None)
    return judge


def found(items: Iterable[Entry | Gap], batch_s: float) -> Found:
    """Each finding by label, rule, verdict, entries and remark. A rule that raises fails the test."""
    with patch("probe.judge.verdicts._FIRST", 100_000):
        subjects = judged(items, batch_s).subjects
        assert not any(subject.broken for subject in subjects), [subject.broken for subject in subjects]
        return Counter(
            (subject.label, rule, each.verdict.name, each.seqs, each.remark)
            for subject in subjects
            for rule, tally in subject.tallies.items()
            for each in tally.evidence
        )


def check_final(items: Items, lengths: Iterable[int], batch_s: float) -> None:
    """What was found of each beginning, in batches of any size, is found of the whole at its end."""
    whole = found(items, AT_END)
    for length in lengths:
        lost = found(items[:length], batch_s) - whole
        assert not lost, (length, lost, [each for each in whole if each[:2] in {one[:2] for one in lost}])


def shown(judge: Judge) -> Any:
    """What a report shows of each client: evidence in its order, counts and measured values."""
    return {
        (subject.label, rule): (tally.evidence, tally.counts, tally.measured, sorted(tally.breaches))
        for subject in judge.subjects
        for rule, tally in subject.tallies.items()
        if tally.counts or tally.measured
    }


def with_gap(items: Items, first: int, last: int) -> Items:
    """The log without the items from one place to another."""
    return [*items[:first], Gap(_first(items[first]), _last(items[last])), *items[last + 1 :]]


def without_labels(items: Items) -> Items:
    """The log of clients that no label keeps together."""
    return [_with_context(each, label=None) if isinstance(each, Entry) else each for each in items]


def and_again(items: Items) -> Items:
    """The log, and behind it a second client that has the labels of the first and does the same; tasks are its own."""
    last, entries = _last(items[-1]), [each for each in items if isinstance(each, Entry)]
    later = max(each.mono for each in entries) - min(each.mono for each in entries) + 0.01
    return [*(_labelled(each) for each in items), *(_again(each, last, later) for each in items)]


def _labelled(item: Entry | Gap) -> Entry | Gap:
    return _with_context(item, label=item.context.label or "nobody") if isinstance(item, Entry) else item


def _again(item: Entry | Gap, last: int, later: float) -> Entry | Gap:
    if isinstance(item, Gap):
        return Gap(item.first + last, item.last + last)
    ids = {name: _other(getattr(item.context, name)) for name in Context.__struct_fields__ if name != "label"}
    moved = structs.replace(
        _with_context(item, **ids, label=item.context.label or "nobody"),
        seq=item.seq + last,
        mono=item.mono + later,
        cause=None if item.cause is None else item.cause + last,
    )
    named = getattr(item.fact, "named", None)
    if named is not None:
        moved = structs.replace(moved, fact=structs.replace(item.fact, named=_other(named)))
    message = getattr(item.fact, "message", None)
    if isinstance(message, bytes):
        message = re.sub(rb'("(?:task-?[Ii]d"|taskIds":\s*\[)\s*:?\s*)"([^"]*)"', rb'\1"\2b"', message)
        moved = structs.replace(moved, fact=structs.replace(item.fact, message=message))
    return moved


def _other(id: Any) -> Any:
    """An id of the second client: exchanges have numbers, and all others text."""
    return id + 100_000 if isinstance(id, int) else id + "b" if isinstance(id, str) else id


def _with_context(entry: Entry, **members: Any) -> Entry:
    return structs.replace(entry, context=structs.replace(entry.context, **members))


def _first(item: Entry | Gap) -> int:
    return item.seq if isinstance(item, Entry) else item.first


def _last(item: Entry | Gap) -> int:
    return item.seq if isinstance(item, Entry) else item.last
