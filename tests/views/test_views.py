"""The views of small stories, of saved logs, and of long ones."""

from __future__ import annotations

import io
from itertools import pairwise
from time import process_time
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from probe.log import events, ndjson
from probe.log.bounded import SWEPT
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.ndjson import End, Header
from probe.views.fold import Views
from probe.views.meaning import exchange_key
from probe.views.retention import ForgottenError, Retention
from probe.views.values import Message

from ..support.facts import cancelled, emitted, received, requested, settled, started
from ..support.logs import load


class Log:
    """Entries of a log a second apart, which one `Views` has taken."""

    def __init__(self, *, audited: bool = True, **retention: int) -> None:
        self.views = Views("run", Retention(**retention), audited=audited)
        self.entries: list[Entry] = []

    def add(self, fact: Any, cause: int | None = None, **context: Any) -> int:
        seq = len(self.entries) + 1
        self.entries.append(Entry(seq, 1e9 + seq, float(seq), Context(**context), fact, cause))
        self.views.take(self.entries[-1])
        return seq

    def message(self, seq: int) -> Message:
        return self.views.messages[seq]

    def initialize(self, label: str | None = None) -> int:
        """A session `s1` by exchange 1; returns the entry of its request."""
        place: dict[str, Any] = {"connection": "tcp1", "exchange": 1, "label": label}
        head = self.add(requested(), **place)
        asked = self.add(received({"id": 0, "method": "initialize"}), head, **place)
        opened = events.SessionOpened("abc", "2025-11-25", "acme", "1", b"{}")
        self.add(opened, asked, **{**place, "session": "s1"})
        return asked

    def request(self, number: int, id: Any, method: str = "tools/call", **context: Any) -> int:
        """A POST with one request; returns the entry of the message."""
        place = {"connection": "tcp1", "exchange": number, "session": "s1", **context}
        head = self.add(requested(), **place)
        return self.add(received({"id": id, "method": method}), head, **place)


def story(log: Log) -> dict[str, int]:
    """One call with a report and a cancellation: the example of docs/internals/views.md."""
    log.initialize()
    place: dict[str, Any] = {"connection": "tcp1", "exchange": 2, "session": "s1"}
    request = log.request(2, 7)
    call = {**place, "call": "c1"}
    began = log.add(started(7, progress_token=1), request, **call)
    stream = {**call, "stream": "r2"}
    log.add(events.StreamOpened("response"), request, **stream)
    note = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    report = log.add(emitted(note, 1), began, **stream)
    response = log.add(events.HttpResponse(200, "text/event-stream", None), request - 1, **stream)
    taken = log.add(events.MessagesDelivered(1, 1), report, **stream)
    other = {"connection": "tcp2", "exchange": 3, "session": "s1"}
    head = log.add(requested(), **other)
    stop = log.add(received({"method": "notifications/cancelled", "params": {"requestId": 7}}), head, **other)
    stopped = log.add(cancelled(7), stop, **call)
    ended = log.add(settled(7, "cancelled", answered=False), stopped, **call)
    left = log.add(events.HttpClosed("end of stream", 1), request - 1, **place)
    found = {"request": request, "began": began, "report": report, "response": response, "taken": taken}
    return {**found, "head": head, "stop": stop, "stopped": stopped, "ended": ended, "left": left}


def test_a_call_that_is_cancelled_knows_all_that_it_was() -> None:
    log = Log()
    at = story(log)
    request, call, stream = log.message(at["request"]), log.views.call("c1"), log.views.streams["s1", "r2"]
    assert call is not None
    assert request.call is call
    assert call.request is request
    assert request.exchange is log.views.exchanges[2] is call.exchange is stream.exchange
    assert [message.seq for message in call.progress] == [at["report"]]
    assert call.progress[0].request is request
    assert call.progress[0].delivered is log.entries[at["taken"] - 1]
    assert request.asked_to_cancel is log.message(at["stop"])
    assert (call.cancelled, call.ended) == (log.entries[at["stopped"] - 1], log.entries[at["ended"] - 1])
    assert log.views.exchanges[2].status == 200
    assert log.views.exchanges[2].ended_by == "end of stream"
    assert [reading.exchange for reading in stream.readings] == [request.exchange]
    assert call.in_order() == [*range(at["request"] - 1, at["left"] + 1)], "and of the cancellation its exchange, too"
    assert request.scope is log.views.sessions["s1"].scope
    assert request.seq in log.views.sessions["s1"].scope.running


