"""The words for the end of an exchange, which pages and terminal share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.log import events
from probe.log.context import Context
from probe.log.event_log import EventLog
from probe.views.ending import Ending, duration, sentence
from probe.views.entry_view import EntryViews, Touched
from probe.views.fold import Views

from ..support.facts import emitted, received, requested, settled, started

PLACE: dict[str, Any] = {"connection": "tcp1", "exchange": 2, "session": "s1"}
CALL: dict[str, Any] = {**PLACE, "call": "c1"}


def said(*facts: Any, task: str | None = None, token: Any = "t", cause: int = 2) -> str:
    """The sentence about a call of a tool, of which these facts are told."""
    log, views = EventLog(lambda: (1e9, 1.0), max_events=1000, max_bytes=10**7), Views()
    place = CALL if task is None else {**CALL, "task": task}

    def add(fact: Any, cause: int | None, context: dict[str, Any]) -> None:
        entry = log.entry(log.append(fact, Context(**context), cause))
        assert entry is not None
        views.take(entry)

    add(requested(), None, PLACE)
    add(received({"id": 7, "method": "tools/call"}), 1, PLACE)
    add(started(7, progress_token=token), 2, place)
    place = {**place, "stream": "r1"}
    add(events.StreamOpened("response"), 2, place)
    for fact in facts:
        add(fact, cause if isinstance(fact, events.MessageEmitted) and fact.rpc != "request" else 3, place)
    shown, touched = EntryViews(log.entry, lambda: views), Touched({2: 1})
    (row,) = map(json.loads, shown.rows(touched))
    return sentence(Ending(**row["ending"]))


def ended(outcome: str = "completed", result: Any = None, **fields: Any) -> events.CallSettled:
    return settled(7, outcome, result=json.dumps(result).encode(), **fields)


def cancelled(by: str | None, **fields: Any) -> events.CallSettled:
    known = {"answered": False, "steps_done": 4, "steps_total": 20, "scope_exit_ms": 2.4}
    return ended("cancelled", cancelled_by=by, **{**known, **fields})


def progress(step: int, position: int) -> events.MessageEmitted:
    return emitted({"method": "notifications/progress", "params": {"progress": step}}, position)


ERROR = {"content": [{"type": "text", "text": "Invalid arguments:\n steps"}], "isError": True}
ASKS = {"inputRequests": {"form": {"method": "elicitation/create"}, "more": {"method": "elicitation/create"}}}
OK = emitted({"id": 7, "result": {}})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([OK, ended()], "completed"),
        (
            [progress(1, 1), progress(2, 2), events.MessagesDelivered(1, 1), OK, ended()],
            "completed: 1 of 2 progress notifications received",
        ),
        (
            [progress(1, 1), emitted({"method": "notifications/message"}, 2), OK, ended(coalesced=4)],
            "completed: 0 of 2 messages received, 4 merged into later ones",
        ),
        ([ended(answered=False)], "completed: no answer was sent"),
        ([OK, ended(), events.HttpClosed("client", 0)], "completed: the answer was not received"),
        ([ended("tool_error", ERROR)], "tool error: Invalid arguments: steps"),
        (
            [ended("protocol_error", {"error": {"code": -32602, "message": "Unknown tool: x"}})],
            "protocol error -32602: Unknown tool: x",
        ),
        (
            [cancelled("notification")],
            "cancelled by the client after 4 of 20 steps, stopped in 2.4 ms, nothing sent afterwards",
        ),
        (
            [cancelled("notification", cancel_reason="Stop", sent_after_cancel=2)],
            "cancelled by the client (Stop) after 4 of 20 steps, stopped in 2.4 ms, 2 messages sent afterwards",
        ),
        (
            [cancelled("session_end", cancel_reason="deleted", steps_total=None, steps_done=1)],
            "cancelled because its session ended after 1 step, stopped in 2.4 ms, nothing sent afterwards",
        ),
        (
            [cancelled("shutdown", answered=True)],
            "cancelled by the shutdown of the server after 4 of 20 steps, stopped in 2.4 ms, answered with an error",
        ),
        ([cancelled(None, result=ERROR, answered=True)], "cancelled by the tool itself: Invalid arguments: steps"),
        (
            [events.DispatchExpired("idle", 30_002, 30_000, 300_000, 3), ended("timed_out", steps_done=3)],
            "timed out: no progress for 30 s after 3 steps, answered with an error",
        ),
        (
            [events.DispatchExpired("ceiling", 1, 30_000, 300_000, 3), ended("timed_out", duration_ms=5000)],
            "timed out: the ceiling of 5 min 00 s passed after 5.00 s, answered with an error",
        ),
        (
            [ended("timed_out", duration_ms=5000, answered=False, cancelled_by="deadline")],
            "timed out: a deadline passed after 5.00 s, nothing sent afterwards",
        ),
        (
            [ended("disconnected", answered=False, cancelled_by="disconnect", cancel_reason="the client left")],
            "disconnected: the client left after 1 ms, nothing sent afterwards",
        ),
        (
            [ended("input_required", ASKS)],
            "input required: asked the client for elicitation/create; the answer comes with its next request",
        ),
        ([], "running"),
        ([progress(3, 1)], "running: 3 steps so far"),
        (
            [emitted({"id": 1, "method": "elicitation/create"})],
            "running: waits for the client's answer to elicitation/create",
        ),
        (
            [events.CallCancelled(7, "notification", None, effect=True)],
            "running: asked to stop by the client; the work has not stopped yet",
        ),
        (
            [events.CallCancelled(7, "notification", None, effect=False)],
            "running",
        ),
    ],
)
def test_the_end_of_a_call_is_one_sentence(facts: list[Any], words: str) -> None:
    assert said(*facts) == words


def test_of_a_task_the_handle_was_the_answer() -> None:
    assert said(OK, ended(), events.HttpClosed("client", 0), task="t1") == "completed: as a task"
    stopped = cancelled("tasks_cancel", answered=True, steps_done=None, duration_ms=902)
    assert said(stopped, task="t1") == (
        "cancelled by the client with tasks/cancel after 902 ms, stopped in 2.4 ms, nothing sent afterwards"
    )


def test_progress_that_nobody_could_be_sent_is_said() -> None:
    facts = events.CallProgressed(1, 5, None), OK, ended(steps_done=1)
    assert said(*facts, token=None) == "completed: its progress was not sent, as the client gave no token"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0.04, "0 ms"),
        (9.96, "10 ms"),
        (99.6, "100 ms"),
        (1530, "1.53 s"),
        (59_996, "1 min 00 s"),
        (7_500_000, "2 h 05 min"),
    ],
)
def test_times_are_written_as_people_read_them(ms: float, words: str) -> None:
    assert duration(ms) == words
