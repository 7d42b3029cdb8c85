"""The evidence of tool calls in real runs: exactly the entries that belong to each, in order, to its very end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.log.events import (
    CallProgressed,
    ConnectionClosed,
    ConnectionOpened,
    DispatchCancelled,
    DispatchExpired,
    DispatchExtended,
    DispatchLate,
    DispatchSent,
    DispatchSettled,
    DispatchStopped,
    Event,
    HostClosed,
    HostMessage,
    HttpClosed,
    MessagesDelivered,
    StreamLost,
    StreamOpened,
    StreamResumed,
    TaskChanged,
)
from probe.views.fold import Views
from probe.views.retention import Retention

from ..support.facts import Told, cancelled, emitted, received, requested, settled, started
from ..support.probe import Probe, running
from ..support.shown import as_value, newest
from ..support.views import Evidence

ASKED = ["http.request", "received tools/call", "call.started"]
STREAMED = [*ASKED, "stream.opened", "dispatch.sent"]
TOLD = "emitted notifications/progress"
MOVED = "dispatch.extended"
ANSWERED = ["dispatch.settled", "call.settled", "emitted response", "stream.ended"]
GIVEN = ["http.response", "message.delivered"]
# A socket takes one message or several at a time, and priming events and comments between them.
MARKS = ("message.delivered", "stream.control")
PROGRESS: dict[str, Any] = {"name": "progress", "arguments": {"steps": 2, "step_ms": 1000}}
CAPABLE: dict[str, Any] = {"elicitation": {"form": {}}}


def said(event: dict[str, Any]) -> str:
    """An entry in a few words."""
    kind = event["kind"]
    if kind in ("message.received", "message.emitted", "message.dropped"):
        return f"{kind.removeprefix('message.')} {event['method'] or event['rpc']}"
    if kind == "task.changed":
        return f"task {event['status']}"
    if kind == "call.cancelled":
        return f"cancelled by {event['by']}"
    return str(kind)


def entries(probe: Probe, call: str) -> list[dict[str, Any]]:
    """The evidence of a call, which is in order and each entry once."""
    probe.engine.observer.catch_up()
    seqs = Evidence(probe.engine.observer.views).of(call)
    assert list(seqs) == sorted(set(seqs))
    assert Evidence(probe.engine.observer.views).complete(call)
    return [as_value(probe.engine.log.entry(seq)) for seq in seqs]


def story(probe: Probe, call: str) -> list[str]:
    return [said(event) for event in entries(probe, call)]


def check(probe: Probe, call: str, begins: list[str], middle: list[str], ends: str) -> None:
    """What happens at one moment comes in any order, and a socket takes one message or several at a time."""
    told, delivered, emitted = entries(probe, call), set[Any](), set[Any]()
    for event in told:
        if event["kind"] == "message.delivered":
            delivered |= {(event["stream"], place) for place in range(event["first"], event["last"] + 1)}
        elif event["kind"] == "message.emitted":
            emitted.add((event["stream"], event["position"] or 1))
    assert emitted == delivered
    words = [said(event) for event in told]
    assert words[: len(begins)] == begins
    assert words[-1] == ends
    rest = Counter(word for word in words[len(begins) : -1] if word not in MARKS)
    assert rest == Counter(middle)


def since(probe: Probe, request_id: Any) -> list[str]:
    """The story of the one call with this request id."""
    (record,) = [record for record in newest(probe.engine.records, 50) if record.request_id == request_id]
    return story(probe, record.call)


# One call.


async def test_a_call_at_once(probe: Probe) -> None:
    client, modern = await probe.client(), probe.modern()
    await client.tool("fail")
    await modern.call("tools/call", {"name": "fail", "arguments": {}})
    for call in ("c1", "c2"):
        assert story(probe, call) == [*ASKED, "call.settled", "emitted response", *GIVEN]


async def test_a_streamed_call(probe: Probe, autojump_clock: MockClock) -> None:
    client, modern = await probe.client(), probe.modern()
    await client.call("tools/call", {**PROGRESS, "_meta": {"progressToken": 0}})
    await modern.call("tools/call", PROGRESS, meta={"progressToken": 0})
    for call in ("c1", "c2"):
        check(probe, call, STREAMED, ["http.response", MOVED, TOLD, MOVED, TOLD, *ANSWERED], "http.closed")


async def test_a_lone_answer(probe: Probe, autojump_clock: MockClock) -> None:
    await probe.modern().call("tools/call", {"name": "simple_tool", "arguments": {}})
    assert story(probe, "c1") == [*STREAMED, *ANSWERED, *GIVEN]


async def test_progress_that_nobody_asked_for(probe: Probe, autojump_clock: MockClock) -> None:
    await probe.modern().call("tools/call", PROGRESS)
    told = [MOVED, "call.progressed"] * 2
    assert story(probe, "c1") == [*STREAMED, *told, *ANSWERED, *GIVEN]


async def test_a_cancellation_comes_with_its_request(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(client.request("tools/call", PROGRESS, id="it")) as answer:
        await trio.sleep(1.5)
        await client.cancel("it")
        await client.read(answer)
    cancelled = ["http.request", "received notifications/cancelled", "cancelled by notification", "http.response"]
    over = ["dispatch.settled", "call.settled", "stream.ended"]
    middle = ["http.response", MOVED, "call.progressed", *cancelled, *over]
    check(probe, "c1", STREAMED, middle, "http.closed")


async def test_an_id_that_is_used_again_stands_for_the_newest_call(probe: Probe) -> None:
    """Also where the cancellation comes too late."""
    client = await probe.client()
    for _ in range(2):
        await client.call("tools/call", {"name": "fail", "arguments": {}}, id="it")
    await client.cancel("it")
    await client.cancel("other")
    at_once = [*ASKED, "call.settled", "emitted response", *GIVEN]
    again = [*at_once[:2], "client.misuse", *at_once[2:]]
    late = ["http.request", "received notifications/cancelled", "client.misuse", "http.response"]
    assert (story(probe, "c1"), story(probe, "c2")) == (at_once, [*again, *late])


async def test_a_disconnect(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    async with client.post(client.request("tools/call", PROGRESS, meta={"progressToken": "t"})) as answer:
        await trio.sleep(0.5)
        answer.hang_up()
        await wait_all_tasks_blocked()
    told = story(probe, "c1")
    ended = ["cancelled by disconnect", "http.closed", "dispatch.settled", "call.settled", "stream.ended"]
    assert told[:-5] == [*STREAMED, MOVED, TOLD, *GIVEN]
    assert Counter(told[-5:]) == Counter(ended)


async def test_a_deadline(autojump_clock: MockClock) -> None:
    async with running(idle_deadline_s=2) as probe:
        client, modern = await probe.client(), probe.modern()
        await client.tool("simple_tool", {"delayMs": 5000})
        await modern.call("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 5000}})
        ended = ["dispatch.expired", "cancelled by deadline", *ANSWERED]
        check(probe, "c1", STREAMED, ["http.response", *ended], "http.closed")
        assert story(probe, "c2") == [*STREAMED, *ended, *GIVEN]


async def test_a_resumed_stream_is_delivered_twice(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    request = client.request("tools/call", {**PROGRESS, "_meta": {"progressToken": 0}})
    async with client.post(request) as answer:
        events = await answer.first(2)
        answer.hang_up()
        await wait_all_tasks_blocked()
    await trio.sleep(5)
    async with client.get(events[0].id) as answer:
        await client.read(answer)
    again = ["http.request", "http.response"]
    middle = ["http.response", MOVED, TOLD, "http.closed", MOVED, TOLD, *ANSWERED, *again]
    check(probe, "c1", STREAMED, middle, "http.closed")


async def test_a_question_comes_with_its_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(capabilities=CAPABLE)
    async with client.post(client.request("tools/call", {"name": "elicit_simple_form", "arguments": {}})) as answer:
        await client.read(answer, lambda _: {"action": "decline"})
        await client.call("ping")
    answered = ["http.request", "received response", "http.response"]
    middle = ["http.response", "emitted elicitation/create", *answered, *ANSWERED]
    check(probe, "c1", STREAMED, middle, "http.closed")


# Tasks.


async def test_a_legacy_task_with_everything_that_asked_for_it(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    arguments = {"itemCount": 1, "delayPerItemMs": 1000}
    await client.tool("pure_task", {"durationMs": 1000}, task={})  # another one, which nobody asks for
    handle = await client.tool("task_with_progress", arguments, task={}, _meta={"progressToken": 0})
    task = {"taskId": handle["task"]["taskId"]}
    await client.call("tasks/get", task)
    await client.call("ping")
    await client.call("tasks/result", task)
    await client.call("tasks/list")
    told = story(probe, "c2")
    assert told[:6] == [*ASKED, "task queued", "task working", "emitted response"]
    assert told[-1] == "http.closed", "of tasks/result"
    words = Counter(word for word in told[6:] if word not in MARKS)
    status, notified = words.pop("task working"), words.pop("emitted notifications/tasks/status")
    assert status + 1 == notified + words.pop("dropped notifications/tasks/status", 0)
    assert words == Counter(
        [
            *("http.response", TOLD, "task completed", "call.settled"),
            *("http.request", "received tasks/get", "emitted response", "http.response"),
            *("http.request", "received tasks/result", "call.started", "stream.opened", "http.response"),
            *("call.settled", "emitted response", "stream.ended", "http.closed"),
        ]
    )
    assert not {"received tasks/get", "received tasks/result"} & {*story(probe, "c1")}


async def test_a_task_is_told_of_on_the_standalone_stream(probe: Probe, autojump_clock: MockClock) -> None:
    """Which belongs to the session: its opening and its end are not part of it, nor are the messages of others."""
    client = await probe.client()
    async with trio.open_nursery() as nursery:
        await nursery.start(client.listen)
        await wait_all_tasks_blocked()
        handle = await client.tool("cancellable_task", {"durationMs": 10_000}, task={})
        other = await client.tool("cancellable_task", {"durationMs": 10_000}, task={})
        await trio.sleep(0.5)
        await client.call("tasks/cancel", {"taskId": handle["task"]["taskId"]})
        await wait_all_tasks_blocked()
        assert other["task"]["taskId"] != handle["task"]["taskId"]
        nursery.cancel_scope.cancel()
    told = story(probe, "c1")
    status = "emitted notifications/tasks/status"
    assert told.count("message.delivered") == told.count(status) + told.count("emitted response")
    place = told.index("received tasks/cancel")
    cancelled = ["task cancelled", status, "cancelled by tasks_cancel", "emitted response"]
    assert told[place + 1 : place + 5] == cancelled
    assert not {"stream.opened", "http.closed"} & {*told}
    assert "received tasks/cancel" not in story(probe, "c2")
    assert all(event.get("task") != handle["task"]["taskId"] for event in entries(probe, "c2"))


async def test_a_modern_task_and_whoever_listens(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    params = {"name": "cancellable_task", "arguments": {"durationMs": 10_000}}
    handle = await client.call("tools/call", params)
    task = handle["taskId"]
    request = client.request("subscriptions/listen", {"notifications": {"taskIds": [task]}})
    async with client.post(request) as ear:
        await ear.first(2)
        await client.call("tasks/get", {"taskId": task})
        await client.call("tasks/cancel", {"taskId": task})
        await ear.first(1)
        ear.hang_up()
        await wait_all_tasks_blocked()
    told = story(probe, "c1")
    assert told[:3] == ASKED
    assert told.count("emitted notifications/tasks") == 2
    assert [each for each in told if each.startswith("received")] == [
        "received tools/call", "received tasks/get", "received tasks/cancel"
    ]  # fmt: skip
    assert not {"received subscriptions/listen", "stream.opened", "http.closed"} & {*told}
    # Once for each answer, and for each notification.
    assert told.count("message.delivered") == 3 + 2


# Several.


async def test_the_calls_of_a_batch_share_its_head_and_its_end_and_nothing_else(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client("2025-03-26")

    def slow(id: Any, steps: int) -> dict[str, Any]:
        params = {"name": "progress", "arguments": {"steps": steps, "step_ms": 1000}, "_meta": {"progressToken": id}}
        return client.request("tools/call", params, id)

    async with client.post([slow(8, 1), client.request("ping", id="ping"), slow("8", 3)]) as answer:
        await client.read(answer)
    first, second = entries(probe, "c1"), entries(probe, "c2")
    for call, steps, id in ((first, 1, 8), (second, 3, "8")):
        told = [said(event) for event in call]
        assert told[:4] in ([*ASKED, "stream.opened"], [*ASKED[:2], "stream.opened", ASKED[2]])
        assert told.count("emitted notifications/progress") == steps
        assert told[-1] == "http.closed"
        answers = [event for event in call if event["kind"] == "message.emitted" and event["rpc"] == "response"]
        assert [(event["id"], type(event["id"])) for event in answers] == [(id, type(id))]
        delivered = [event for event in call if event["kind"] == "message.delivered"]
        places = {place for event in delivered for place in range(event["first"], event["last"] + 1)}
        assert {event["position"] for event in call if event["kind"] == "message.emitted"} <= places
    shared = [event for event in first if event in second]
    kinds = ["http.request", "stream.opened", "http.response", "stream.ended", "http.closed"]
    assert [event["kind"] for event in shared if event["kind"] != "message.delivered"] == kinds


async def test_a_batch_about_others_belongs_to_each_of_them(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client("2025-03-26")
    async with trio.open_nursery() as nursery:

        async def one(id: Any) -> None:
            async with client.post(client.request("tools/call", PROGRESS, id)) as answer:
                await client.read(answer)

        for id in (5, "5"):
            nursery.start_soon(one, id)
            await wait_all_tasks_blocked()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "5"}}
        async with client.post([cancel, client.request("ping", id="ping")]) as answer:
            assert len(await answer.json()) == 1
    assert "cancelled by notification" not in since(probe, 5)
    told = since(probe, "5")
    place = told.index("received notifications/cancelled")
    assert told[place - 1 : place + 2] == [
        "http.request", "received notifications/cancelled", "cancelled by notification"
    ]  # fmt: skip
    assert told.count("http.request") == told.count("http.response") == 2
    assert not {"received ping", "emitted response"} & {*told}, "the ping and its answer are not its own"


async def test_a_modern_notification_of_an_id_is_nobodys(probe: Probe, autojump_clock: MockClock) -> None:
    """It has no effect, and other clients that look the same use the same ids."""
    client = probe.modern()
    async with client.post(client.request("tools/call", PROGRESS, id=5)) as answer:
        params = {"requestId": 5, "_meta": client.request("ping")["params"]["_meta"]}
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        async with client.post(note) as refused:
            assert refused.status == 202
            await refused.body()
        await answer.body()
    assert "received notifications/cancelled" not in story(probe, "c1")


# Bounds.


async def test_a_flood_leaves_bounded_memory_and_the_newest_calls(autojump_clock: MockClock) -> None:
    async with running(call_records=50) as probe:
        client = probe.modern()
        for _ in range(120):
            await client.call("tools/call", {"name": "fail", "arguments": {}})
        probe.engine.observer.catch_up()
        it = Evidence(probe.engine.observer.views)
        known = [f"c{n}" for n in range(1, 121) if it.of(f"c{n}")]
        assert known == [f"c{n}" for n in range(71, 121)]
        assert not it.complete("c70")
        assert len(it.views.calls.named) == 50


class Story:
    """Evidence that is fed single facts."""

    def __init__(self, **retention: int) -> None:
        self.views = Views("run", Retention(**{"calls": 10_000, **retention}))
        self.evidence = Evidence(self.views)
        self._told = Told()

    def tell(self, fact: Event, cause: int | None = None, **context: Any) -> int:
        entry = self._told.entry(fact, cause, **context)
        self.evidence.take(entry)
        return entry.seq

    def start(self, number: int, **context: Any) -> int:
        return self.tell(started(number), **{"call": f"c{number}", "exchange": number, **context})

    def settle(self, number: int, **context: Any) -> int:
        return self.tell(settled(number), **{"call": f"c{number}", "exchange": number, **context})

    def progress(self, number: int) -> None:
        self.tell(CallProgressed(1, None, None), call=f"c{number}", exchange=number)


def test_of_a_call_with_very_many_entries_the_first_are_kept() -> None:
    it = Story()
    it.start(1)
    for _ in range(1999):
        it.progress(1)
    assert (len(it.evidence.of("c1")), it.evidence.complete("c1")) == (2000, True)
    it.progress(1)
    assert (len(it.evidence.of("c1")), it.evidence.complete("c1")) == (2000, False)


def test_a_call_with_very_many_entries_has_its_end() -> None:
    it = Story()
    it.start(1)
    for _ in range(3000):
        it.progress(1)
    ends = [it.settle(1), it.tell(HttpClosed("client", 0), exchange=1)]
    assert it.evidence.of("c1")[-2:] == ends


def test_visits_do_not_push_out_what_becomes_of_a_task() -> None:
    it = Story()
    it.start(1, task="t")
    asks = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "t"}}
    for exchange in range(2, 2000):
        request = it.tell(received(asks), exchange=exchange)
        it.tell(started(1, None, "tasks/result"), request, call=f"x{exchange}", task="t", exchange=exchange)
        it.tell(settled(), request, call=f"x{exchange}", task="t", exchange=exchange)
    assert len(it.evidence.of("c1")) == 1 + 1000
    assert not it.evidence.complete("c1")
    later = [it.tell(TaskChanged("tool", "completed", None, 1), call="c1", task="t"), it.settle(1, task="t")]
    assert it.evidence.of("c1")[-2:] == later


def test_a_call_that_runs_stays_while_others_come_and_go() -> None:
    it = Story(calls=10)
    it.start(1)
    for number in range(2, 100):
        it.start(number)
        it.settle(number)
    ended = it.settle(1)
    assert it.evidence.of("c1") == [1, ended]
    assert it.evidence.complete("c1")
    assert len(it.views.calls) == 10
    assert len(it.views.calls.named) == 11


def test_an_older_entry_that_is_joined_late_comes_last_for_a_reader_that_has_the_others() -> None:
    it = Story()
    it.start(1)
    head = it.tell(requested(), exchange=2)
    it.progress(1)
    read = len(it.evidence.found("c1", 0))
    note = it.tell(received({"method": "notifications/cancelled"}), head, exchange=2)
    stopped = it.tell(cancelled(), note, call="c1", exchange=1)
    assert it.evidence.found("c1", read) == [note, head, stopped]
    assert it.evidence.of("c1") == [1, head, head + 1, note, stopped]


def test_an_entry_that_was_missed_cuts_the_calls_that_ran() -> None:
    it = Story(calls=3)
    it.start(1)
    it.settle(1)
    it.start(2)
    it.views.missed()
    assert it.evidence.complete("c1")
    assert not it.evidence.complete("c2")
    for number in range(3, 9):
        it.start(number)
        it.views.missed()
    assert it.evidence.of("c2") == [], "its end may have been missed, so it makes room"
    assert len(it.views.calls.named) == 6, "three that are listed, and three that may run"


def test_many_calls_with_many_entries_push_out_the_oldest() -> None:
    it = Story(evidence=1000)
    for number in range(30):
        it.start(number)
        for _ in range(99):
            it.progress(number)
    known = [number for number in range(30) if it.evidence.of(f"c{number}")]
    assert known == list(range(20, 30))
    assert not it.evidence.complete("c19")
    assert all(len(it.evidence.of(f"c{number}")) == 100 for number in known)


def test_the_memory_of_exchanges_is_bounded() -> None:
    it = Story(exchanges=100)
    for number in range(1, 500):
        head = it.tell(requested("GET"), exchange=number)
        it.tell(StreamOpened("response"), head, exchange=number, session="s1", stream=f"p{number}")
    assert len(it.views.exchanges) == len(it.views._heads) == 100


def test_an_exchange_has_a_bounded_number_of_entries_and_calls() -> None:
    it = Story(of_exchange=3)
    for number in range(5):
        it.start(number, exchange=1)
    heads = [it.tell(requested(), exchange=1) for _ in range(5)]
    assert it.evidence.of("c2")[1:] == heads
    assert it.evidence.of("c3")[1:] == []
    it.start(9, exchange=1)
    assert len(it.views.exchanges[1].shared) == 3


def test_the_refusal_of_a_visit_without_an_id_belongs_to_the_calls_that_it_visited() -> None:
    it = Story()
    it.start(1)
    head = it.tell(requested(), exchange=2)
    note = it.tell(received({"method": "notifications/cancelled"}), head, exchange=2)
    stopped = it.tell(cancelled(), note, call="c1", exchange=1)
    refusal = it.tell(emitted({"jsonrpc": "2.0", "error": {"code": 1, "message": "no"}}), note, exchange=2)
    it.tell(emitted({"jsonrpc": "2.0", "id": 3, "result": {}}), note, exchange=2)
    assert it.evidence.of("c1") == [1, head, note, stopped, refusal]


# Connections that carry everything, and streams that outlive them; tests/properties/test_evidence.py has the rest.


def test_the_draft_streams_of_a_batch_are_each_of_its_own_call() -> None:
    """The stream of a call is opened before the call starts."""
    it = Story()
    mine: dict[int, list[int]] = {}
    asked = [it.tell(received({"id": id, "method": "tools/call"}, id), exchange=1) for id in (0, 1)]
    for id in (0, 1):
        place = {"call": f"c{id}", "exchange": 1, "session": "s1", "stream": f"p{id}"}
        opened = it.tell(StreamOpened("resumable"), asked[id], **place)
        first = it.tell(emitted({"method": "notifications/stream/create"}, 1), asked[id], **place)
        mine[id] = [asked[id], opened, first, it.tell(MessagesDelivered(1, 1), first, **place)]
    for id in (0, 1):
        mine[id].append(it.tell(started(id), asked[id], call=f"c{id}", exchange=1, session="s1"))
    assert [it.evidence.of(f"c{id}") for id in (0, 1)] == [mine[0], mine[1]]


def test_polls_do_not_push_out_what_becomes_of_a_call() -> None:
    """Deliveries of the call's own stream count as its own, those of the answers to polls as visits."""
    it = Story()
    opened = it.tell(ConnectionOpened("websocket", "::1:5"), connection="w1", exchange=1)
    place = {"connection": "w1", "call": "c1", "exchange": 2, "session": "s1", "stream": "p1"}
    it.tell(StreamOpened("resumable"), opened, **place)
    it.start(1, exchange=2)
    for number in range(3, 1003):
        visit = {"connection": "w1", "exchange": number, "session": "s1"}
        poll = it.tell(received({"id": 9, "method": "stream/poll"}), opened, **visit)
        it.tell(emitted({"id": 9, "result": {}}), poll, call="c1", **visit)
    assert len(it.evidence.of("c1")) == 2 + 1000
    told = [it.tell(MessagesDelivered(1, 1), **place) for _ in range(1990)]
    assert it.evidence.of("c1")[-len(told) :] == told
    for _ in range(100):
        it.tell(MessagesDelivered(1, 1), **place)
    closed = ConnectionClosed(1000, "client", 3)
    ends = [it.tell(StreamLost("overflow", 0), **place), it.tell(closed, opened, connection="w1")]
    assert it.evidence.of("c1")[-2:] == ends, "also where there is no room for more"