def test_what_came_later_is_asked_as_of_a_moment() -> None:
    log = Log()
    at = story(log)
    request = log.message(at["request"])
    assert not request.cancelled_by(float(at["stop"])), "a window is half-open"
    assert request.cancelled_by(at["stop"] + 0.5)
    assert not request.answered_by(1e9)
    assert not request.dropped_by(1e9), "the server ended the stream"


def test_an_answer_counts_from_its_delivery_on() -> None:
    log = Log()
    log.initialize()
    request = log.request(2, "a", "ping")
    place = {"connection": "tcp1", "exchange": 2, "session": "s1"}
    answer = log.add(emitted({"id": "a", "result": {}}), request, **place)
    scope = log.views.sessions["s1"].scope
    assert request in scope.running
    taken = log.add(events.MessagesDelivered(1, 1), answer, **place)
    asked = log.message(request)
    assert asked.answer is log.message(answer)
    assert (asked.answered_by(float(taken)), asked.answered_by(taken + 0.1)) == (False, True)
    assert request not in scope.running
    assert [*scope.answered] == [request]


def test_the_messages_of_a_delivery_are_those_that_no_reader_had_before() -> None:
    log = Log()
    log.initialize()
    place: dict[str, Any] = {"connection": "tcp1", "exchange": 2, "session": "s1", "stream": "r1"}
    log.add(events.StreamOpened("response"), **place)
    notes = [log.add(emitted({"method": "notifications/message"}, position), **place) for position in (1, 2, 3)]
    for first, last, new in ((1, 1, notes[:1]), (1, 3, notes[1:]), (2, 2, [])):
        log.add(events.MessagesDelivered(first, last), **place)
        assert [each.seq for each in log.views.delivered_by(log.entries[-1])] == new
    answer = log.add(emitted({"id": 1, "result": {}}), connection="tcp1", exchange=3)
    log.add(events.MessagesDelivered(1, 1), answer, connection="tcp1", exchange=3)
    assert log.views.delivered_by(log.entries[-1]) == [log.message(answer)]
    assert log.views.delivered_by(log.entries[-2]) == ()


def test_a_client_that_leaves_before_its_answer_has_dropped_its_request() -> None:
    log = Log()
    log.initialize()
    request = log.request(2, 1)
    gone = log.add(events.HttpClosed("client", 0), request - 1, connection="tcp1", exchange=2)
    asked = log.message(request)
    assert (asked.dropped_by(float(gone)), asked.dropped_by(gone + 1.0)) == (False, True)


def test_initialize_counts_in_the_session_that_it_opens() -> None:
    log = Log()
    asked = log.initialize("ann")
    session, message = log.views.sessions["s1"], log.message(asked)
    assert session.initialize is message
    assert message.scope is session.scope
    assert session.scope.ids == {0: message}
    ann = log.views.clients["label", "ann"]
    assert not ann.scope.requests
    assert ann.sessions["s1"] is session
    assert log.views.exchanges[1].client is ann


def test_an_exchange_that_nobody_claims_is_of_nobody() -> None:
    log = Log()
    head = log.add(requested("GET"), connection="tcp1", exchange=1)
    assert log.views.exchanges[1].client is None
    log.add(events.HttpResponse(404, "", "no such path"), head, connection="tcp1", exchange=1)
    nobody = log.views.clients["nothing", ""]
    assert log.views.exchanges[1].client is nobody
    answer = log.add(emitted({"id": 1, "result": {}}), connection="tcp1", exchange=2)
    assert log.views.exchanges[2].client is None
    log.add(events.MessagesDelivered(1, 1), answer, connection="tcp1", exchange=2)
    assert log.views.exchanges[2].client is nobody


def test_ids_keep_their_types_and_their_scopes() -> None:
    log = Log()
    log.initialize()
    one, text = log.request(2, 1), log.request(3, "1")
    log.add(events.ConnectionOpened("stdio", "stdio"), connection="i1", exchange=4)
    piped = log.add(received({"id": 1, "method": "ping"}), connection="i1", exchange=5)
    ids = log.views.sessions["s1"].scope.ids
    assert (ids[1].seq, ids["1"].seq) == (one, text)
    scope = log.views.connections["i1"].scope
    assert scope is not None
    assert scope.ids[1].seq == piped


