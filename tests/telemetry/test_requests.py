"""Each request of a client has one beginning, one end and the outcome that it really had."""

from __future__ import annotations

import gc
from weakref import WeakSet

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.log.events import HttpResponse, MessageEmitted, MessageReceived
from probe.telemetry.requests import Requests
from probe.views.fold import Views
from probe.wire.jsonrpc import encode

from ..support.calls import slow
from ..support.facts import Told, requested, settled, started
from ..support.http import exchange
from ..support.legacy import RpcError
from ..support.probe import Probe, running
from .watched import outcomes, over, steps, taken


async def test_requests_that_come_to_their_own_end(probe: Probe, autojump_clock: MockClock) -> None:
    legacy, modern = await probe.client(), probe.modern()
    for client in (legacy, modern):
        await client.tool("simple_tool")
        await client.tool("progress", {"steps": 1})
        await client.tool("simple_tool", {"delayMs": -1})
        with pytest.raises(RpcError):
            await client.tool("no such tool")
    assert outcomes(probe) == [
        (era, outcome)
        for era in ("legacy", "modern")
        for outcome in ("completed", "completed", "tool_error", "protocol_error")
    ]
    assert outcomes(probe, "initialize") == [("legacy", "completed")]
    assert not steps(probe)[0].in_flight


async def test_the_tool_and_who_asked(probe: Probe, autojump_clock: MockClock) -> None:
    await (await probe.client()).tool("simple_tool")
    await probe.modern().tool("simple_tool")
    calls = [request for request in over(probe) if request.method == "tools/call"]
    assert [(request.tool, request.session, request.transport) for request in calls] == [
        ("simple_tool", "s1", "http"),
        ("simple_tool", "m1", "http"),
    ]


async def test_a_cancelled_request_is_over_without_an_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(slow(client)) as answer:
        await answer.first(1)
        await client.cancel("it")
        await client.read(answer)
    assert outcomes(probe) == [("legacy", "cancelled")]


