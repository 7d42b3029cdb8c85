"""What the judge has once found stays, over prefixes of the logs of random stories, of real engines among them.

Twelve beginnings of each log are judged, and each of them with `HYPOTHESIS_PROFILE=thorough`: as it is, with a gap,
without labels, or with a second client of the same label behind it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.log.event_log import Entry

from ..judge.finality import AT_END, AT_ONCE, Items, and_again, check_final, judged, shown, with_gap, without_labels
from ..judge.logs import Log
from ..support.probe import running
from . import at_most
from .story import IDLE_S, Step, World, told
from .test_engine import stories
from .test_judge import logs

_PREFIXES = None if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 12

batches = st.sampled_from([AT_ONCE, 1.0, AT_END])


@st.composite
def changes(draw: st.DrawFn, items: Items) -> Items:
    """A log as it is, or changed so that there is something to doubt."""
    how = draw(st.sampled_from(["whole", "gap", "no labels", "again"]))
    if how == "gap":
        first = draw(st.integers(1, len(items) - 1))
        return with_gap(items, first, draw(st.integers(first, min(first + 5, len(items) - 1))))
    return and_again(items) if how == "again" else without_labels(items) if how == "no labels" else items


def _check(items: Items, data: st.DataObject) -> None:
    items = data.draw(changes(items))
    lengths: Sequence[int] = range(1, len(items))
    if _PREFIXES is not None:
        lengths = data.draw(st.lists(st.sampled_from(lengths), max_size=_PREFIXES, unique=True))
    check_final(items, lengths, data.draw(batches))
    assert shown(judged(items, AT_ONCE, watched=True)) == shown(judged(items, AT_END))


# The check has the same examples each time, and the thorough run looks for new ones.
@settings(derandomize=_PREFIXES is not None)
@given(logs(), st.data())
def test_what_is_found_of_clumsy_clients_stays(log: Log, data: st.DataObject) -> None:
    log.idle(data.draw(st.sampled_from([0.1, 100])))
    _check(log.items, data)


@settings(at_most(200 if _PREFIXES is None else 15), derandomize=_PREFIXES is not None)
@given(stories, st.data())
def test_what_is_found_in_the_log_of_an_engine_stays(story: list[Step], data: st.DataObject) -> None:
    _check(trio.run(_told, story, clock=MockClock(autojump_threshold=0)), data)


async def _told(story: list[Step]) -> Sequence[Entry]:
    async with running(
        idle_deadline_s=IDLE_S, progress_burst=5, progress_per_second=10, client_request_s=30, session_idle_s=100_000
    ) as probe:
        async with told(probe, story, between=_nothing):
            pass
        return [each for each in probe.engine.log.since(0, 1_000_000).entries if isinstance(each, Entry)]


def _nothing(world: World) -> None:
    pass