def test_the_end_of_a_pipe_and_its_first_message() -> None:
    log = Log()
    opened = log.add(events.ConnectionOpened("websocket", "::1:5"), connection="w1", exchange=1, label="ann")
    first = log.add(received({"id": 1, "method": "ping"}), opened, connection="w1", exchange=2, label="ann")
    log.add(events.ConnectionClosed(1006, "client", 0), opened, connection="w1", exchange=1, label="ann")
    pipe = log.views.connections["w1"]
    assert pipe.first is log.message(first)
    assert pipe.ended_by == "client"
    assert pipe.client is log.views.clients["label", "ann"]
    assert log.message(first).dropped_by(10.0)


def test_a_question_has_its_replies() -> None:
    log = Log()
    log.initialize()
    question = log.add(emitted({"id": "q1", "method": "elicitation/create"}, 1), session="s1", stream="g1")
    log.add(events.MessagesDelivered(1, 1), question, session="s1", stream="g1")
    reply = log.add(received({"id": "q1", "result": {}}), question, session="s1", connection="tcp1", exchange=2)
    asked = log.message(question)
    assert asked.replies == [log.message(reply)]
    assert log.message(reply).question is asked


def test_the_exchange_of_an_entry_has_a_key_for_people() -> None:
    log = Log()
    log.initialize()
    question = log.add(emitted({"id": "q1", "method": "ping"}), session="s1")
    log.add(received({"id": "q1", "result": {}}), question, session="s1")
    log.add(events.ServerState("ready"))
    entry_of = {entry.seq: entry for entry in log.entries}.get
    assert [exchange_key(entry, entry_of) for entry in log.entries] == [1, 1, 1, -question, -question, -6]


class Unknown(Struct, frozen=True):
    """A kind of a later program."""

    kind: ClassVar[str] = "later.kind"


def test_an_entry_of_an_unknown_kind_belongs_where_its_context_says() -> None:
    log = Log()
    log.initialize()
    request = log.request(2, 1)
    place = {"exchange": 2, "session": "s1", "call": "c1"}
    began = log.add(started(), request, **place)
    seq = log.add(Unknown(), began, **place)
    call = log.views.call("c1")
    assert call is not None
    assert call.in_order() == [request - 1, request, began, seq]
    assert log.views.exchanges[2].entries == [request - 1, request, began, seq]


def test_a_gap_breaks_nothing_and_cuts_what_ran() -> None:
    whole = Log()
    story(whole)
    for missing in range(1, len(whole.entries) + 1):
        views = Views("run")
        for entry in whole.entries:
            views.missed() if entry.seq == missing else views.take(entry)
        call = views.call("c1")
        assert views.gaps == 1
        assert call is None or missing not in call.entries or call.cut or missing <= call.began.seq


def test_content_goes_before_facts_and_facts_before_nothing() -> None:
    log = Log(messages=3, content_bytes=120)
    log.initialize()
    seqs = [log.request(number, number, "ping") for number in range(2, 6)]
    old, newest = log.message(seqs[-2]), log.message(seqs[-1])
    assert newest.value == {"id": 5, "method": "ping"}
    assert [message.seq for message in log.views.messages.values()] == seqs[1:]
    scope = log.views.sessions["s1"].scope
    assert [*scope.requests] == seqs[1:]
    assert scope.forgot == 2
    log.add(received({"id": 9, "method": "x" * 110}), session="s1", exchange=9)
    assert (old.id, old.method) == (4, "ping")
    with pytest.raises(ForgottenError):
        old.value  # noqa: B018


def shown(views: Views) -> list[Any]:
    """All that views say, as plain values."""
    exchanges = [
        (number, each.status, each.ended_by, each.entries, each.shared, [m.seq for m in each.messages], [*each.calls])
        for number, each in views.exchanges.items()
    ]
    messages = [
        (seq, m.rpc, m.id, m.answer and m.answer.seq, m.delivered and m.delivered.seq, m.call and m.call.name)
        for seq, m in views.messages.items()
    ]
    calls = [
        (name, call.record and call.record.encoded(), call.found(0), call.cut)
        for name, call in views.calls.named.items()
    ]
    scopes = [
        (label, [*s.scope.requests], [*s.scope.running], [*s.scope.answered]) for label, s in views.sessions.items()
    ]
    clients = [(key, [*client.sessions], [*client.connections]) for key, client in views.clients.items()]
    return [exchanges, messages, calls, scopes, clients]


