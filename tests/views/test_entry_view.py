"""What the feed and the API say of an entry and of an exchange beside the entry itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.log import events
from probe.log.context import Context
from probe.log.event_log import EventLog
from probe.views.entry_view import EntryView, EntryViews, Touched
from probe.views.fold import Views

from ..support.facts import cancelled, emitted, received, requested, settled, started

POST: dict[str, Any] = {"connection": "tcp1", "exchange": 2, "session": "s1"}


class Log:
    """A log whose entries come 0.5 s apart, and what is shown of it."""

    def __init__(self) -> None:
        self.log = EventLog(lambda: (1e9 + self.log.last / 2, self.log.last / 2), max_events=1000, max_bytes=10**7)
        self._views = Views()
        self.shown = EntryViews(self.log.entry, lambda: self._views)

    def add(self, fact: Any, cause: int | None = None, **context: Any) -> int:
        seq = self.log.append(fact, Context(**context), cause)
        entry = self.log.entry(seq)
        assert entry is not None
        self._views.take(entry)
        return seq

    def view(self, seq: int) -> EntryView:
        entry = self.log.entry(seq)
        assert entry is not None
        return self.shown.of(entry)

    def rows(self, *seqs: int) -> dict[int, Any]:
        """The rows that change with some entries, by their exchanges; with all entries without any."""
        touched: Touched = {}
        for seq in seqs or range(1, self.log.last + 1):
            entry = self.log.entry(seq)
            assert entry is not None
            self.shown.touch(entry, touched)
        return {row["exchange"]: row for row in map(json.loads, self.shown.rows(touched))}

    def ending(self, exchange: int) -> dict[str, Any]:
        """The ending of an exchange, without its text and what is null or 0."""
        return {name: value for name, value in self.rows()[exchange]["ending"].items() if value and name != "text"}

    def post(self, message: Any, exchange: int = 2) -> int:
        place: dict[str, Any] = {**POST, "exchange": exchange}
        return self.add(received(message), self.add(requested(), **place), **place)

    def call(self) -> tuple[int, int]:
        """A request and its call `c1`, which is of three steps."""
        request = self.post({"id": 7, "method": "tools/call"})
        return request, self.add(started(7, steps_total=3), request, call="c1", **POST)


def test_an_answer_without_an_exchange_is_of_the_exchange_of_its_request() -> None:
    it = Log()
    host: dict[str, Any] = {"connection": "h1", "call": "c1"}
    sent = it.add(events.HostMessage("sent", "request", "tool.dispatch", "1", b"{}"), **host)
    waiting = it.ending(-sent)
    answer = it.add(events.HostMessage("received", "response", None, "1", b"{}"), sent, **host)
    assert (it.view(sent).exchange, it.view(answer).exchange) == (-sent, -sent)
    assert (it.view(answer).method, it.view(answer).direction, it.view(sent).direction) == (
        "tool.dispatch",
        "in",
        "out",
    )
    assert (waiting, it.ending(-sent)) == ({"state": "waiting"}, {"state": "answered"})


def test_a_message_says_when_it_was_delivered_and_the_delivery_says_of_which() -> None:
    it = Log()
    request, began = it.call()
    stream = {**POST, "call": "c1", "stream": "r2"}
    it.add(events.StreamOpened("response"), request, **stream)
    note = {"method": "notifications/progress", "params": {"progress": 1}}
    first, second = it.add(emitted(note, 1), began, **stream), it.add(emitted(note, 2), began, **stream)
    assert it.view(first).delivered is None
    taken = it.add(events.MessagesDelivered(1, 2), first, **stream)
    again = it.add(events.MessagesDelivered(2, 2), second, **{**stream, "exchange": 9})
    delivered = it.view(second).delivered
    assert delivered is not None
    assert (delivered.seq, delivered.mono, delivered.at) == (taken, (taken - 1) / 2 + 0.5, 1e9 + (taken - 1) / 2 + 0.5)
    assert (it.view(taken).delivers, it.view(again).delivers) == ([first, second], [])
    assert {it.view(seq).group for seq in (taken, first)} == {"deliveries", "messages"}
    assert 2 in it.rows(taken), "the row of the exchange whose messages these are has changed"


def test_a_call_that_is_cancelled_by_another_request_changes_the_row_of_its_own() -> None:
    it = Log()
    request, _ = it.call()
    assert it.ending(2) == {"state": "running", "steps_total": 3}
    by = it.post({"method": "notifications/cancelled", "params": {"requestId": 7}}, exchange=3)
    asked = it.add(cancelled(7), by, **{**POST, "exchange": 3, "call": "c1"})
    assert set(it.rows(asked)) == {2, 3}
    facts = {"cancelled_by": "notification", "cancel_reason": "enough", "scope_exit_ms": 0.5, "sent_after_cancel": 1}
    stop = settled(7, "cancelled", answered=False, steps_done=1, steps_total=3, **facts)
    end = it.add(stop, asked, call="c1", **POST)
    assert [it.view(seq).cancelled_how for seq in (by, asked, end)] == [None, "by the client", "by the client"]
    row = it.rows()[2]
    assert (row["head"], row["call"], row["tool"], row["ended"]) == (request, "c1", "tool", None)
    assert it.ending(2) == {
        "state": "cancelled",
        "by": "notification",
        "steps": 1,
        "steps_total": 3,
        "stopped_ms": 0.5,
        "sent_after": 1,
        "detail": "enough",
    }
    assert it.ending(3) == {"state": "waiting"}, "its response has no head yet"
    it.add(events.HttpResponse(202, "", None), by - 1, **{**POST, "exchange": 3})
    assert it.ending(3) == {"state": "done"}


@pytest.mark.parametrize(
    ("facts", "ending"),
    [
        ([], {"state": "waiting"}),
        ([emitted({"id": 7, "result": {}})], {"state": "answered"}),
        (
            [emitted({"id": 7, "error": {"code": -32602, "message": "no such tool"}})],
            {"state": "error", "code": -32602, "detail": "no such tool"},
        ),
        ([events.HttpResponse(404, "application/json", "no session")], {"state": "refused", "detail": "no session"}),
        ([events.ClientMisuse("id reuse", "basic", "used twice")], {"state": "misuse", "detail": "used twice"}),
        ([events.HttpResponse(200, "text/event-stream", None)], {"state": "open"}),
        (
            [events.HttpResponse(200, "text/event-stream", None), events.HttpClosed("hang-up", 0)],
            {"state": "ended", "by": "hang-up"},
        ),
        ([events.HttpClosed("client", 0)], {"state": "unanswered", "by": "client"}),
    ],
)
def test_an_ending_says_how_a_request_without_a_call_ended(facts: list[Any], ending: dict[str, Any]) -> None:
    it = Log()
    request = it.post({"id": 7, "method": "tools/list"})
    for fact in facts:
        it.add(fact, request, **POST)
    assert it.ending(2) == ending


def test_a_row_has_its_head_its_status_and_the_time_until_its_end() -> None:
    it = Log()
    request = it.post({"id": 7, "method": "tools/list"})
    answer = it.add(emitted({"id": 7, "result": {}}), request, **POST)
    it.add(events.HttpResponse(200, "application/json", None), request - 1, **POST)
    taken = it.add(events.MessagesDelivered(1, 1), answer, **POST)
    row = it.rows()[2]
    assert (row["id"], row["head"], row["method"], row["status"]) == ("2", request, "tools/list", 200)
    assert (row["answer"], row["delivered"]["seq"], row["ended"]["seq"]) == (answer, taken, taken)
    assert (row["duration_ms"], row["on_wire"], row["session"]) == (2000.0, True, "s1")


def test_what_is_not_on_the_wire_and_has_no_exchange_has_no_row() -> None:
    it = Log()
    state, limit = it.add(events.ServerState("started")), it.add(events.LimitReached("max_sessions", 1))
    assert set(it.rows()) == {-limit}
    assert (it.view(state).on_wire, it.view(limit).problem) == (False, "limit")


def test_http_that_no_message_was_read_of_is_named_as_http() -> None:
    it = Log()
    get = it.add(requested("GET"), **POST)
    error = emitted({"id": None, "error": {"code": -32600, "message": "GET without a session"}})
    it.add(error, get, **POST)
    it.add(events.HttpResponse(405, "application/json", "Method Not Allowed"), get, **POST)
    bad = {**POST, "exchange": 3}
    it.add(events.MessageUnreadable("syntax", "no JSON", "{", 1, None), it.add(requested(), **bad), **bad)
    first, second = it.rows()[2], it.rows()[3]
    assert (first["request"], first["head"], first["method"], first["unreadable"]) == ("GET /mcp", get, None, None)
    assert it.ending(2) == {"state": "refused", "detail": "Method Not Allowed"}
    assert (second["request"], second["unreadable"], second["transport"]) == ("POST /mcp", "syntax", "http")


def test_the_work_of_a_task_goes_on_behind_its_exchange_until_its_scope_has_exited() -> None:
    it = Log()
    request = it.post({"id": 7, "method": "tools/call", "params": {"name": "slow"}})
    work = {**POST, "call": "c1", "task": "t1"}
    began = it.add(started(7), request, **work)
    it.add(emitted({"id": 7, "result": {"task": {}}}), request, **POST)
    it.add(events.HttpResponse(200, "application/json", None), request - 1, **POST)
    assert it.rows()[2]["work"]["ended"] is None
    by = it.post({"id": 8, "method": "tasks/cancel"}, exchange=3)
    asked = it.add(cancelled(7, "tasks_cancel"), by, **{**work, "exchange": 3})
    end = it.add(settled(7, "cancelled"), asked, **{**work, "exchange": None})
    it.add(events.TaskRemoved("expired"), None, session="s1", task="t1")
    row = it.rows(end)[2]
    assert (row["target"], row["work"]["task"]) == ("slow", "t1")
    assert [row["work"][name]["seq"] for name in ("began", "cancelled", "ended")] == [began, asked, end]
