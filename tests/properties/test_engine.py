"""A whole engine, in memory and in virtual time, told random stories of calls, cancellations, disconnects and resumes.

Whatever happens: each request is answered or silenced by a cancellation, exactly one of the two; ids are paired;
nothing is lost or comes twice on a stream that is resumed; and when the sessions have ended the engine is clean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.core.call import Cause

from ..support.inside import SERVICES, engine_tasks
from ..support.probe import Probe, running
from ..support.shown import as_value
from . import at_most
from .story import IDLE_S, TASKS, TOOLS, Step, Track, World, told

TOLD = {Cause.DEADLINE.value, Cause.SHUTDOWN.value}
which = st.integers(0, 7)
tokens = st.sampled_from([None, 0, "", "0", "t", 2**63])

CALL = st.tuples(st.just("call"), which, st.sampled_from(sorted(TOOLS)), tokens)
WAITING_CALL = st.tuples(st.just("call"), which, st.sampled_from(["steps", "flood", "long", "asks"]), tokens)
CANCEL = st.tuples(st.just("cancel"), which)
RESUME = st.tuples(st.just("resume"), which, st.integers(0, 3))
SETTLE = st.tuples(st.just("settle"))
WAIT = st.tuples(st.just("wait"), st.sampled_from([0.01, 0.7, 1.5, 6.0]))

# What interrupts stands here more often than what ends a session for good.
steps = st.one_of(
    CALL,
    WAITING_CALL,
    WAITING_CALL,
    st.tuples(st.just("task"), which, st.sampled_from(sorted(TASKS)), tokens),
    st.tuples(st.just("about_task"), which, st.sampled_from(["tasks/get", "tasks/result", "tasks/cancel"])),
    CANCEL,
    CANCEL,
    st.tuples(st.just("hang_up"), which),
    RESUME,
    RESUME,
    st.tuples(st.just("listen"), which),
    st.tuples(st.just("open"), st.sampled_from(["2025-03-26", "2025-06-18", "2025-11-25"]), st.booleans()),
    st.tuples(st.just("delete"), which),
    WAIT,
    WAIT,
    SETTLE,
    SETTLE,
    SETTLE,
)
OPENING = [("open", "2025-11-25", True), ("open", "2025-11-25", False)]
stories = st.lists(steps, min_size=6, max_size=24).map(lambda rest: [*OPENING, *rest])


# A reader comes in the moment in which the task that waits for one is cancelled.
QUESTION_AND_CANCELLATION = [
    *OPENING,
    ("listen", 1),
    ("task", 0, "asking", None),
    ("cancel", 0),
    ("wait", 0.7),
    ("about_task", 0, "tasks/cancel"),
    ("listen", 0),
]


@pytest.mark.proves("2025-11-25/cancellation/9")
@at_most(1000)
@given(story=stories, replay_messages=st.sampled_from([8, 2000]))
@example(story=QUESTION_AND_CANCELLATION, replay_messages=2000)
def test_whatever_the_story_the_promises_hold(story: list[Step], replay_messages: int) -> None:
    trio.run(tell, story, replay_messages, clock=MockClock(autojump_threshold=0))


async def tell(story: list[Step], replay_messages: int) -> None:
    """One engine, one story. Times are such that nothing is forgotten before its client comes back."""
    async with running(
        replay_messages=replay_messages,
        progress_burst=5,
        progress_per_second=10,
        idle_deadline_s=IDLE_S,
        client_request_s=30,
        keep_alive_s=600,
        session_idle_s=100_000,
        stream_retention_s=100_000,
    ) as probe:
        async with told(probe, story, between=every_live_thing_has_a_deadline_or_a_reason) as world:
            facts = Facts(probe)
            for track in world.tracks:
                if not track.user.deleted:
                    check_track(track, facts, evicting=replay_messages == 8)
            check_calls(facts)
            check_emitted(facts)
        check_clean(probe)


def every_live_thing_has_a_deadline_or_a_reason(world: World) -> None:
    """Nothing can live for ever: a session idles, a call expires, a task has its ttl, a result waits for its task."""
    engine = world.probe.engine
    for session in engine.sessions:
        machine = session.machine
        assert machine.deadline is not None or machine.in_flight or machine._held > 0
        for call in session.calls.values():
            assert call.scope.deadline < math.inf or call.scope.cancel_called or call.method == "tasks/result"
        assert set(session.calls) <= machine.in_flight
    for task in engine.tasks.everyone():
        expires = task.machine.created_at + task.plan.ttl_ms / 1000
        assert engine.clock.wall() <= expires
        # The scope of the work has its deadline from the moment when the work begins.
        assert task.machine.terminal or task.call.scope.deadline < math.inf or not task.call.steps_done


class Facts:
    """The event log, sorted."""

    def __init__(self, probe: Probe) -> None:
        page = probe.engine.log.since(0, 1_000_000)
        assert page.gap is None
        self.events = [as_value(entry) for entry in page.entries]
        self.emitted = [event for event in self.events if event["kind"] == "message.emitted"]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def sent_on(self, session: str, stream: str | None) -> list[Any]:
        return [e["message"] for e in self.emitted if (e["session"], e["stream"]) == (session, stream)]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def check_track(track: Track, facts: Facts, *, evicting: bool) -> None:
    """What one client saw of one request, after it came back for the rest."""
    id = track.request["id"]
    assert all(same(response["id"], id) for response in track.responses), "ids are paired"
    if track.body is not None:
        assert track.messages == [track.body]
        return
    if track.stream is None:
        return  # It hung up before it heard anything: it has no event id to come back with.
    sent = facts.sent_on(track.user.label, track.stream)
    assert all(sent[at - 1] == message for at, message in track.seen.items()), "what was seen was sent, in its place"
    if not (evicting and track.gone and len(sent) > 8):
        assert sorted(track.seen) == list(range(1, len(sent) + 1)), "nothing is lost"
    answered = [message for message in sent if "method" not in message]
    assert len(answered) == (0 if silenced(track, facts) else 1), "an answer or a cancellation, exactly one of the two"
    assert answered in ([], sent[-1:]), "nothing follows the response"
    check_progress(track, sent)


def silenced(track: Track, facts: Facts) -> bool:
    """Whether a cancellation was heard for a request that was waiting."""
    return any(
        event["effect"] and event["task"] is None and event["by"] not in TOLD
        for event in facts.of_kind("call.cancelled")
        if event["session"] == track.user.label and same(event["request_id"], track.request["id"])
    )


def check_progress(track: Track, sent: Sequence[Any]) -> None:
    """2025-11-25 basic/utilities/progress: with exactly the token of the request, strictly increasing."""
    reports = [message["params"] for message in sent if message.get("method") == "notifications/progress"]
    if track.request["method"] == "tools/call":
        token = track.request["params"].get("_meta", {}).get("progressToken")
        assert all(same(report["progressToken"], token) for report in reports)
    assert all(one["progress"] < two["progress"] for one, two in pairwise(by_token(reports)))


def by_token(reports: Sequence[Any]) -> Sequence[Any]:
    """The reports of the first token; a `tasks/result` stream carries those of its task alone."""
    assert len({(type(report["progressToken"]), report["progressToken"]) for report in reports}) <= 1
    return reports


def check_calls(facts: Facts) -> None:
    """Every call that began has ended once, and has answered exactly when nobody silenced it."""
    started = [event["call"] for event in facts.of_kind("call.started")]
    settled = {event["call"]: event for event in facts.of_kind("call.settled")}
    assert Counter(started) == Counter(event["call"] for event in facts.of_kind("call.settled"))
    heard = [event for event in facts.of_kind("call.cancelled") if event["effect"]]
    causes = {event["call"]: event["by"] for event in heard}
    assert len(causes) == len(heard), "the first cause wins"
    for call, event in settled.items():
        assert event["cancelled_by"] == causes.get(call)
        assert event["sent_after_cancel"] == 0
        if event["task"] is None:
            assert event["answered"] == (causes.get(call) in {None, *TOLD})
    check_silence(facts, heard)


def check_silence(facts: Facts, heard: Sequence[dict[str, Any]]) -> None:
    """The work of a call sends nothing after its cancellation; what a task had asked is withdrawn."""
    at = {event["call"]: event["seq"] for event in heard if event["by"] not in TOLD}
    for event in facts.emitted:
        if event["call"] in at and event["seq"] > at[event["call"]]:
            assert event["task"] is not None
            # The server still says how the task stands, by itself and when it is asked.
            allowed = ("notifications/cancelled", "notifications/tasks/status", None)
            assert event["message"].get("method") in allowed


def check_emitted(facts: Facts) -> None:
    """Every request has at most one response, every question is asked on one stream, every status told once."""
    responses = [event for event in facts.emitted if "method" not in event["message"]]
    # Only the body of an HTTP error has no id; whatever has one answers a request that was received.
    told = Counter(event["cause"] for event in responses if "id" in event["message"])
    assert None not in told
    assert max(told.values(), default=0) <= 1
    assert all("error" in event["message"] for event in responses if "id" not in event["message"])
    asked = Counter(
        (event["session"], event["message"]["id"])
        for event in facts.emitted
        if {"id", "method"} <= event["message"].keys()
    )
    assert max(asked.values(), default=0) <= 1
    statuses = [event for event in facts.of_kind("task.changed") if event["status"] != "queued"]
    changes = [
        event
        for event in [*facts.emitted, *facts.of_kind("message.dropped")]
        if event["message"].get("method") == "notifications/tasks/status"
    ]
    # The first status of a task is told by its handle, and recorded when the task is made.
    made = len(facts.of_kind("task.changed")) - len(statuses)
    assert len(changes) == len(statuses) - made


def check_clean(probe: Probe) -> None:
    """The sessions have ended: nothing of them is left."""
    engine = probe.engine
    assert engine_tasks() == SERVICES
    assert (engine.sessions._sessions, engine.tasks.everyone()) == ({}, [])
    assert probe.app.mcp._open == 0