def random_log(data: st.DataObject) -> Log:
    log = Log()
    log.initialize()
    for number in range(2, data.draw(st.integers(3, 8))):
        request = log.request(number, data.draw(st.sampled_from([1, "1", 2])))
        place = {"connection": "tcp1", "exchange": number, "session": "s1", "call": f"c{number}"}
        began = log.add(started(1), request, **place)
        for position in range(1, data.draw(st.integers(1, 4))):
            made = log.add(emitted({"method": "notifications/message"}, position), began, **place, stream=f"r{number}")
            log.add(events.MessagesDelivered(position, position), made, **place, stream=f"r{number}")
        if data.draw(st.booleans()):
            log.add(settled(1), began, **place)
            log.add(emitted({"id": 1, "result": {}}), request, **place)
    return log


@given(st.data())
def test_a_saved_log_gives_the_views_of_the_live_one(data: st.DataObject) -> None:
    log = random_log(data)
    text = b"".join(ndjson.dump(Header("run", "1", 1.0), log.entries, End(len(log.entries))))
    again = Views("run")
    for entry in load(io.BytesIO(text)).entries:
        again.take(entry)
    assert shown(again) == shown(log.views)


@given(st.data())
def test_the_moment_in_which_a_reader_looks_changes_nothing(data: st.DataObject) -> None:
    log = random_log(data)
    cuts = sorted({0, len(log.entries), *data.draw(st.lists(st.integers(0, len(log.entries)), max_size=5))})
    pieces = Views("run")
    for since, until in pairwise(cuts):
        for entry in log.entries[since:until]:
            pieces.take(entry)
        shown(pieces)
    assert shown(pieces) == shown(log.views)


def test_the_work_for_an_entry_does_not_grow_with_the_log() -> None:
    """One session, 100,000 entries; messages and exchanges make room from the second piece on."""
    log, times = Log(messages=8_000, exchanges=8_000, calls=50), []
    log.initialize()
    log.add(events.StreamOpened("standalone"), session="s1", stream="g1")
    place = {"connection": "tcp1", "session": "s1"}
    for piece in range(5):
        begun = process_time()
        for number in range(4_000 * piece + 2, 4_000 * (piece + 1) + 2):
            request = log.request(number, number, "ping")
            log.add(emitted({"id": number, "result": {}}), request, exchange=number, **place)
            note = log.add(emitted({"method": "notifications/message"}, number), session="s1", stream="g1")
            log.add(events.MessagesDelivered(number, number), note, session="s1", stream="g1")
        times.append(process_time() - begun)
    assert len(log.entries) > 100_000
    assert min(times[3:]) < 10 * min(times[:2])


def test_what_is_over_goes_with_the_entries_of_the_log_and_what_lasts_stays() -> None:
    log = Log()
    log.initialize()
    waits = log.request(2, 1)
    log.add(started(1), waits, connection="tcp1", exchange=2, session="s1", call="c1")
    for number in range(3, 103):
        place: dict[str, Any] = {"connection": "tcp1", "exchange": number, "session": "s1"}
        asked = log.request(number, number, "ping")
        answer = log.add(emitted({"id": number, "result": {}}), asked, **place)
        log.add(events.HttpResponse(200, "application/json", None), asked - 1, **place)
        log.add(events.MessagesDelivered(1, 1), answer, **place)
        log.views.forget_before(len(log.entries) - 20)
    views = log.views
    assert waits in views.messages
    assert {2, 102} <= set(views.exchanges)
    assert max(len(views.messages), len(views.exchanges)) < 70, "of 201 messages and 102 exchanges"
    session = views.sessions["s1"]
    assert len(session.scope.requests) + session.scope.forgot == 102
    log.add(settled(1), waits + 1, connection="tcp1", exchange=2, session="s1", call="c1")
    call = views.calls.named["c1"]
    assert call.in_order() == [waits - 1, waits, waits + 1, len(log.entries)]
    assert call.exchange is views.exchanges[2]


