"""A whole engine and a client with draft streams, told random stories, in memory and in virtual time.

Whatever happens: each message of each stream comes once and in its place, or the stream is said to be lost; polls tell
the truth; and in the end no call, no task and no byte is left.
"""

from __future__ import annotations

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from ..properties import at_most
from ..support.inside import SERVICES, engine_tasks
from ..support.probe import Probe, running
from ..support.shown import as_value, newest
from .links import CREATE, END
from .story import TOOLS, Seen, Story
from .tools import ALL

# Short, so that a story of hours is one of minutes.
MAX, KEEP, IDLE = 100.0, 30.0, 4000.0

which = st.integers(0, 7)
CALL = st.tuples(st.just("call"), st.sampled_from(sorted(TOOLS)))
RESUME = st.tuples(st.just("resume"), which, st.booleans(), st.booleans())
WAIT = st.tuples(st.just("wait"), st.sampled_from([0.01, 0.5, 1.5, 5.0, 7.3]))
DROP = st.tuples(st.just("drop"), which, st.booleans())
steps = st.one_of(
    CALL,
    CALL,
    RESUME,
    RESUME,
    WAIT,
    WAIT,
    DROP,
    DROP,
    st.tuples(st.just("connect")),
    st.tuples(st.just("poll"), which),
    st.tuples(st.just("poll_all")),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("cancel_resume"), which),
    st.tuples(st.just("answer")),
    st.tuples(st.just("wait"), st.sampled_from([KEEP + 5, MAX + 5])),
)
stories = st.lists(steps, min_size=5, max_size=30)


@pytest.mark.parametrize("transport", ["http", "pipe"])
@at_most(500)
@example(
    # The end of the first stream is on the way when its connection breaks.
    story=[("call", "asks"), ("wait", 0.01), ("cancel", 0), ("drop", 0, False), ("call", "asks")],
    replay_messages=8,
    min_s=0.0,
)
@given(story=stories, replay_messages=st.sampled_from([8, 2000]), min_s=st.sampled_from([0.0, 5.0]))
def test_nothing_is_lost_doubled_reordered_or_left(
    transport: str, story: list[tuple[object, ...]], replay_messages: int, min_s: float
) -> None:
    async def tell() -> None:
        intervals = {"stream_min_s": min_s, "stream_max_s": MAX, "stream_retention_s": KEEP, "session_idle_s": IDLE}
        settings = {"replay_messages": replay_messages, "client_request_s": 20.0}
        async with running(toolsets=ALL, **intervals, **settings) as probe, trio.open_nursery() as nursery:
            told = Story(probe, nursery, transport)
            for name, *arguments in story:
                await getattr(told, name)(*arguments)
            await told.finish()
            for seen in told.streams:
                check(probe, seen)
            await check_empty(probe)
            nursery.cancel_scope.cancel()

    trio.run(tell, clock=MockClock(autojump_threshold=0))


def check(probe: Probe, seen: Seen) -> None:
    """A stream of which its client has all that it will have."""
    (record,) = [record for record in newest(probe.engine.records, 1000) if record.request_id == seen.request]
    assert record.outcome is not None
    answered = record.outcome not in ("cancelled", "disconnected")
    assert record.answered is answered
    assert len(seen.responses) <= answered
    assert as_value(record)["emitted"] >= 0
    if seen.whole and not seen.lost:
        assert seen.ended
        assert list(seen.messages) == list(range(1, seen.last + 1))
        assert seen.messages[1]["method"] == CREATE
        assert seen.messages[seen.last]["method"] == END
        assert len(seen.responses) == answered
        assert not answered or "method" not in seen.messages[seen.last - 1]


async def check_empty(probe: Probe) -> None:
    """Nobody comes back any more."""
    await trio.sleep(MAX)
    await wait_all_tasks_blocked()
    streams = probe.engine.streams
    assert list(streams) == []
    assert streams._bytes == 0
    assert streams.running == []
    await trio.sleep(IDLE)
    await wait_all_tasks_blocked()
    assert list(probe.engine.sessions) == []
    assert engine_tasks() == SERVICES