async def test_a_modern_client_that_goes(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    arguments = {"steps": 10, "step_ms": 1000}
    request = client.request("tools/call", {"name": "progress", "arguments": arguments}, meta={"progressToken": "t"})
    async with client.post(request) as answer:
        await answer.first(1)
    await wait_all_tasks_blocked()
    assert outcomes(probe) == [("modern", "disconnected")]


async def test_a_deadline_and_a_question(autojump_clock: MockClock) -> None:
    async with running(idle_deadline_s=1.0) as probe:
        await (await probe.client()).tool("sync_with_progress", {"itemCount": 1, "delayPerItemMs": 1000})
        await (await probe.client()).tool("simple_tool", {"delayMs": 5000})
        await probe.modern().tool("sampling_demo")
    assert outcomes(probe)[1:] == [("legacy", "timed_out"), ("modern", "input_required")]


async def test_headers_of_a_trace_that_stand_twice(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    for names in (
        ("TraceParent", "tracestate", "TraceState"),
        ("traceparent", "Traceparent", "tracestate"),
        ("tracestate", "tracestate"),
    ):
        sent = [*client.headers.items(), *((name, f"value={at}") for at, name in enumerate(names))]
        async with exchange(probe.app, "POST", "/mcp", sent, encode(client.request("ping"))) as answer:
            assert answer.status == 200
    heads = [request.head for request in over(probe) if request.method == "ping"]
    assert [head and head.trace for head in heads] == [
        {"traceparent": "value=0", "tracestate": "value=1,value=2"},
        {},
        {},
    ]


async def test_what_http_refuses(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    without = {name: value for name, value in client.headers.items() if name != "mcp-session-id"}
    client.headers = without
    for id in (7, "x" * 300):
        async with client.post({"jsonrpc": "2.0", "id": id, "method": "ping"}) as answer:
            assert answer.status == 400
    # The second id is too long to be echoed: its refusal names no id, and has the request as its cause all the same.
    assert outcomes(probe, "ping") == [("unknown", "protocol_error")] * 2
    assert not steps(probe)[0].in_flight


async def test_http_refuses_a_batch_with_one_error_for_all_of_its_requests(probe: Probe) -> None:
    client = await probe.client("2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, "x" * 300, 3)]
    async with client.post(batch) as answer:
        assert answer.status == 400
    assert [(request.id, request.outcome) for request in over(probe)[1:]] == [
        (1, "protocol_error"),
        ("x" * 300, "refused"),
        (3, "refused"),
    ]
    assert not steps(probe)[0].in_flight


async def test_the_work_of_a_task_is_no_part_of_its_request(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("cancellable_task", {"durationMs": 20_000}, task={})
    assert outcomes(probe) == [("legacy", "completed")]
    await trio.sleep(30)
    assert outcomes(probe) == [("legacy", "completed")]
    settled = [step for step in steps(probe)[1] if step.entry.fact.kind == "call.settled"]
    assert [(step.call.tool, step.over) for step in settled if step.call] == [("cancellable_task", [])]


async def test_ids_that_two_clients_use_at_the_same_time(probe: Probe, autojump_clock: MockClock) -> None:
    first, second = await probe.client(), await probe.client()

    async def call(client: object, tool: str, arguments: dict[str, int]) -> None:
        await client.call("tools/call", {"name": tool, "arguments": arguments}, id=5)  # type: ignore[attr-defined]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, first, "simple_tool", {"delayMs": 500})
        nursery.start_soon(call, second, "sync_with_progress", {"itemCount": 1})
    ended = [(request.session, request.tool, request.outcome) for request in over(probe) if request.id == 5]
    assert ended == [("s2", "sync_with_progress", "completed"), ("s1", "simple_tool", "completed")]


async def test_what_is_never_answered_makes_room(probe: Probe, autojump_clock: MockClock) -> None:
    views = Views()
    requests = Requests(views)
    requests.in_flight._most = 2
    client = await probe.client()
    for _ in range(3):
        with trio.move_on_after(0.001):
            await client.tool("simple_tool", {"delayMs": 5000})
    ends = [taken(requests, views, entry).over for entry in probe.engine.log.since(0, 1_000_000).entries]
    forgotten = [(request.method, request.outcome) for end in ends for request in end]
    assert forgotten == [("initialize", "completed"), ("tools/call", "unanswered")]
    assert len(requests.in_flight) == 2


async def test_after_a_gap_nothing_is_taken_for_something_else(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    views = Views()
    requests = Requests(views)
    seen = probe.engine.log.last
    for entry in probe.engine.log.since(0, seen).entries:
        taken(requests, views, entry)
    await client.tool("simple_tool")
    entries = probe.engine.log.since(seen, 1000).entries
    cut = next(place for place, entry in enumerate(entries) if entry.fact.kind == "message.received") + 1
    for entry in entries[:cut]:
        taken(requests, views, entry)
    assert len(requests.in_flight) == 1
    requests.missed()
    assert not requests.in_flight
    assert [over for entry in entries[cut:] if (over := taken(requests, views, entry).over)] == []


def test_a_task_that_ends_before_its_handle_is_sent_leaves_its_request_alone() -> None:
    told = Told()
    place = {"exchange": 1, "session": "s1", "call": "c1"}
    request = told.entry(MessageReceived(None, "request", "tools/call", 5, b"{}"), exchange=1, session="s1").seq
    told.entry(started(5, "pure_task"), request, task="t1", **place)
    told.entry(settled(5, "cancelled", answered=False, cancelled_by="tasks_cancel"), request, task="t1", **place)
    told.entry(MessageEmitted(None, "response", None, 5, b"{}"), request, **place)
    views = Views()
    requests = Requests(views)
    ends = [request for entry in told.log.since(0, 9).entries for request in taken(requests, views, entry).over]
    assert [(request.tool, request.outcome) for request in ends] == [("pure_task", "completed")]


def test_a_refused_batch_is_known_however_many_exchanges_wait_for_their_responses() -> None:
    told, views = Told(), Views()
    requests = Requests(views)
    for place in range(1, 3001):
        told.entry(requested(), exchange=place)
        told.entry(MessageReceived(None, "request", "ping", 5, b"{}"), exchange=place)
    told.entry(HttpResponse(400, "application/json", "no session"), exchange=1)
    ends = [request for entry in told.log.since(0, 10_000).entries for request in taken(requests, views, entry).over]
    assert [(request.seq, request.outcome) for request in ends] == [(2, "refused")]


class Mark:
    """Lives as long as the request that has it."""


def test_a_request_that_is_over_leaves_nothing_to_the_garbage_collector() -> None:
    told, views, alive = Told(), Views(), WeakSet[Mark]()
    requests = Requests(views)
    told.entry(requested(), exchange=1)
    asked = told.entry(MessageReceived(None, "request", "ping", 5, b"{}"), exchange=1)
    told.entry(MessageEmitted(None, "response", None, 5, b"{}"), asked.seq, exchange=1)
    told.entry(HttpResponse(200, "application/json", None), exchange=1)
    gc.disable()
    try:
        for entry in told.log.since(0, 9).entries:
            begun = taken(requests, views, entry).begun
            if begun is not None:
                begun.span = Mark()
                alive.add(begun.span)
                assert begun.head is not None
            del begun
        assert not requests.in_flight
        assert not alive
    finally:
        gc.enable()


def test_the_connection_says_by_which_transport_a_request_came() -> None:
    told, views = Told(), Views()
    requests = Requests(views)
    for connection in ("tcp1", "w2", "i3", "r4"):
        told.entry(MessageReceived(None, "request", "ping", 5, b"{}"), exchange=1, connection=connection)
    begun = [taken(requests, views, entry).begun for entry in told.log.since(0, 9).entries]
    assert [request and request.transport for request in begun] == ["http", "websocket", "stdio", "stdio"]