def test_a_connection_without_its_opening_goes_with_its_entries_and_holds_up_no_other() -> None:
    log = Log()
    log.add(events.SocketClosed("client", 1), connection="tcp1")
    for number in range(2, 102):
        log.add(events.SocketOpened("127.0.0.1:9"), connection=f"tcp{number}")
        log.add(events.SocketClosed("client", 0), connection=f"tcp{number}")
        log.views.forget_before(len(log.entries) - 20)
    assert "tcp1" not in log.views.connections
    assert len(log.views.connections) < 30, "of 101"


@pytest.mark.parametrize("audited", [True, False])
def test_a_call_that_runs_does_not_hold_up_the_ended_ones_behind_it(audited: bool) -> None:
    """Also in the judge, whose calls have no rows."""
    log = Log(audited=audited)
    log.initialize()
    waits = log.request(2, 1)
    log.add(started(1), waits, connection="tcp1", exchange=2, session="s1", call="c1")
    for number in range(3, 203):
        place: dict[str, Any] = {"connection": "tcp1", "exchange": number, "session": "s1"}
        call = {**place, "call": f"c{number}"}
        asked = log.request(number, number)
        began = log.add(started(number), asked, **call)
        answer = log.add(emitted({"id": number, "result": {}}), asked, **call)
        log.add(settled(number), began, **call)
        log.add(events.HttpResponse(200, "application/json", None), asked - 1, **place)
        log.add(events.MessagesDelivered(1, 1), answer, **place)
        log.views.forget_before(len(log.entries) - 20, all_over=True)
    assert "c1" in log.views.calls.named
    assert "c202" in log.views.calls.named
    assert max(len(log.views.calls.named), len(log.views.calls)) < 50, "of 201"


@pytest.mark.parametrize("all_over", [True, False])
def test_streams_refusals_tasks_and_hosts_go_with_the_entries_of_a_room_and_stay_in_the_tables_of_a_server(
    all_over: bool,
) -> None:
    log = Log()
    log.initialize()
    log.add(events.TaskChanged("tool", "working", None, 1), session="s1", task="stays")
    log.add(events.HostConnected("::1:5"), connection="stays")
    for number in range(2, 102):
        place: dict[str, Any] = {"connection": "tcp1", "exchange": number, "session": "s1"}
        asked = log.request(number, number, "nothing/known")
        log.add(events.StreamOpened("response"), asked, **place, stream=f"p{number}")
        refusal = {"id": number, "error": {"code": -32601, "message": "no such method"}}
        answer = log.add(emitted(refusal), asked, **place, stream=f"p{number}")
        log.add(events.HttpResponse(404, "application/json", None), asked - 1, **place)
        log.add(events.MessagesDelivered(1, 1), answer, **place, stream=f"p{number}")
        log.add(events.StreamEnded(1), session="s1", stream=f"p{number}")
        log.add(events.TaskChanged("tool", "completed", None, 1), session="s1", task=f"t{number}")
        log.add(events.TaskRemoved("expired"), session="s1", task=f"t{number}")
        log.add(events.HostConnected("::1:5"), connection=f"h{number}")
        log.add(events.HostRegistered("same", None, None, (), None), connection=f"h{number}")
        log.add(events.HostClosed("same", None, "host", 0, 0), connection=f"h{number}")
        log.views.forget_before(len(log.entries) - 50, all_over=all_over)
    views = log.views
    assert "stays" in views.tasks
    assert "stays" in views.hosts
    kept = [len(views.streams) + len(views.past_streams), *map(len, (views.refusals.rows, views.tasks, views.hosts))]
    assert all(number < 10 for number in kept) if all_over else min(kept) >= 100, kept


def test_a_room_keeps_a_bounded_number_of_views_whose_end_was_missed() -> None:
    log = Log(audited=False, unfinished=50)
    log.initialize()
    for number in range(2, 502):
        asked = log.request(number, number)
        place: dict[str, Any] = {"connection": "tcp1", "exchange": number, "session": "s1", "call": f"c{number}"}
        log.add(started(number), asked, **place)
        log.add(events.StreamOpened("response"), asked, **place, stream=f"p{number}")
        log.views.missed()
        log.views.forget_before(len(log.entries) - 20, all_over=True)
    views = log.views
    kept = list(map(len, (views.messages, views.exchanges, views.streams, views.calls.named)))
    assert min(kept) >= 50
    assert max(kept) <= 50 + 20 + SWEPT


