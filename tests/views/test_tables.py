"""The live tables: what a row says after each story, what changed, and that they are bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.log import events
from probe.log.event_log import Entry, EventLog
from probe.views.fold import Views
from probe.views.tables import TABLES, TableName, Tables

from ..judge.logs import Log, judged
from ..support.facts import Placed, at, emitted, received, record_all, settled, started
from ..support.legacy import RpcError
from ..support.probe import EPOCH, Probe, running

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
        self.views = Views("run")
        self.log = EventLog(lambda: (1000.0 + self.log.last, 0.0), max_events=10, max_bytes=10**6)
        self.tables = Tables(self.views, self.log)

    def tell(self, *facts: events.Event | Placed) -> int:
        """Returns the number of the last entry."""
        for entry in record_all(self.log, *facts):
            self.views.take(entry)
        return self.log.last

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
        "label": None,
        "subject": "s1",
        "capabilities": {"roots": {}},
        "opened_at": EPOCH,
        "last_at": EPOCH + 5,
        "closed": None,
        "requests": 4,
        "methods": {"initialize": 1, "notifications/initialized": 1, "tools/call": 2, "ping": 1},
        "tools": {"fail": 2},
        "skills": {},
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


async def test_the_skills_that_a_client_read(probe: Probe) -> None:
    """A supporting file is no skill, and neither is a resource."""
    client, root = probe.modern(), "skill://exercise-client"
    for uri in (f"{root}/SKILL.md", f"{root}/SKILL.md", f"{root}/references/tools.md", "probe://text"):
        await client.call("resources/read", {"uri": uri})
    (row,) = rows(probe, "sessions")
    assert (row["methods"], row["skills"]) == ({"resources/read": 4}, {f"{root}/SKILL.md": 2})


def test_names_without_end_are_counted_as_one() -> None:
    it = Told()
    it.tell(at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session="s1"))
    for number in range(300):
        it.tell(at(received({**PING, "method": f"m{number}"}), exchange=number, session="s1"))
    methods = it.row("sessions")["methods"]
    assert len(methods) == 101
    assert methods["(others)"] == 201
    assert sum(methods.values()) == it.row("sessions")["requests"] == 301


def test_a_session_has_the_label_that_its_client_was_given() -> None:
    it = Told()
    it.tell(at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session="s1", label="lab"))
    it.tell(at(received(PING), exchange=1, session="s1"))
    assert it.row("sessions")["label"] == "lab"


def test_a_row_names_the_subject_that_the_judge_makes_of_it() -> None:
    log = Log()
    log.http("lab").session()
    log.http(None).session()
    log.websocket(None).session()
    log.websocket("wired").session()
    it = Told()
    for item in log.items:
        if isinstance(item, Entry):
            it.views.take(item)
    subjects = [row["subject"] for row in shown(it.tables, "sessions")]
    assert len(subjects) == 4
    assert set(subjects) == set(judged(log))


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
    it.tell(at(events.TaskChanged("tool", "queued", None, 1000), session="s1", task="t1"))
    assert (it.row("tasks")["status"], it.row("tasks")["call"]) == ("queued", None)
    it.tell(at(events.TaskChanged("tool", "working", "said", 1000), session="s1", task="t1"))
    assert (it.row("tasks")["status"], it.row("tasks")["message"]) == ("working", "said")


def test_the_progress_of_a_task_changes_its_row() -> None:
    it = Told()
    it.tell(at(started(1, "tool"), exchange=1, session="s1", call="c1", task="t1"))
    it.tell(at(events.TaskChanged("tool", "working", None, 1000), session="s1", call="c1", task="t1"))
    before = it.log.last
    progressed = it.tell(at(events.CallProgressed(3, 7, None), session="s1", call="c1", task="t1"))
    assert it.tables.changed("tasks", before) == [("t1", progressed)]
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
        before = tables(probe).last
        assert tables(probe).changed("calls", before) == []
        await trio.sleep(1)
        assert tables(probe).changed("calls", before)[-1][0] == "c1", "progress without a token is seen, too"
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
    assert tables(probe).all("calls") == []


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
            "left_at": None,
        }
        answer.hang_up()
        await wait_all_tasks_blocked()
    (row,) = rows(probe, "streams")
    assert (row["connected"], row["closed_by"], row["ended_at"]) == (False, "client", None)
    left_at = row["left_at"]
    assert left_at == EPOCH + 1
    await trio.sleep(2.5)
    (row,) = rows(probe, "streams")
    assert (row["messages"], row["delivered"], row["waiting"], row["reader"]) == (3, 1, 2, None)
    assert row["left_at"] == left_at
    async with client.get(events[0].id) as answer:
        await answer.first(1)
        (row,) = rows(probe, "streams")
        assert (row["connected"], row["closed_by"], row["left_at"], row["resumed"]) == (True, None, None, 1)
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
    it.tell(at(events.StreamOpened("response"), exchange=1, session="m1", stream="r1"))
    it.tell(at(events.HttpResponse(200, "application/json", None), exchange=1, session="m1", stream="r1"))
    it.tell(at(events.HttpClosed("client", 0), exchange=1, session="m1", stream="r1"))
    assert (it.row("streams")["connected"], it.row("streams")["closed_by"]) == (False, "client")


def test_who_was_displaced_goes_without_a_change_also_when_it_goes_last() -> None:
    it = Told()
    it.tell(at(events.StreamOpened("standalone"), session="s1", stream="g"))
    for reader in (1, 2):
        it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=reader, session="s1", stream="g"))
    it.tell(at(events.HttpClosed("client", 0), exchange=2, session="s1", stream="g"))
    it.tell(at(events.HttpClosed("displaced by a newer connection", 0), exchange=1, session="s1", stream="g"))
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
        self.request = self.ask(2)
        opened = events.SessionOpened("id", "2025-11-25", "n", "v", b"{}", "websocket")
        self.tell(at(opened, connection="w1", exchange=2, session="s1"))

    def connect(self, number: int) -> None:
        self.tell(at(events.ConnectionOpened("websocket", "::1:5"), connection=f"w{number}", exchange=number))

    def close(self, number: int, by: str = "client") -> None:
        self.tell(at(events.ConnectionClosed(1000, by, 3), connection=f"w{number}", session="s1"))

    def ask(self, exchange: int, connection: str = "w1") -> int:
        return self.tell(at(received(PING), connection=connection, exchange=exchange, session="s1"))

    def open(self, stream: str, exchange: int | None, purpose: str = "resumable") -> None:
        place = {"connection": "w1", "exchange": exchange, "session": "s1", "stream": stream}
        self.tell(at(events.StreamOpened(purpose), self.request, **place))

    def start(self, call: str, request: int, exchange: int = 2) -> None:
        place = {"connection": "w1", "exchange": exchange, "session": "s1", "call": call}
        self.tell(at(started(7), request, **place))

    def emit(self, stream: str, position: int) -> None:
        self.tell(at(emitted(PING, position), connection="w1", exchange=2, session="s1", stream=stream))

    def deliver(self, first: int, last: int, stream: str = "p1", session: str = "s1", connection: str = "w1") -> None:
        place = {"connection": connection, "exchange": 2, "session": session, "stream": stream}
        self.tell(at(events.MessagesDelivered(first, last), **place))

    def resume(self, exchange: int, connection: str) -> int:
        """Returns the entry of the request."""
        request = self.ask(exchange, connection)
        place = {"connection": connection, "exchange": exchange, "session": "s1", "stream": "p1"}
        self.tell(at(events.StreamResumed(0, 0), request, **place))
        return request

    def settle(self, call: str, *, connection: str = "w1", exchange: int = 2, **fields: Any) -> None:
        place = {"connection": connection, "exchange": exchange, "session": "s1", "call": call}
        self.tell(at(settled(7, **fields), **place))

    def reader(self) -> tuple[Any, ...]:
        row = self.row("streams")
        return row["connected"], row["reader"], row["connection"], row["closed_by"]


def test_what_carries_a_session_and_a_modern_client() -> None:
    it = Piped()
    assert it.row("sessions")["transport"] == "websocket"
    it = Told()
    it.tell(at(events.ClientSeen("stdio", "2026-07-28", "n", "v", b"{}", "stdio"), session="m1"))
    assert it.row("sessions")["transport"] == "stdio"


def test_a_connection_reads_the_stream_that_its_message_opened_until_that_is_over() -> None:
    it = Piped()
    it.open("p1", 2)
    assert it.reader() == (True, 1, "w1", None)
    it.emit("p1", 1)
    it.tell(at(events.StreamEnded(1), session="s1", stream="p1"))
    row = it.row("streams")
    assert (row["status"], row["waiting"], row["ended_at"] is None) == ("completed", 1, False)
    assert it.reader() == (True, 1, "w1", None), "it has not been sent yet"
    it.deliver(1, 1)
    assert it.reader() == (False, None, None, "end of stream")
    it.close(1)
    assert it.reader() == (False, None, None, "end of stream")


def test_the_stream_of_a_session_is_read_by_its_connection_from_the_beginning() -> None:
    it = Piped()
    it.open("g1", None, "standalone")
    assert it.reader() == (True, 1, "w1", None)
    it.emit("g1", 1)
    it.deliver(1, 1, "g1")
    assert it.reader() == (True, 1, "w1", None)
    it.close(1)
    assert it.reader() == (False, None, None, "client")


def test_the_stream_of_a_session_over_http_is_read_by_no_connection() -> None:
    it = Piped()
    it.tell(at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session="s2"))
    it.tell(at(events.StreamOpened("standalone"), session="s2", stream="g1"))
    assert it.reader() == (False, None, None, None)


def test_a_stream_is_read_by_the_connection_that_delivers_it() -> None:
    it = Piped()
    it.tell(at(events.StreamOpened("standalone"), session="s2", stream="g1"))
    assert it.reader() == (False, None, None, None)
    it.deliver(1, 1, "g1", "s2")
    assert it.reader() == (True, 1, "w1", None)


def test_the_stream_of_a_call_that_was_cancelled_without_an_answer_is_read_no_more() -> None:
    it = Piped()
    it.open("p1", 2, "response")
    it.emit("p1", 1)
    it.start("c2", it.request)
    it.settle("c2", outcome="cancelled", answered=False, cancelled_by="notification")
    it.tell(at(events.StreamEnded(1), connection="w1", exchange=2, session="s1", stream="p1"))
    assert it.reader() == (False, None, None, "cancelled by notification")


def test_the_answer_of_a_call_that_was_stopped_is_still_read() -> None:
    it = Piped()
    it.open("p1", 2, "response")
    it.start("c2", it.request)
    it.settle("c2", outcome="timed_out", cancelled_by="deadline")
    assert it.reader() == (True, 1, "w1", None)


def test_a_call_without_an_answer_releases_no_stream_of_another_request() -> None:
    it = Piped()
    it.open("p1", 2, "response")
    it.start("c3", it.ask(3), exchange=3)
    it.settle("c3", exchange=3, outcome="cancelled", answered=False)
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
    it.resume(10, "w9")
    assert it.reader() == (True, 9, "w9", None)
    assert it.row("streams")["resumed"] == 1
    it.deliver(1, 2, connection="w9")
    assert it.row("streams")["waiting"] == 0
    it.connect(11)
    it.resume(12, "w11")
    it.close(9)
    assert (it.reader(), it.row("streams")["resumed"]) == ((True, 11, "w11", None), 2), "it was taken over"


def test_a_resume_that_is_cancelled_releases_the_stream() -> None:
    it = Piped()
    it.open("p1", 2)
    for call, number in (("c2", 1), ("c3", 9)):
        it.connect(number)
        place = {"connection": f"w{number}", "exchange": number + 1, "session": "s1", "call": call}
        request = it.resume(number + 1, f"w{number}")
        it.tell(at(started(7, None, method="stream/resume"), request, **place))
    gone = {"outcome": "cancelled", "answered": False, "cancelled_by": "notification"}
    it.settle("c2", exchange=2, **gone)
    assert it.reader() == (True, 9, "w9", None), "which was taken over before"
    it.settle("c3", connection="w9", exchange=10, **gone)
    assert it.reader() == (False, None, None, "the resume was cancelled")


def test_a_lost_stream_says_why_and_nothing_waits() -> None:
    it = Piped()
    it.open("p1", 2)
    it.emit("p1", 1)
    it.close(1)
    it.tell(
        at(events.StreamLost("abandoned", 1), session="s1", stream="p1"),
        at(events.StreamEnded(1), session="s1", stream="p1"),
    )
    row = it.row("streams")
    assert (row["status"], row["lost"], row["waiting"], row["messages"]) == ("lost", "abandoned", 0, 1)
    assert row["ended_at"] is not None
    assert it.reader() == (False, None, None, "client")


def test_a_stream_that_is_lost_under_its_reader_leaves_it() -> None:
    it = Piped()
    it.open("p1", 2)
    it.tell(at(events.StreamLost("overflow", 1), session="s1", stream="p1"))
    assert it.reader() == (False, None, None, "overflow")


def test_a_resumed_stream_over_http_counts_each_reader_once() -> None:
    """A POST that resumes is told of twice: that it reads, and the head of its response."""
    it = Told()
    it.tell(at(events.StreamOpened("resumable"), exchange=1, session="s1", stream="p1"))
    it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=1, session="s1", stream="p1"))
    assert it.row("streams")["resumed"] == 0
    it.tell(
        at(events.HttpClosed("client", 1), exchange=1, session="s1", stream="p1"),
        at(events.StreamResumed(0, 1), exchange=2, session="s1", stream="p1"),
    )
    it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=2, session="s1", stream="p1"))
    assert (it.row("streams")["resumed"], it.row("streams")["reader"]) == (1, 2)
    it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=3, session="s1", stream="p1"))
    assert it.row("streams")["resumed"] == 2, "a GET with Last-Event-ID"


def test_one_response_may_carry_several_streams() -> None:
    it = Told()
    it.tell(
        at(events.StreamOpened("resumable"), exchange=1, session="s1", stream="p1"),
        at(events.StreamOpened("resumable"), exchange=1, session="s1", stream="p2"),
    )
    it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=1, session="s1", stream="p2"))
    it.tell(
        at(emitted(PING, 1), exchange=1, session="s1", stream="p1"),
        at(events.MessagesDelivered(1, 1), exchange=1, session="s1", stream="p1"),
    )
    assert [row["reader"] for row in shown(it.tables, "streams")] == [1, 1]
    it.tell(at(events.HttpClosed("client", 1), exchange=1, session="s1", stream="p2"))
    assert [row["closed_by"] for row in shown(it.tables, "streams")] == ["client", "client"]


# All of them.


def test_the_oldest_rows_make_room() -> None:
    it = Told()
    for number in range(2100):
        it.tell(at(events.StreamOpened("standalone"), session=f"s{number}", stream="g"))
        it.tell(at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session=f"s{number}"))
        it.tell(at(events.TaskChanged("tool", "working", None, 1), task=f"t{number}"))
        it.tell(
            at(events.HttpResponse(200, "text/event-stream", None), exchange=number, session=f"s{number}", stream="g")
        )
    for table, newest in (("streams", "s2099/g"), ("sessions", "s2099"), ("tasks", "t2099")):
        ids = it.tables.all(table)  # type: ignore[arg-type]
        assert len(ids) == 2000
        assert ids[-1] == newest


def test_a_stream_outlives_its_entries_in_the_log_by_its_row() -> None:
    it = Told()
    it.tell(at(events.StreamOpened("standalone"), session="s1", stream="g1"))
    it.tell(at(events.HttpResponse(200, "text/event-stream", None), exchange=1, session="s1", stream="g1"))
    it.tell(at(events.HttpClosed("client", 0), exchange=1, session="s1", stream="g1"))
    it.tell(at(events.StreamEnded(0), session="s1", stream="g1"))
    row = it.row("streams")
    it.views.forget_before(it.log.last + 1)
    assert ("s1", "g1") not in it.views.streams
    assert it.row("streams") == row
    assert row["closed_by"] == "client"


def test_a_table_names_the_rows_that_changed_after_an_entry() -> None:
    it = Told()
    facts: list[tuple[TableName, str, events.Event | Placed]] = [
        ("sessions", "s1", at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session="s1")),
        ("sessions", "s1", at(received(PING), exchange=1, session="s1")),
        ("sessions", "s1", at(events.ClientMisuse("what", "clause", ""), session="s1")),
        ("streams", "s1/p1", at(events.StreamOpened("response"), exchange=1, session="s1", stream="p1")),
        ("streams", "s1/p1", at(emitted(PING, 1), exchange=1, session="s1", stream="p1")),
        ("streams", "s1/p1", at(events.MessagesDelivered(1, 1), exchange=1, session="s1", stream="p1")),
        ("streams", "s1/p1", at(events.StreamEnded(1), session="s1", stream="p1")),
        ("sessions", "s1", at(events.SessionClosed("idle"), session="s1")),
        ("sessions", "unattributed", at(events.ClientMisuse("what", "clause", ""))),
    ]
    for table, id, fact in facts:
        seq = it.tell(fact)
        changed = {name: it.tables.changed(name, seq - 1) for name in TABLES if name != "counts"}
        assert {name: rows for name, rows in changed.items() if rows} == {table: [(id, seq)]}, fact
    before = it.tell(
        events.ServerState("ready"),
        at(received(PING), exchange=2, session="s9"),
        at(events.StreamEnded(1), session="s9", stream="p1"),
    )
    assert [it.tables.changed(name, before - 3) for name in TABLES if name != "counts"] == [[]] * 6


def test_the_earliest_change_comes_first_and_each_row_once() -> None:
    it = Told()
    for session in ("s1", "s2", "s3", "s1"):
        it.tell(at(events.SessionOpened("id", "2025-11-25", "n", "v", b"{}"), session=session))
    assert it.tables.changed("sessions", 0) == [("s2", 2), ("s3", 3), ("s1", 4)]
    assert it.tables.changed("sessions", 3) == [("s1", 4)]


async def test_all_tables_of_a_server_that_has_done_nothing_are_empty(autojump_clock: MockClock) -> None:
    async with running() as probe:
        assert {table: rows(probe, table) for table in TABLES if table != "counts"} == {
            table: [] for table in ("tasks", "calls", "sessions", "streams", "hosts", "refusals")
        }
