"""Call records, folded from entries: what each kind of entry does to the record of its call, and which are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.log import redaction
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import (
    CallCancelled,
    CallProgressed,
    Event,
    MessageDropped,
    MessageEmitted,
    MessagesDelivered,
    StreamLost,
    StreamOpened,
)
from probe.log.redaction import bounded
from probe.views.records import CallRecord
from probe.wire.jsonrpc import encode

from ..support.facts import received, record, settled, started
from ..support.shown import as_value, newest
from ..support.views import Rows

WHOLE: dict[str, Any] = {"stream": None}


class Told:
    """A log, and the records that are told each of its entries."""

    def __init__(self, most: int = 50) -> None:
        self.log = EventLog(lambda: (1000.0, 0.0), max_events=10**6, max_bytes=10**9)
        self.records = Rows("run", most)
        for session, stream in (("s1", "r1"), ("s1", "r2"), ("s2", "r1")):
            self.append(Recorder(self.log).bind(session=session, stream=stream), StreamOpened("standalone"))

    def append(self, recorder: Recorder, fact: Event, cause: int | None = None) -> int:
        seq = recorder.append(fact, cause)
        entry = self.log.entry(seq)
        assert entry is not None
        self.records.take(entry)
        return seq


class Call:
    """A call on the stream `r1`, and the facts of it."""

    def __init__(self, told: Told, name: str = "c1", **fields: Any) -> None:
        self.told = told
        self.name = name
        recorder = Recorder(told.log).bind(exchange=1, session="s1", label="ann")
        self.request = told.append(recorder, received({"id": 5, "method": "tools/call"}))
        self.recorder = recorder.bind(call=name, stream="r1")
        self.began = told.append(self.recorder.bind(stream=None), started(5, "simple_tool", **fields), self.request)

    @property
    def record(self) -> CallRecord:
        found = self.told.records.get(self.name)
        assert found is not None
        return found

    def tell(self, fact: Event, cause: int | None = None, **context: Any) -> int:
        return self.told.append(self.recorder.bind(**context), fact, self.began if cause is None else cause)

    def emit(self, position: int | None, method: str = "notifications/message", **context: Any) -> int:
        return self.tell(MessageEmitted(position, "notification", method, None, b"{}"), **context)

    def answer(self, position: int | None, cause: int | None = None, **context: Any) -> int:
        cause = self.request if cause is None else cause
        return self.tell(MessageEmitted(position, "response", None, 5, b"{}"), cause, **context)

    def deliver(self, first: int, last: int, **context: Any) -> int:
        return self.tell(MessagesDelivered(first, last), **context)

    def report(self, progress: Any, total: Any = None, position: int = 1) -> None:
        params = {"progressToken": 1, "progress": progress, "total": total}
        self.tell(MessageEmitted(position, "notification", "notifications/progress", None, encode({"params": params})))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def call(told: Told) -> Call:
    return Call(told)


def test_a_call_that_starts_has_a_record(told: Told) -> None:
    call = Call(told, progress_token=0, steps_total=7.0, arguments=b'{"delayMs":5}')
    assert as_value(call.record) == {
        "id": "run.c1",
        "run": "run",
        "call": "c1",
        "exchange": 1,
        "tool": "simple_tool",
        "toolset": "probe",
        "era": "legacy",
        "revision": "2025-11-25",
        "transport": "http",
        "session": "s1",
        "client_name": "n",
        "client_version": "v",
        "label": "ann",
        "request_id": 5,
        "progress_token": 0,
        "task": None,
        "started_at": 1000.0,
        "seq": 5,
        "outcome": None,
        "done": False,
        "steps_done": 0,
        "steps_total": 7.0,
        "emitted": 0,
        "delivered": 0,
        "coalesced": 0,
        "duration_ms": None,
        "cancelled_by": None,
        "cancel_reason": None,
        "cancel_latency_ms": None,
        "answered": False,
        "answer_delivered": False,
        "cancelled_how": None,
        "progress_token_type": "integer",
        "arguments": {"delayMs": 5},
        "result": None,
    }


def test_a_request_that_is_no_tool_call_has_none(told: Told) -> None:
    recorder = Recorder(told.log).bind(exchange=1, call="c1")
    told.append(recorder, started(5, None, "tasks/result"))
    told.append(recorder, settled(5))
    assert (told.records.get("c1"), len(told.records)) == (None, 0)


def test_what_is_about_another_call_or_about_none_changes_nothing(call: Call) -> None:
    before = as_value(call.record)
    call.emit(1, call="c2")
    call.emit(2, call=None)
    call.tell(settled(5), call="c2")
    assert as_value(call.record) == before


def test_the_end_of_a_call(call: Call) -> None:
    call.tell(settled(5, steps_done=3, steps_total=3.0, coalesced=2, result=b'{"a":1}'))
    shown = as_value(call.record)
    assert (shown["outcome"], shown["done"], shown["answered"], shown["duration_ms"]) == ("completed", True, True, 1.0)
    assert (shown["steps_done"], shown["steps_total"], shown["coalesced"], shown["result"]) == (3, 3.0, 2, {"a": 1})


@pytest.mark.parametrize("outcome", ["tool_error", "cancelled", "input_required"])
def test_only_work_that_came_to_its_end_is_done(outcome: str, call: Call) -> None:
    call.tell(settled(5, outcome, result=b"null"))
    assert (call.record.outcome, call.record.done, call.record.result) == (outcome, False, None)


def test_who_stops_a_call_is_known_before_it_has_stopped(call: Call) -> None:
    call.tell(CallCancelled(5, "notification", "enough", effect=True))
    record = call.record
    assert (record.outcome, record.cancelled_by, record.cancel_reason) == (None, "notification", "enough")
    call.tell(settled(5, "cancelled", cancelled_by="notification", cancel_reason="enough", scope_exit_ms=1.5))
    assert (record.cancelled_by, record.cancel_latency_ms) == ("notification", 1.5)
    assert as_value(record)["cancelled_how"] == "by the client"


def test_a_cancellation_without_effect_stops_nothing(call: Call) -> None:
    call.tell(settled(5))
    call.tell(CallCancelled(5, "notification", "late", effect=False))
    assert (call.record.outcome, call.record.cancelled_by, call.record.cancel_reason) == ("completed", None, None)


def test_steps_are_those_of_the_last_report_whether_a_notification_carries_it_or_not(call: Call) -> None:
    call.tell(CallProgressed(1, 5, None))
    assert (call.record.steps_done, call.record.steps_total) == (1, 5)
    call.report(2, 5.5)
    assert (call.record.steps_done, call.record.steps_total) == (2, 5.5)
    dropped = encode({"params": {"progress": 3}})
    call.tell(MessageDropped("no stream", "notification", "notifications/progress", None, dropped))
    assert (call.record.steps_done, call.record.steps_total) == (3, None)


def test_what_is_reported_after_the_cancellation_or_the_end_is_no_step(call: Call) -> None:
    call.report(1, 5)
    call.tell(CallCancelled(5, "notification", None, effect=True))
    dropped = encode({"params": {"progress": 2}})
    call.tell(MessageDropped("cancelled", "notification", "notifications/progress", None, dropped))
    assert call.record.steps_done == 1
    call.tell(settled(5, "cancelled", steps_done=1, steps_total=5))
    call.report(3, 5, 2)
    assert call.record.steps_done == 1


@pytest.mark.parametrize("message", ["null", "[]", "{}", '{"params":5}', '{"params":{"progress":"1"}}'])
def test_a_report_that_says_nothing_is_none(message: str, call: Call) -> None:
    call.tell(MessageEmitted(1, "notification", "notifications/progress", None, message.encode()))
    assert (call.record.steps_done, call.record.emitted) == (None, 1)


def test_each_message_is_delivered_once_however_often_it_is_sent(call: Call) -> None:
    for position in (1, 2, 3, 5):
        call.emit(position)
    call.deliver(2, 2)
    assert (call.record.emitted, call.record.delivered) == (4, 1)
    call.deliver(1, 3)
    assert call.record.delivered == 3
    call.deliver(1, 5)
    call.deliver(5, 5)
    assert call.record.delivered == 4


def test_positions_of_another_stream_are_other_messages(call: Call) -> None:
    call.emit(1)
    call.deliver(1, 1, stream="r2")
    call.deliver(1, 1, session="s2")
    assert call.record.delivered == 0
    call.deliver(1, 1)
    assert call.record.delivered == 1


@pytest.mark.parametrize("method", ["notifications/tasks/status", "notifications/stream/create"])
def test_what_the_server_tells_of_a_task_or_a_stream_is_not_the_works(method: str, call: Call) -> None:
    call.emit(1, method)
    call.deliver(1, 1)
    assert (call.record.emitted, call.record.delivered) == (0, 0)


def test_the_answer_is_the_response_to_the_request_that_began_the_call(call: Call) -> None:
    call.emit(1)
    call.answer(2)
    call.deliver(1, 1)
    assert (call.record.emitted, call.record.delivered, call.record.answer_delivered) == (1, 1, False)
    call.deliver(2, 2)
    assert (call.record.emitted, call.record.delivered, call.record.answer_delivered) == (1, 1, True)


def test_the_answer_to_a_visit_is_not_the_answer(call: Call) -> None:
    call.answer(1, call.began)
    call.deliver(1, 1)
    call.tell(MessagesDelivered(1, 1), call.answer(None, call.began, **WHOLE), **WHOLE)
    assert (call.record.emitted, call.record.delivered, call.record.answer_delivered) == (0, 0, False)


def test_an_answer_in_one_piece_is_delivered_in_its_exchange(call: Call) -> None:
    answer = call.answer(None, **WHOLE)
    call.deliver(1, 1)
    call.deliver(1, 1, **WHOLE)
    assert not call.record.answer_delivered
    call.tell(MessagesDelivered(1, 1), answer, **WHOLE)
    assert call.record.answer_delivered


def drop_answer(call: Call) -> None:
    call.tell(MessageDropped("the stream is lost", "response", None, 5, b"{}"), call.request)


def lose_and_answer(call: Call) -> None:
    call.tell(StreamLost("server_full", 3))
    call.answer(4)


@pytest.mark.parametrize("lose", [drop_answer, lose_and_answer])
@pytest.mark.parametrize("first", [True, False], ids=["before the end", "after the end"])
def test_an_answer_that_nobody_can_have_is_none(lose: Any, first: bool, call: Call) -> None:
    steps = [lambda: lose(call), lambda: call.tell(settled(5))]
    for step in steps if first else reversed(steps):
        step()
    assert (call.record.outcome, call.record.answered) == ("completed", False)


def test_a_stream_that_is_lost_with_an_answer_on_it_has_been_answered(call: Call) -> None:
    call.tell(settled(5))
    call.answer(1)
    call.tell(StreamLost("abandoned", 1))
    assert call.record.answered


def test_the_newest_records_are_kept_and_come_first() -> None:
    told = Told(3)
    for number in range(5):
        Call(told, f"c{number}")
    assert [item.call for item in newest(told.records, 10)] == ["c4", "c3", "c2"]
    assert [item.call for item in newest(told.records, 2)] == ["c4", "c3"]
    assert (newest(told.records, 0), len(told.records)) == ([], 3)
    assert told.records.get("c1") is None


def test_a_call_that_made_room_while_it_ran_is_followed_to_its_end() -> None:
    told = Told(50)
    long = Call(told, "long")
    record = long.record
    for number in range(60):
        Call(told, f"c{number}").tell(settled(5))
    assert told.records.get("long") is None
    long.emit(1)
    long.tell(settled(5, "tool_error"))
    long.answer(2)
    for number in range(60, 120):
        Call(told, f"c{number}").tell(settled(5))
    long.deliver(1, 2)
    assert (record.outcome, record.emitted, record.delivered, record.answer_delivered) == ("tool_error", 1, 1, True)


def test_calls_whose_end_was_missed_are_not_kept_for_ever() -> None:
    told = Told(50)
    for number in range(500):
        Call(told, f"c{number}")
    assert len(told.records.views.calls.named) == 100
    for number in range(400, 450):
        told.append(Recorder(told.log).bind(exchange=1, call=f"c{number}"), settled(5))
    for number in range(500, 1000):
        Call(told, f"c{number}").tell(settled(5))
    assert len(told.records.views.calls.named) <= 150


def test_messages_that_were_taken_late_count_although_a_stream_remembers_only_its_newest(call: Call) -> None:
    for position in range(1, 2001):
        call.emit(position)
    call.deliver(1, 100)
    call.deliver(50, 2000)
    assert (call.record.emitted, call.record.delivered) == (2000, 2000)
    call.deliver(1, 10**9)
    assert call.record.delivered == 2000, "no more than there were"


@pytest.mark.parametrize(
    ("token", "kind"), [(None, None), (0, "integer"), (2**70, "integer"), ("", "string"), ("0", "string")]
)
def test_the_token_is_shown_with_its_json_type(token: Any, kind: str | None) -> None:
    shown = json.loads(encode(as_value(record("c1", progress_token=token))))
    assert (shown["progress_token"], shown["progress_token_type"]) == (token, kind)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())), st.integers(1, 200))
def test_arguments_are_kept_whole_or_cut(arguments: dict[str, Any], most: int) -> None:
    kept = json.loads(bounded(arguments, most))
    shown = redaction.message(arguments)
    whole = encode(shown)
    if len(whole) <= most:
        assert kept == shown
    else:
        assert set(kept) == {"cut", "bytes"}
        assert kept["bytes"] == len(whole)
        assert len(kept["cut"].encode()) > most - 4, "at most a part of one character is left out"
        assert whole.startswith(kept["cut"].encode())
