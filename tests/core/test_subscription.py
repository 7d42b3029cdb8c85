"""One subscription: every kind of change against every filter, and its end."""

from __future__ import annotations

from typing import get_args

import pytest

from probe.core.subscription import Change, ChangeFate, ChangeKind, Filter, Subscription

KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
ALL = Filter(tools=True, prompts=True, resources=True, uris=("u", "v"), tasks=("t",))
NONE = Filter()
CHANGES = [
    Change("tools"),
    Change("prompts"),
    Change("resources"),
    Change("resource", "u"),
    Change("resource", "v"),
    Change("resource", "w"),
    Change("resource", "t"),
    Change("task", "t"),
    Change("task", "u"),
]
# Which of the changes a filter lets through.
TABLE: list[tuple[Filter, list[Change]]] = [
    (NONE, []),
    (Filter(tools=True), [Change("tools")]),
    (Filter(prompts=True), [Change("prompts")]),
    (Filter(resources=True), [Change("resources")]),
    (Filter(uris=("u",)), [Change("resource", "u")]),
    (Filter(uris=("v", "u")), [Change("resource", "u"), Change("resource", "v")]),
    (Filter(tasks=("t",)), [Change("task", "t")]),
    (Filter(tasks=("u",)), [Change("task", "u")]),
    (Filter(uris=("t",)), [Change("resource", "t")]),
    (ALL, [change for change in CHANGES if change not in (CHANGES[5], CHANGES[6], CHANGES[8])]),
]


def test_the_changes_are_of_every_kind() -> None:
    assert {change.kind for change in CHANGES} == set(KINDS)


@pytest.mark.proves("2026-07-28/subscriptions/1")
@pytest.mark.parametrize(("wanted", "passing"), TABLE)
def test_a_filter_lets_through_what_it_names_and_nothing_else(wanted: Filter, passing: list[Change]) -> None:
    assert [change for change in CHANGES if change in wanted.changes] == passing
    subscription = Subscription(wanted, max_queue=10)
    sent = [change for change in CHANGES if subscription.offer(change, 0) is ChangeFate.SEND]
    assert sent == passing
    assert not subscription.ended


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [None, "", "x"])
def test_the_empty_filter_wants_nothing(kind: ChangeKind, key: str | None) -> None:
    assert Change(kind, key) not in NONE.changes


QUEUES = [
    (1, 0, ChangeFate.SEND),
    (1, 1, ChangeFate.END),
    (3, 2, ChangeFate.SEND),
    (3, 3, ChangeFate.END),
    (3, 4, ChangeFate.END),
]


@pytest.mark.parametrize(("most", "queued", "verdict"), QUEUES)
def test_a_full_queue_ends_it(most: int, queued: int, verdict: ChangeFate) -> None:
    subscription = Subscription(ALL, max_queue=most)
    assert subscription.offer(Change("tools"), queued) is verdict
    assert subscription.ended == (verdict is ChangeFate.END)


def test_a_full_queue_does_not_matter_to_what_was_not_asked_for() -> None:
    subscription = Subscription(Filter(tools=True), max_queue=1)
    assert subscription.offer(Change("prompts"), 5) is ChangeFate.IGNORE
    assert not subscription.ended
    assert subscription.offer(Change("tools"), 0) is ChangeFate.SEND


@pytest.mark.parametrize("change", CHANGES)
def test_after_the_end_nothing_is_sent(change: Change) -> None:
    by_server, by_queue = Subscription(ALL, max_queue=1), Subscription(ALL, max_queue=1)
    assert by_server.end()
    assert by_queue.offer(Change("tools"), 1) is ChangeFate.END
    for subscription in (by_server, by_queue):
        for queued in (0, 1, 2):
            assert subscription.offer(change, queued) is ChangeFate.IGNORE


def test_it_ends_once() -> None:
    subscription = Subscription(ALL, max_queue=1)
    assert (subscription.ended, subscription.end(), subscription.ended, subscription.end()) == (
        False,
        True,
        True,
        False,
    )


def test_the_end_by_the_queue_is_the_only_one() -> None:
    subscription = Subscription(ALL, max_queue=1)
    subscription.offer(Change("tools"), 1)
    assert not subscription.end()
