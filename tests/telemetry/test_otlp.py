"""OpenTelemetry as a collector gets it: names, times, parents, and what happens when it gets nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.log.events import MessageReceived
from probe.telemetry import TelemetryError
from probe.telemetry.requests import BOUNDS
from probe.telemetry.service import following
from probe.wire.jsonrpc import encode

from ..support.calls import slow
from ..support.hosts import SECRET, connected
from ..support.http import exchange
from ..support.legacy import Legacy, RpcError
from ..support.probe import Probe, running
from .collector import Collector, collecting
from .watched import Samples, samples, watched

TRACE, PARENT, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "11f067aa0ba902b7"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@asynccontextmanager
async def exporting(**values: Any) -> AsyncIterator[Probe]:
    """A probe with telemetry; when the block has ended the collector has everything."""
    async with watched(telemetry=True, **values) as probe:
        yield probe


async def test_a_tool_call_of_either_era(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        await client.call("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 50}}, id=41)
        await probe.modern().call("tools/call", {"name": "simple_tool", "arguments": {}}, id="m-1")
        run, at = probe.engine.run, probe.engine.clock.wall()
    legacy, modern = [span for span in collector.spans if span.name == "tools/call simple_tool"]
    assert (legacy.kind, legacy.parent, legacy.status) == ("SERVER", "", ("UNSET", ""))
    assert legacy.attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "simple_tool",
        "jsonrpc.request.id": "41",
        "mcp.session.id": "s1",
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "client.port": 50000,
        "mcp_probe.outcome": "completed",
    }
    # A modern client has no session.
    assert modern.attributes["mcp.protocol.version"] == "2026-07-28"
    assert "mcp.session.id" not in modern.attributes
    assert modern.attributes["jsonrpc.request.id"] == "m-1"
    assert 0.05 <= legacy.end - legacy.start < 30
    assert at - 60 < legacy.start < legacy.end <= modern.end <= at
    assert legacy.trace != modern.trace
    first = collector.resources[0]
    assert (first["service.name"], first["service.instance.id"]) == ("mcp-probe", run)


async def test_the_session_id_itself_is_never_sent(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        await client.tool("simple_tool")
        id = client.headers["mcp-session-id"]
    said = collector.named("initialize")
    assert (said.attributes["mcp.session.id"], said.attributes["mcp.protocol.version"]) == ("s1", "2025-11-25")
    assert id not in repr(collector.spans) + repr(collector.metrics)


async def test_the_trace_of_meta_goes_on(collector: Collector) -> None:
    meta = {"traceparent": TRACEPARENT, "tracestate": "rojo=1"}
    async with exporting() as probe:
        client = await probe.client()
        await client.tool("simple_tool", _meta=meta)
        await probe.modern().tool("simple_tool", meta=meta)
        client.headers["traceparent"] = f"00-{TRACE}-{OTHER}-01"
        await client.call("ping")
        await client.call("tools/call", {"name": "progress", "arguments": {}, "_meta": meta})
    spans = [span for span in collector.spans if span.name == "tools/call simple_tool"]
    assert [(span.trace, span.parent, span.links) for span in spans] == [(TRACE, PARENT, [])] * 2
    by_header = collector.named("ping")
    assert (by_header.trace, by_header.parent, by_header.links) == (TRACE, OTHER, [])
    both = collector.named("tools/call progress")
    assert (both.parent, both.links) == (PARENT, [(TRACE, OTHER)])


@pytest.mark.parametrize(
    "wrong", [f"00-{'0' * 32}-{PARENT}-01", "x", "", 5, None, ["00"], TRACEPARENT * 100, TRACEPARENT[:-3]]
)
async def test_a_trace_that_is_none_begins_a_new_one(wrong: Any, collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        await client.call("prompts/list", {"_meta": {"traceparent": wrong, "tracestate": wrong}})
    span = collector.named("prompts/list")
    assert (span.parent, span.status) == ("", ("UNSET", ""))
    assert span.trace != TRACE


@pytest.mark.parametrize(("size", "parent"), [(256 * 1024, PARENT), (256 * 1024 + 1, "")])
async def test_a_message_of_more_than_256_kib_begins_a_new_trace(size: int, parent: str, collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        message = client.request("ping", {"_meta": {"traceparent": TRACEPARENT}, "filler": ""})
        message["params"]["filler"] = "x" * (size - len(json.dumps(message)))
        async with client.post(message) as answer:
            assert answer.status == 200
        facts = [entry.fact for entry in probe.engine.log.since(0, 1000).entries]
    # As the log keeps it.
    assert [len(fact.message) for fact in facts if isinstance(fact, MessageReceived)][-1] == size
    assert collector.named("ping").parent == parent


async def test_two_parents_are_none(collector: Collector) -> None:
    other = f"00-{TRACE}-{OTHER}-01"
    async with exporting() as probe:
        client = await probe.client()
        for parents in ((TRACEPARENT, other), (TRACEPARENT, TRACEPARENT)):
            headers = [*client.headers.items(), *(("traceparent", value) for value in parents)]
            body = encode(client.request("ping"))
            async with exchange(probe.app, "POST", "/mcp", headers, body) as answer:
                assert answer.status == 200
    spans = [span for span in collector.spans if span.name == "ping"]
    assert [(span.parent, span.links, span.trace == TRACE) for span in spans] == [("", [], False)] * 2


async def test_a_trace_that_is_not_sampled_is_not_sent(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        await client.call("tools/list", {"_meta": {"traceparent": f"00-{TRACE}-{PARENT}-00"}})
    assert [span.name for span in collector.spans] == ["initialize"]
    assert collector.value("mcp_probe.spans_dropped") == 0


async def test_spans_that_are_not_sent_take_no_room(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "3")
    async with exporting() as probe:
        client = await probe.client()
        for _ in range(10):
            await client.call("tools/list", {"_meta": {"traceparent": f"00-{TRACE}-{PARENT}-00"}})
        await client.call("ping")
    assert [span.name for span in collector.spans] == ["initialize", "ping"]


async def test_how_requests_fail(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        await client.tool("simple_tool", {"delayMs": -1})
        for method, params in (("tools/call", {"name": "n\x1b[0m"}), ("un/heard of", {})):
            with pytest.raises(RpcError):
                await client.call(method, params)
        async with client.post(slow(client)) as answer:
            await answer.first(1)
            await client.cancel("it", "no longer needed")
            await client.read(answer)
    tool = collector.named("tools/call simple_tool")
    assert (tool.attributes["error.type"], tool.status) == ("tool_error", ("ERROR", ""))
    # What a client makes up is in an attribute, never in the name of a span.
    unknown = collector.named("tools/call")
    assert unknown.attributes["gen_ai.tool.name"] == "n\x1b[0m"
    assert unknown.attributes["error.type"] == unknown.attributes["rpc.response.status_code"] == "-32602"
    assert unknown.status[0] == "ERROR"
    assert "Unknown tool" in unknown.status[1]
    method = collector.named("unknown")
    assert (method.attributes["mcp.method.name"], method.attributes["error.type"]) == ("un/heard of", "-32601")
    cancelled = collector.named("tools/call progress")
    assert cancelled.attributes["error.type"] == "cancelled"
    assert ("cancellation", {"by": "notification", "reason": "no longer needed", "effect": True}) in cancelled.events


async def test_progress_and_a_deadline_are_events(collector: Collector) -> None:
    async with exporting(idle_deadline_s=0.3) as probe:
        client = await probe.client()
        arguments = {"steps": 2, "step_ms": 20}
        await client.tool("progress", arguments, _meta={"progressToken": "t"})
        await client.tool("simple_tool", {"delayMs": 5000})
    progress = collector.named("tools/call progress")
    assert progress.events == [("progress", {"progress": step, "total": 2}) for step in (1, 2)]
    late = collector.named("tools/call simple_tool")
    assert [name for name, _ in late.events] == ["deadline", "cancellation"]
    assert late.events[0][1]["deadline"] == "idle"
    assert late.attributes["error.type"] == "tool_error"
    assert late.attributes["mcp_probe.outcome"] == "timed_out"


async def test_the_dispatch_to_a_tool_host_is_a_child(collector: Collector) -> None:
    async with exporting(toolhost_secret=SECRET) as probe, connected(probe.app) as host:
        await host.register()
        client = await probe.client()

        async def answer() -> None:
            dispatch, _ = await host.dispatched()
            await host.answer(dispatch, text="done")
            dispatch, _ = await host.dispatched()
            await host.fail(dispatch, 7, "it broke")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await client.call("tools/call", {"name": "demo__plain"}, id=1)
            await client.call("tools/call", {"name": "demo__plain"}, id=2)
    calls = [span for span in collector.spans if span.name == "tools/call demo__plain"]
    dispatches = [span for span in collector.spans if span.name == "tool_host demo__plain"]
    assert [(span.kind, span.parent, span.trace) for span in dispatches] == [
        ("CLIENT", call.id, call.trace) for call in calls
    ]
    assert dispatches[0].attributes["mcp_probe.tool_host"] == "demo"
    assert [span.attributes.get("error.type") for span in dispatches] == [None, "tool_error"]
    assert all(call.start <= span.start <= span.end <= call.end for call, span in zip(calls, dispatches, strict=True))


async def test_a_task_outlives_its_request(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()
        task = (await client.tool("pure_task", {"durationMs": 1000}, task={}))["task"]["taskId"]
        await client.call("tasks/result", {"taskId": task})
    request, work = collector.named("tools/call pure_task"), collector.named("task pure_task")
    assert (work.kind, work.parent, work.trace) == ("INTERNAL", request.id, request.trace)
    assert work.attributes["mcp_probe.outcome"] == "completed"
    assert work.end - work.start >= 0.9
    assert work.end > request.end


async def test_a_question_to_the_client_is_a_child(collector: Collector) -> None:
    async with exporting() as probe:
        client = await probe.client()

        def respond(request: dict[str, Any]) -> dict[str, Any]:
            content = {"type": "text", "text": "a haiku"}
            return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}

        request = client.request("tools/call", {"name": "sampling_demo", "arguments": {}})
        async with client.post(request) as answer:
            await client.read(answer, respond)
    call, asked = collector.named("tools/call sampling_demo"), collector.named("sampling/createMessage")
    assert (asked.kind, asked.parent, asked.status) == ("CLIENT", call.id, ("UNSET", ""))
    assert call.start <= asked.start <= asked.end <= call.end


async def test_metrics_by_the_conventions_and_our_own(collector: Collector, mock_clock: MockClock) -> None:
    async with exporting() as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.tool, "simple_tool", {"delayMs": 50})
            await wait_all_tasks_blocked()
            mock_clock.jump(0.05)
        with pytest.raises(RpcError):
            await client.tool("unheard of")
        with pytest.raises(RpcError):
            await client.call("unheard/of")
        await client.delete()
        # The lateness of the event loop is measured four times a second.
        mock_clock.jump(0.5)
        await wait_all_tasks_blocked()
    transport = {"network__transport": "tcp", "network__protocol__name": "http"}
    about = {**transport, "network__protocol__version": "1.1", "mcp__protocol__version": "2025-11-25"}
    call = {"mcp__method__name": "tools/call", "gen_ai__operation__name": "execute_tool"}
    done = collector.value(DURATION, **about, **call, gen_ai__tool__name="simple_tool")
    assert (done["count"], done["bounds"]) == (1, list(BOUNDS))
    assert done["sum"] == pytest.approx(0.05)
    failed = {"error__type": "-32602", "rpc__response__status_code": "-32602"}
    assert collector.value(DURATION, **about, **call, **failed, gen_ai__tool__name="unknown")["count"] == 1
    other = {"error__type": "-32601", "rpc__response__status_code": "-32601"}
    assert collector.value(DURATION, **about, **other, mcp__method__name="_OTHER")["count"] == 1
    session = collector.value("mcp.server.session.duration", mcp__protocol__version="2025-11-25")
    assert session["count"] == 1
    assert collector.value("mcp_probe.requests", era="legacy", method="tools/call", outcome="completed") == 1
    assert collector.value("mcp_probe.sessions") == 0
    assert collector.value("mcp_probe.messages", direction="in") > 3
    assert collector.metrics["mcp_probe.event_loop_lateness"]


DURATION = "mcp.server.operation.duration"


async def test_what_the_variables_say(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "another")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    async with exporting() as probe:
        await probe.client()
    resource = collector.resources[0]
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("another", "test")
    assert [span.name for span in collector.spans] == ["initialize"]
    assert not collector.metrics


@pytest.mark.parametrize("off", ["TRACES", "LOGS", "METRICS"])
async def test_each_signal_can_be_off_alone(off: str, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"OTEL_{off}_EXPORTER", "none")
    async with exporting(log_level="info") as probe:
        await (await probe.client()).tool("simple_tool")
    came = {"TRACES": collector.spans, "LOGS": collector.records, "METRICS": collector.metrics}
    assert [signal for signal, values in came.items() if not values] == [off]
    assert {record.event for record in collector.records} >= ({"call.settled"} if off != "LOGS" else set())
    # Without spans there is none that a record could be within.
    assert any(record.span for record in collector.records) is (off == "METRICS")
    calls = collector.value("mcp_probe.calls", tool="simple_tool", outcome="completed")
    assert calls == (None if off == "METRICS" else 1)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "must be http/protobuf, got 'grpc'"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "must be otlp or none, got 'zipkin'"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "at least 1, got '0'"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon", "at least 1, got 'soon'"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-1", "at least 1, got '-1'"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "x", "at least 1, got 'x'"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "parentbased_always_on, .* or traceidratio, got 'sometimes'"),
        ("OTEL_TRACES_SAMPLER", "always_on ", "got 'always_on '"),
        *[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", value, "must be an http or https URL, got ")
            for value in (
                "::::",
                "localhost:4318",
                "http://",
                "ftp://127.0.0.1",
                "http://[x]",
                "http://127.0.0.1:65536",
            )
        ],
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces", "must be an http or https URL, got '/v1/traces'"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/v1/metrics", "must be an http or https URL, got '/v1/metrics'"),
    ],
)
async def test_variables_that_cannot_be_followed(
    variable: str, value: str, said: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    async with running(telemetry=True) as probe:
        with pytest.raises(TelemetryError, match=f"{variable} .*{said}"):
            async with following(probe.engine):
                pass


@pytest.mark.parametrize("ratio", ["1.5", "-1", "half", "nan"])
async def test_a_share_of_traces_that_is_none(
    ratio: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "TraceIdRatio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", ratio)
    async with running(telemetry=True) as probe:
        with pytest.raises(TelemetryError, match=f"OTEL_TRACES_SAMPLER_ARG must be .* from 0 to 1, got '{ratio}'"):
            async with following(probe.engine):
                pass


async def test_samplers(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "Always_Off")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "for others")
    async with exporting() as probe:
        await probe.client()
    assert not collector.spans
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "1")
    async with exporting() as probe:
        await probe.client()
    assert [span.name for span in collector.spans] == ["initialize"]


async def test_a_collector_that_does_not_answer_delays_the_end_by_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collecting(answers=False) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        # The SDK itself would wait for so long.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120")
        async with running(telemetry=True) as probe:
            async with following(probe.engine):
                client = await probe.client()
                await client.tool("simple_tool")
            began = trio.current_time()
            async with following(probe.engine):
                await client.tool("simple_tool")
            # Three seconds are for the collector, one for what has still to be read.
            assert 2.5 < trio.current_time() - began < 60


async def _followed(clock: MockClock) -> None:
    """Wait until the telemetry has the whole log; it rests between pieces. The text of /metrics is made anew, too."""
    for _ in range(10):
        await wait_all_tasks_blocked()
        clock.jump(0.2)


async def test_spans_that_have_no_room_are_counted_and_wait_for_nobody(
    monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    with collecting(answers=False) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with watched(telemetry=True, metrics=True) as probe:
            client = await probe.client()
            for _ in range(9):
                await client.tool("simple_tool")
            await _followed(mock_clock)
            await trio.to_thread.run_sync(collector.asked.wait, 60)
            for _ in range(40):
                await client.tool("simple_tool")
            await _followed(mock_clock)
            dropped = (await samples(probe))("spans_dropped_total")
            collector.answers.set()
        # Five are on their way to the collector, and ten wait.
        assert dropped == 50 - 5 - 10
    assert len(collector.spans) == 15


async def test_a_disabled_sdk_drops_nothing(monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "True")
    monkeypatch.setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "5")
    async with watched(telemetry=True, metrics=True, log_level="info") as probe:
        client = await probe.client()
        for _ in range(20):
            await client.tool("simple_tool")
        await _followed(mock_clock)
        assert (await samples(probe))("log_records_dropped_total") is None


async def test_lines_are_log_records_within_the_spans_of_their_calls(collector: Collector) -> None:
    async with exporting(log_level="info") as probe:
        client = await probe.client()
        await client.call("tools/call", {"name": "simple_tool", "arguments": {}}, id=2**70)
        at = probe.engine.clock.wall()
    (call,) = [record for record in collector.records if record.event == "call.settled"]
    assert call.span == collector.named("tools/call simple_tool").id
    assert (call.severity, call.body) == ("INFO", "call")
    assert at - 60 < call.at <= at
    assert call.attributes.pop("mcp_probe.ms") >= 0
    assert call.attributes == {
        "mcp_probe.request": str(2**70),
        "mcp_probe.session": "s1",
        "mcp_probe.call": "c1",
        "mcp_probe.exchange": 3,
        "mcp_probe.outcome": "completed",
        "mcp_probe.tool": "simple_tool",
        "mcp_probe.client": "test-client",
        "mcp_probe.transport": "http",
        "mcp_probe.era": "legacy",
    }
    assert next(record.body for record in collector.records if not record.span) == "session opened"


@pytest.mark.parametrize(("level", "events"), [("off", []), ("warning", ["limit.reached"])])
async def test_log_records_have_the_level_of_the_lines(level: str, events: list[str], collector: Collector) -> None:
    async with exporting(log_level=level, max_sessions=1) as probe:
        client = await probe.client()
        await client.tool("simple_tool")
        other = Legacy(probe.app, "/mcp")
        async with other.post(other.request("initialize", INITIALIZE)) as refused:
            assert refused.status == 503
    assert [record.event for record in collector.records] == events
    assert len(collector.spans) > 0


async def test_spans_that_the_collector_refuses_are_counted(collector: Collector, mock_clock: MockClock) -> None:
    collector.status = 400
    async with running(telemetry=True, metrics=True) as probe:
        async with following(probe.engine) as page:
            await probe.client()
            assert page is not None
            assert Samples(page.text().decode())("spans_lost_total") == 0
        # The text is made anew after a second.
        mock_clock.jump(1)
        assert Samples(page.text().decode())("spans_lost_total") == 1
        assert Samples(page.text().decode())("log_records_lost_total") == 0
    assert collector.asked.is_set()
    assert not collector.spans


async def test_no_thread_is_left(collector: Collector) -> None:
    from threading import enumerate as threads

    async with exporting() as probe:
        await probe.client()
        names = {thread.name for thread in threads()}
        assert {
            "OtelBatchSpanRecordProcessor",
            "OtelBatchLogRecordProcessor",
            "OtelPeriodicExportingMetricReader",
        } <= names
    assert not [thread.name for thread in threads() if thread.name.startswith("Otel")]