def sessions_come_and_go(log: Log, *, all_over: bool) -> None:
    """Session `s1` stays open, and 300 others end; each is a client of its own, every second one on a pipe."""
    log.initialize()
    for number in range(2, 302):
        is_pipe = number % 2 == 1
        place: dict[str, Any] = {"connection": f"w{number}" if is_pipe else f"tcp{number}", "exchange": number}
        opening = events.ConnectionOpened("websocket", "::1:5") if is_pipe else events.SocketOpened("127.0.0.1:9")
        log.add(opening, **place)
        head = log.add(requested(), **place)
        asked = log.add(received({"id": 0, "method": "initialize"}), head, **place)
        inside = {**place, "session": f"s{number}"}
        log.add(events.SessionOpened("abc", "2025-11-25", "acme", "1", b"{}"), asked, **inside)
        log.add(events.HttpResponse(200, "application/json", None), head, **place)
        log.add(events.SessionClosed("deleted"), **inside)
        log.add(events.ConnectionClosed(1000, "client", 1) if is_pipe else events.SocketClosed("client", 0), **place)
        log.views.forget_before(len(log.entries) - 20, all_over=all_over)


def test_an_open_session_outlives_all_that_end_and_they_go_with_their_clients_and_pipes() -> None:
    log = Log(ended_sessions=10)
    sessions_come_and_go(log, all_over=True)
    views = log.views
    assert {"s1", "s301"} <= set(views.sessions)
    assert ("session", "s1") in views.clients
    assert views.sessions["s1"].client is views.clients["session", "s1"]
    assert max(map(len, (views.sessions, views.clients, views.connections))) < 30, "of 301"
    log.request(400, 1, "ping")
    assert views.exchanges[400].session is views.sessions["s1"]


def test_of_modern_clients_the_one_that_was_silent_for_longest_goes() -> None:
    log = Log(modern_clients=10)
    for number in range(1, 101):
        place: dict[str, Any] = {"connection": "tcp1", "exchange": number, "session": f"m{number}"}
        log.add(requested(), connection="tcp1", exchange=number)
        log.add(events.ClientSeen("::1", "2026-07-28", "acme", "1", b"{}"), **place)
        log.add(received({"id": 1, "method": "ping"}), **place)
        log.add(received({"id": number, "method": "ping"}), connection="tcp1", exchange=200, session="m1")
        log.views.forget_before(len(log.entries) - 20, all_over=True)
    log.views.forget_before(len(log.entries) + 1, all_over=True)
    assert [*log.views.sessions] == ["m1", *(f"m{number}" for number in range(92, 101))]


def test_a_session_that_closes_twice_goes_by_its_second_end() -> None:
    log = Log(ended_sessions=1)
    opened = events.SessionOpened("abc", "2025-11-25", "acme", "1", b"{}")
    for label in ("s1", "s2"):
        log.add(opened, session=label)
        log.add(events.SessionClosed("silent"), session=label)
    log.views.forget_before(log.add(events.SessionClosed("shutdown"), session="s1"), all_over=True)
    assert [*log.views.sessions] == ["s1"]


def test_tables_of_a_server_list_its_ended_sessions_however_short_its_log() -> None:
    log = Log(ended_sessions=10)
    sessions_come_and_go(log, all_over=False)
    assert len(log.views.sessions) == 301


def test_a_session_that_opens_again_is_not_over() -> None:
    log = Log(ended_sessions=0)
    opened = events.SessionOpened("abc", "2025-11-25", "acme", "1", b"{}")
    for fact in (opened, events.SessionClosed("silent"), opened):
        log.add(fact, session="s1")
    log.views.forget_before(len(log.entries) + 1, all_over=True)
    assert "s1" in log.views.sessions
    log.add(events.SessionClosed("silent"), session="s1")
    log.views.forget_before(len(log.entries) + 1, all_over=True)
    assert "s1" not in log.views.sessions
