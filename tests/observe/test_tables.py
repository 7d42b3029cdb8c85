"""The live tables: what a row says after each story, what changed, and that they are bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.observe import events
from probe.observe.evidence import Evidence
from probe.observe.log import EventLog
from probe.observe.records import CallRecords
from probe.observe.tables import TABLES, TableName, Tables

from ..support.facts import emitted, received, record
from ..support.legacy import RpcError
from ..support.probe import EPOCH, Probe, running
from ..support.shown import version_of

PROGRESS: dict[str, Any] = {"name": "progress", "arguments": {"steps": 4, "step_ms": 1000}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def tables(probe: Probe) -> Tables:
    probe.engine.observer.catch_up()
    return probe.engine.observer.tables


def shown(it: Tables, table: TableName) -> list[dict[str, Any]]:
    return [json.loads(row) for row in it.rows(table, it.all(table))]


def rows(probe: Probe, table: TableName) -> list[dict[str, Any]]:
    return shown(tables(probe), table)


class Told:
    """Tables that are told of single facts."""

    def __init__(self) -> None:
        self.records = CallRecords(50)
        self.tables = Tables(self.records, Evidence(50), 50)
        self.log = EventLog(lambda: (1000.0 + self.log.last, 0.0), max_events=10, max_bytes=10**6)

    def tell(self, *facts: events.Event) -> None:
        for fact in facts:
            entry = self.log.entry(self.log.append(fact))
            assert entry is not None
            self.tables.take(entry)

    def row(self, table: TableName) -> dict[str, Any]:
        (row,) = shown(self.tables, table)
        return row


# Sessions.


async def test_a_session(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client("2025-06-18", capabilities={"roots": {}})
    await trio.sleep(3)
    await client.tool("fail")
    await client.tool("fail")
    await client.call("ping")
    await trio.sleep(2)
    async with client.post({"jsonrpc": "2.0", "id": 99, "result": {}}) as answer:
        assert answer.status == 202
    (row,) = rows(probe, "sessions")
    assert row == {
        "id": "s1",
        "era": "legacy",
        "transport": "http",
        "revision": "2025-06-18",
        "client_name": "test-client",
        "client_version": "1.2.3",
        "capabilities": {"roots": {}},
        "opened_at": EPOCH,
        "last_at": EPOCH + 5,
        "closed": None,
        "requests": 4,
        "methods": {"initialize": 1, "notifications/initialized": 1, "tools/call": 2, "ping": 1},
        "tools": {"fail": 2},
        "misuse": 1,
        "refused": 0,
    }
    assert await client.delete() == 204
    assert rows(probe, "sessions")[0]["closed"] == "deleted"


async def test_a_modern_client(probe: Probe, autojump_clock: MockClock) -> None:
    """Requests that say the same of their client are one row; it shows the capabilities declared last."""
    one, other = probe.modern(capabilities={"roots": {}}), probe.modern(capabilities={})
    await one.call("tools/list")
    await trio.sleep(4)
    await other.call("tools/call", {"name": "fail", "arguments": {}})
    with pytest.raises(RpcError):
        await other.call("no/such")
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with other.post(note) as answer:
        await answer.body()
    (row, unnamed) = rows(probe, "sessions")
    assert (row["id"], row["era"], row["revision"], row["closed"]) == ("m1", "modern", "2026-07-28", None)
    assert (row["opened_at"], row["last_at"], row["requests"]) == (EPOCH, EPOCH + 4, 3)
    assert row["methods"] == {"tools/list": 1, "tools/call": 1, "no/such": 1}
    assert (row["tools"], row["capabilities"]) == ({"fail": 1}, {})
    assert (unnamed["client_name"], unnamed["misuse"], row["misuse"]) == ("", 1, 0)


def test_names_without_end_are_counted_as_one() -> None:
    it = Told()
    it.tell(events.SessionOpened("s1", "id", "2025-11-25", "n", "v", b"{}"))
    for number in range(300):
        it.tell(received({**PING, "method": f"m{number}"}, number, "s1"))
    methods = it.row("sessions")["methods"]
    assert len(methods) == 101
    assert methods["(others)"] == 201
    assert sum(methods.values()) == it.row("sessions")["requests"] == 301


# Tasks.


async def test_a_task_from_its_creation_to_its_removal(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    arguments = {"itemCount": 4, "delayPerItemMs": 1000}
    handle = await client.tool("task_with_progress", arguments, task={"ttl": 60_000})
    (row,) = rows(probe, "tasks")
    assert (row["id"], row["call"], row["session"]) == (handle["task"]["taskId"], "c1", "s1")
    assert (row["tool"], row["ttl_ms"], row["removed"], row["created_at"]) == (
        "task_with_progress", 60_000, None, EPOCH
    )  # fmt: skip
    await trio.sleep(2.5)
    (row,) = rows(probe, "tasks")
    assert (row["status"], row["progress"], row["total"]) == ("working", 2, 4), "also without a progress token"
    await trio.sleep(10)
    (row,) = rows(probe, "tasks")
    assert (row["status"], row["progress"], row["message"]) == ("completed", 4, "The task is completed.")
    assert row["updated_at"] == pytest.approx(EPOCH + 4, abs=0.1)
    await trio.sleep(60)
    (row,) = rows(probe, "tasks")
    assert (row["status"], row["removed"]) == ("completed", "expired")


def test_a_task_is_queued_before_it_works() -> None:
    it = Told()
    it.tell(events.TaskChanged("t1", "s1", "tool", "queued", None, 1000))
    assert (it.row("tasks")["status"], it.row("tasks")["call"]) == ("queued", None)
    it.tell(events.TaskChanged("t1", "s1", "tool", "working", "said", 1000))
    assert (it.row("tasks")["status"], it.row("tasks")["message"]) == ("working", "said")


def test_the_progress_of_a_task_changes_its_row() -> None:
    it = Told()
    it.records.add(record("c1", task="t1"))
    it.tell(events.CallStarted("c1", 1, "s1", "t1", 1, "tools/call", "tool", None))
    it.tell(events.TaskChanged("t1", "s1", "tool", "working", None, 1000))
    before = it.tables.changes["tasks"].version
    known = it.records.get("c1")
    assert known is not None
    known.steps_done, known.steps_total = 3, 7
    it.tell(events.CallProgressed("c1", "s1", "t1", 3, 7, None))
    assert it.tables.changes["tasks"].since(before) == [("t1", before + 1)]
    assert (it.row("tasks")["progress"], it.row("tasks")["total"]) == (3, 7)


# Calls.


async def test_calls_are_their_records_and_change_with_each_of_their_entries(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    async with client.post(client.request("tools/call", PROGRESS)) as answer:
        await trio.sleep(2.5)
        (row,) = rows(probe, "calls")
        assert (row["call"], row["outcome"], row["steps_done"]) == ("c1", None, 2)
        changes = tables(probe).changes["calls"]
        version = changes.version
        assert changes.since(version) == []
        await trio.sleep(1)
        assert tables(probe).changes["calls"].since(version)[-1][0] == "c1", "progress without a token is seen, too"
        await client.read(answer)
    assert rows(probe, "calls")[0]["outcome"] == "completed"
    assert tables(probe).all("calls") == ["c1"]
    await client.call("ping")
    assert rows(probe, "calls") == [probe.record()]


async def test_only_tool_calls_are_calls(probe: Probe, autojump_clock: MockClock) -> None:
    modern = probe.modern()
    request = modern.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with modern.post(request) as ear:
        await ear.first(1)
        ear.hang_up()
        await wait_all_tasks_blocked()
    assert (tables(probe).all("calls"), tables(probe).changes["calls"].version) == ([], 0)


# Streams.


async def test_a_stream_that_was_left_and_resumed(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    request = client.request("tools/call", {**PROGRESS, "_meta": {"progressToken": 0}})
    async with client.post(request) as answer:
        events = await answer.first(2)
        (row,) = rows(probe, "streams")
        asked = probe.events("message.received")[-1]["exchange"]
        assert row == {
            "id": "s1/p1",
            "session": "s1",
            "stream": "p1",
            "purpose": "response",
            "exchange": asked,
            "opened_at": EPOCH,
            "status": "live",
            "lost": None,
            "messages": 1,
            "delivered": 1,
            "waiting": 0,
            "connected": True,
            "reader": asked,
            "connection": None,
            "resumed": 0,
            "ended_at": None,
            "closed_by": None,
        }
        answer.hang_up()
        await wait_all_tasks_blocked()
    (row,) = rows(probe, "streams")
    assert (row["connected"], row["closed_by"], row["ended_at"]) == (False, "client", None)
    await trio.sleep(2.5)
    (row,) = rows(probe, "streams")
    assert (row["messages"], row["delivered"], row["waiting"], row["reader"]) == (3, 1, 2, None)
    async with client.get(events[0].id) as answer:
        await answer.first(1)
        (row,) = rows(probe, "streams")
        assert (row["connected"], row["closed_by"], row["resumed"]) == (True, None, 1)
        assert row["reader"] == probe.events("http.request")[-1]["exchange"] != asked
        await client.read(answer)
    (row,) = rows(probe, "streams")
    assert (row["messages"], row["delivered"], row["connected"], row["closed_by"]) == (5, 5, False, "end of stream")
    assert (row["status"], row["waiting"], row["reader"]) == ("completed", 0, None)
    assert row["ended_at"] == pytest.approx(EPOCH + 4, abs=0.1)


async def test_a_reader_that_takes_over_is_the_one_that_counts(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    request = client.request("tools/call", {**PROGRESS, "_meta": {"progressToken": 0}})
    async with client.post(request) as old:
        (event,) = await old.first(1)
        async with client.get(event.id) as new:
            await old.body()
            await wait_all_tasks_blocked()
            assert [event["by"] for event in probe.events("http.closed")] == ["displaced by a newer connection"]
            (row,) = rows(probe, "streams")
            assert (row["connected"], row["closed_by"]) == (True, None)
            new.hang_up()
            await wait_all_tasks_blocked()
    (row,) = rows(probe, "streams")
    assert (row["connected"], row["closed_by"]) == (False, "client")


async def test_the_standalone_stream_of_a_session(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.get() as answer:
        await wait_all_tasks_blocked()
        (row,) = rows(probe, "streams")
        assert (row["purpose"], row["exchange"], row["connected"]) == ("standalone", None, True)
        answer.hang_up()
        await wait_all_tasks_blocked()
    (row,) = rows(probe, "streams")
    assert (row["connected"], row["closed_by"], row["ended_at"]) == (False, "client", None)


async def test_a_lone_answer_has_no_reader(probe: Probe, autojump_clock: MockClock) -> None:
    await probe.modern().call("tools/call", {"name": "simple_tool", "arguments": {}})
    (row,) = rows(probe, "streams")
    assert (row["id"], row["messages"], row["delivered"]) == ("m1/r1", 1, 1)
    assert (row["connected"], row["closed_by"]) == (False, None)
    assert row["ended_at"] is not None


def test_a_lone_answer_that_could_not_be_sent_says_who_left() -> None:
    it = Told()
    it.tell(events.StreamOpened(1, "m1", "r1", "response"))
    it.tell(events.HttpResponse(1, 200, "application/json", "m1", "r1", None))
    it.tell(events.HttpClosed(1, "m1", "r1", "client", 0))
    assert (it.row("streams")["connected"], it.row("streams")["closed_by"]) == (False, "client")


def test_who_was_displaced_goes_without_a_change_also_when_it_goes_last() -> None:
    it = Told()
    it.tell(events.StreamOpened(None, "s1", "g", "standalone"))
    for reader in (1, 2):
        it.tell(events.HttpResponse(reader, 200, "text/event-stream", "s1", "g", None))
    it.tell(events.HttpClosed(2, "s1", "g", "client", 0))
    it.tell(events.HttpClosed(1, "s1", "g", "displaced by a newer connection", 0))
    assert (it.row("streams")["connected"], it.row("streams")["closed_by"]) == (False, "client")


async def test_a_subscription(probe: Probe, autojump_clock: MockClock) -> None:
    modern = probe.modern()
    request = modern.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with modern.post(request) as ear:
        await ear.first(1)
        (row,) = rows(probe, "streams")
        assert (row["purpose"], row["connected"], row["messages"]) == ("subscription", True, 1)
        ear.hang_up()
        await wait_all_tasks_blocked()
    (row,) = rows(probe, "streams")
    assert (row["connected"], row["closed_by"]) == (False, "client")


# Connections that carry everything.


class Piped(Told):
    """Tables that are told of a WebSocket `w1`, whose number is 1, with a session `s1`."""

    def __init__(self) -> None:
        super().__init__()
        self.connect(1)
        self.ask(2)
        self.tell(events.SessionOpened("s1", "id", "2025-11-25", "n", "v", b"{}", "websocket"))

    def connect(self, number: int) -> None:
        self.tell(events.ConnectionOpened(f"w{number}", "websocket", number, "::1:5"))

    def close(self, number: int, by: str = "client") -> None:
        self.tell(events.ConnectionClosed(f"w{number}", "s1", 1000, by, 3))

    def ask(self, exchange: int, connection: str = "w1") -> None:
        self.tell(received(PING, exchange, "s1", connection=connection))

    def open(self, stream: str, exchange: int | None, purpose: str = "resumable") -> None:
        self.tell(events.StreamOpened(exchange, "s1", stream, purpose))

    def emit(self, stream: str, position: int) -> None:
        self.tell(emitted(PING, 2, "s1", stream=stream, position=position))

    def reader(self) -> tuple[Any, ...]:
        row = self.row("streams")
        return row["connected"], row["reader"], row["connection"], row["closed_by"]


def test_what_carries_a_session_and_a_modern_client() -> None:
    it = Piped()
    assert it.row("sessions")["transport"] == "websocket"
    it = Told()
    it.tell(events.ClientSeen("m1", "stdio", "2026-07-28", "n", "v", b"{}", "stdio"))
    assert it.row("sessions")["transport"] == "stdio"


def test_a_connection_reads_the_stream_that_its_message_opened_until_that_is_over() -> None:
    it = Piped()
    it.open("p1", 2)
    assert it.reader() == (True, 1, "w1", None)
    it.emit("p1", 1)
    it.tell(events.StreamEnded("s1", "p1", 1))
    row = it.row("streams")
    assert (row["status"], row["waiting"], row["ended_at"] is None) == ("completed", 1, False)
    assert it.reader() == (True, 1, "w1", None), "it has not been sent yet"
    it.tell(events.MessagesDelivered(1, "s1", "p1", 1, 1))
    assert it.reader() == (False, None, None, "end of stream")
    it.close(1)
    assert it.reader() == (False, None, None, "end of stream")


def test_the_stream_of_a_session_is_read_by_its_connection_from_the_beginning() -> None:
    it = Piped()
    it.open("g1", None, "standalone")
    assert it.reader() == (True, 1, "w1", None)
    it.emit("g1", 1)
    it.tell(events.MessagesDelivered(1, "s1", "g1", 1, 1))
    assert it.reader() == (True, 1, "w1", None)
    it.close(1)
    assert it.reader() == (False, None, None, "client")


def test_the_stream_of_a_session_over_http_is_read_by_no_connection() -> None:
    it = Piped()
    it.tell(events.SessionOpened("s2", "id", "2025-11-25", "n", "v", b"{}"))
    it.tell(events.StreamOpened(None, "s2", "g1", "standalone"))
    assert it.reader() == (False, None, None, None)


def test_a_stream_without_a_request_is_read_by_the_connection_that_delivers_it() -> None:
    it = Piped()
    it.tell(events.StreamOpened(None, "s2", "g1", "standalone"))
    assert it.reader() == (False, None, None, None)
    it.tell(events.MessagesDelivered(1, "s2", "g1", 1, 1))
    assert it.reader() == (True, 1, "w1", None)


def test_what_waits_for_a_call_that_was_cancelled_is_read_no_more() -> None:
    it = Piped()
    it.tell(events.CallStarted("c2", 2, "s1", None, 7, "tools/call", "tool", None))
    it.open("p1", 2, "response")
    it.emit("p1", 1)
    gone = "cancelled", False, 1.0, "notification", 0.0, None, None, 0
    it.tell(events.CallSettled("c2", "s1", None, 7, *gone), events.StreamEnded("s1", "p1", 1))
    assert it.reader() == (False, None, None, "cancelled by notification")
    assert it.tables._streams._running == {}


def test_what_answers_a_call_that_was_stopped_is_still_read() -> None:
    it = Piped()
    it.tell(events.CallStarted("c2", 2, "s1", None, 7, "tools/call", "tool", None))
    it.open("p1", 2, "response")
    late = "timed_out", True, 1.0, "deadline", 0.0, None, None, 0
    it.tell(events.CallSettled("c2", "s1", None, 7, *late))
    assert it.reader() == (True, 1, "w1", None)


def test_a_stream_that_is_resumed_on_another_connection() -> None:
    it = Piped()
    it.open("p1", 2)
    it.emit("p1", 1)
    it.close(1)
    assert it.reader() == (False, None, None, "client")
    it.emit("p1", 2)
    assert it.row("streams")["waiting"] == 2
    it.connect(9)
    it.ask(10, "w9")
    it.tell(events.StreamResumed("s1", "p1", 9, 0, 2))
    assert it.reader() == (True, 9, "w9", None)
    assert it.row("streams")["resumed"] == 1
    it.tell(events.MessagesDelivered(9, "s1", "p1", 1, 2))
    assert it.row("streams")["waiting"] == 0
    it.connect(11)
    it.tell(events.StreamResumed("s1", "p1", 11, 2, 0))
    it.close(9)
    assert (it.reader(), it.row("streams")["resumed"]) == ((True, 11, "w11", None), 2), "it was taken over"


def test_a_resume_that_is_cancelled_lets_go_of_the_stream() -> None:
    it = Piped()
    it.open("p1", 2)
    for call, reader in (("c2", 1), ("c3", 9)):
        it.connect(reader)
        it.ask(reader + 1, f"w{reader}")
        it.tell(events.StreamResumed("s1", "p1", reader, 0, 0))
        it.tell(events.CallStarted(call, reader + 1, "s1", None, 7, "stream/resume", None, None))
    gone = "cancelled", False, 1.0, "notification", 0.0, None, None, 0
    it.tell(events.CallSettled("c2", "s1", None, 7, *gone))
    assert it.reader() == (True, 9, "w9", None), "which was taken over before"
    it.tell(events.CallSettled("c3", "s1", None, 7, *gone))
    assert it.reader() == (False, None, None, "the resume was cancelled")
    assert it.tables._streams._resumes == {}


def test_a_lost_stream_says_why_and_nothing_waits() -> None:
    it = Piped()
    it.open("p1", 2)
    it.emit("p1", 1)
    it.close(1)
    it.tell(events.StreamLost("s1", "p1", "abandoned", 1), events.StreamEnded("s1", "p1", 1))
    row = it.row("streams")
    assert (row["status"], row["lost"], row["waiting"], row["messages"]) == ("lost", "abandoned", 0, 1)
    assert row["ended_at"] is not None
    assert it.reader() == (False, None, None, "client")


def test_a_stream_that_is_lost_under_its_reader_leaves_it() -> None:
    it = Piped()
    it.open("p1", 2)
    it.tell(events.StreamLost("s1", "p1", "overflow", 1))
    assert it.reader() == (False, None, None, "overflow")


def test_a_resumed_stream_over_http_counts_each_reader_once() -> None:
    """A POST that resumes is told of twice: that it reads, and the head of its response."""
    it = Told()
    it.tell(events.StreamOpened(1, "s1", "p1", "resumable"))
    it.tell(events.HttpResponse(1, 200, "text/event-stream", "s1", "p1", None))
    assert it.row("streams")["resumed"] == 0
    it.tell(events.HttpClosed(1, "s1", "p1", "client", 1), events.StreamResumed("s1", "p1", 2, 0, 1))
    it.tell(events.HttpResponse(2, 200, "text/event-stream", "s1", "p1", None))
    assert (it.row("streams")["resumed"], it.row("streams")["reader"]) == (1, 2)
    it.tell(events.HttpResponse(3, 200, "text/event-stream", "s1", "p1", None))
    assert it.row("streams")["resumed"] == 2, "a GET with Last-Event-ID"


def test_one_response_may_carry_several_streams() -> None:
    it = Told()
    it.tell(events.StreamOpened(1, "s1", "p1", "resumable"), events.StreamOpened(1, "s1", "p2", "resumable"))
    it.tell(events.HttpResponse(1, 200, "text/event-stream", "s1", "p2", None))
    it.tell(emitted(PING, 1, "s1", stream="p1", position=1), events.MessagesDelivered(1, "s1", "p1", 1, 1))
    assert [row["reader"] for row in shown(it.tables, "streams")] == [1, 1]
    it.tell(events.HttpClosed(1, "s1", "p2", "client", 1))
    assert [row["closed_by"] for row in shown(it.tables, "streams")] == ["client", "client"]


def test_what_is_known_of_connections_is_bounded() -> None:
    it = Told()
    for number in range(5000):
        it.tell(events.ConnectionOpened(f"w{number}", "websocket", number, "::1:5"))
        it.tell(received(PING, 10_000 + number, "s1", connection=f"w{number}"))
        it.tell(events.StreamOpened(10_000 + number, "s1", f"p{number}", "resumable"))
        if number % 2:
            it.tell(events.ConnectionClosed(f"w{number}", "s1", None, "client", 0))
    streams = it.tables._streams
    assert len(streams._carried) == 2000
    assert len(streams._reads) <= 1000, "only what rows are there for"
    for number in range(0, 5000, 2):
        it.tell(events.ConnectionClosed(f"w{number}", "s1", None, "client", 0))
    assert (streams._reads, streams._labels, streams._numbers) == ({}, {}, {})


# All of them.


def test_the_oldest_rows_make_room() -> None:
    it = Told()
    for number in range(2100):
        it.tell(events.StreamOpened(None, f"s{number}", "g", "standalone"))
        it.tell(events.SessionOpened(f"s{number}", "id", "2025-11-25", "n", "v", b"{}"))
        it.tell(events.TaskChanged(f"t{number}", None, "tool", "working", None, 1))
        it.tell(events.HttpResponse(number, 200, "text/event-stream", f"s{number}", "g", None))
    for table, newest in (("streams", "s2099/g"), ("sessions", "s2099"), ("tasks", "t2099")):
        ids = it.tables.all(table)  # type: ignore[arg-type]
        assert len(ids) == 2000
        assert ids[-1] == newest
        assert len(it.tables.changes[table].since(0)) <= 2000  # type: ignore[index]
    for number in range(2100):
        it.tell(events.HttpClosed(number, f"s{number}", "g", "client", 0))
    assert it.tables._streams._reads == {}, "also of those whose rows are gone"
    assert list(it.tables.rows("streams", ["s0/g", "s2099/g"])) == [*it.tables.rows("streams", ["s2099/g"])]


def test_every_change_is_a_new_version() -> None:
    it = Told()
    seen = {version_of(it.tables)}
    facts: list[events.Event] = [
        events.SessionOpened("s1", "id", "2025-11-25", "n", "v", b"{}"),
        received(PING, 1, "s1"),
        events.ClientMisuse("s1", "what", "clause", ""),
        events.StreamOpened(1, "s1", "p1", "response"),
        emitted(PING, 1, "s1", stream="p1", position=1),
        events.StreamEnded("s1", "p1", 1),
        events.SessionClosed("s1", "idle"),
    ]
    for fact in facts:
        it.tell(fact)
        assert version_of(it.tables) not in seen, fact.kind
        seen.add(version_of(it.tables))
    before = version_of(it.tables)
    it.tell(events.ServerState("ready"), received(PING, 2, "s9"), events.StreamEnded("s9", "p1", 1))
    assert version_of(it.tables) == before


async def test_all_tables_of_a_server_that_has_done_nothing_are_empty(autojump_clock: MockClock) -> None:
    async with running() as probe:
        assert {table: rows(probe, table) for table in TABLES if table != "counts"} == {
            table: [] for table in ("tasks", "calls", "sessions", "streams", "hosts", "refusals")
        }