def test_a_connection_that_goes_belongs_to_the_calls_whose_stream_it_reads() -> None:
    """Not to a call whose stream another connection has taken over."""
    it = Story()
    for number in (1, 2):
        it.tell(ConnectionOpened("websocket", "::1:5"), connection=f"w{number}", exchange=number)
        place = {"connection": f"w{number}", "call": f"c{number}", "exchange": 2 + number, "session": f"s{number}"}
        it.tell(StreamOpened("resumable"), stream="p1", **place)
        it.tell(started(), **place)
    it.tell(StreamResumed(0, 0), connection="w2", exchange=9, call="c1", session="s1", stream="p1")
    closed = [it.tell(ConnectionClosed(1006, "client", 0), connection=f"w{number}") for number in (1, 2)]
    for call in ("c1", "c2"):
        assert closed[0] not in it.evidence.of(call)
        assert closed[1] in it.evidence.of(call)


# Tool hosts.


class Hosted(Story):
    """Evidence of the calls 1 and 2, which the tool host `h3` works on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[int]] = {}
        for number in (1, 2):
            self.start(number)
            self.sent(number)

    def sent(self, number: int) -> None:
        call = f"c{number}"
        self.mine(call, DispatchSent("demo__export", 30_000, 300_000, "demo", f"d{number}"))
        self.mine(call, HostMessage("sent", "request", "tool.dispatch", f"d{number}", b"{}"), connection="h3")

    def mine(self, call: str, fact: Event, **context: Any) -> None:
        seq = self.tell(fact, **{"call": call, "exchange": int(call[1:]), **context})
        self.found.setdefault(call, self.evidence.of(call)[:-1]).append(seq)

    def answer(self, number: int) -> None:
        message = HostMessage("received", "response", None, f"d{number}", b"{}")
        self.mine(f"c{number}", message, connection="h3")

    def close(self, connection: str = "h3") -> int:
        return self.tell(HostClosed("demo", 1006, "client", 1, 0), connection=connection)

    def check(self) -> None:
        for call, seqs in self.found.items():
            assert self.evidence.of(call) == seqs


def test_a_dispatch_is_evidence_of_its_call_to_its_very_end() -> None:
    it = Hosted()
    for fact in (
        DispatchExtended(3, "idle", 60_000),
        DispatchExpired("idle", 60_000, 30_000, 300_000, 3),
        DispatchCancelled("demo", "d1", "deadline", None),
        HostMessage("sent", "notification", "tool.cancel", None, b"{}"),
        DispatchSettled("timed_out", 60_000, 3, 3, 0, 0),
        settled(1, "timed_out"),
        DispatchLate("demo", "d1", "progress"),
        HostMessage("received", "error", None, "d1", b"{}"),
        DispatchStopped("demo", "d1", "acknowledged", 12.0, 1),
    ):
        it.mine("c1", fact)
    it.tell(HostMessage("received", "request", "host.update", 2, b"{}"), connection="h3")
    it.tell(HostMessage("received", "response", None, "d9", b"{}"), connection="h3", call="c9")
    it.check()


def test_the_end_of_a_tool_host_is_evidence_of_the_calls_that_it_has_not_answered() -> None:
    it = Hosted()
    it.answer(2)
    it.close("h4")
    it.found["c1"].append(it.close())
    it.close()
    it.check()


def test_the_end_of_a_tool_host_may_come_after_that_of_the_call() -> None:
    it = Hosted()
    it.found["c1"].append(it.settle(1))
    gone = it.close()
    it.found["c1"].append(gone)
    it.found["c2"].append(gone)
    it.check()


def test_a_call_whose_work_has_stopped_has_nothing_to_do_with_the_end_of_its_host() -> None:
    it = Hosted()
    it.mine("c2", DispatchStopped("demo", "d2", "unanswered", 60_000.0, 0))
    it.found["c1"].append(it.close())
    it.check()


def test_a_call_with_very_many_reports_shows_how_its_host_ended_it() -> None:
    it = Hosted()
    for number in (1, 2):
        for _ in range(3000):
            it.progress(number)
    ends = [
        it.tell(DispatchExpired("ceiling", 1, 1, 1, 3000), call="c1"),
        it.tell(DispatchCancelled("demo", "d1", "deadline", None), call="c1"),
        it.tell(DispatchSettled("timed_out", 1, 3000, 0, 0, 0), call="c1"),
        it.tell(DispatchStopped("demo", "d1", "host_gone", 1.0, 0), call="c1"),
    ]
    end = it.close()
    assert it.evidence.of("c1")[-4:] == ends
    assert it.evidence.of("c2")[-1] == end
