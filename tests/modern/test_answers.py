"""How a request is answered: one JSON object or an event stream, and what is on the wire.

2026-07-28 basic/transports/streamable-http; sentences in quotes without a source are from there.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolFailureError, ToolResult, content, text
from probe.wire.errors import Code, McpError

from ..support.calls import heard, silent, slow, steps, tool_call
from ..support.http import http_scope
from ..support.inside import SERVICES, engine_tasks
from ..support.modern import Modern
from ..support.probe import Probe, running

EVENTS = "text/event-stream"
OBJECT = "application/json"
NAME = 'é\u2028\x7f\U0001f600 \\ " line\nbreak\r\n'


async def _fail(context: ToolContext) -> ToolResult:
    raise ToolFailureError("It went wrong")


async def _protest(context: ToolContext) -> ToolResult:
    context.report_progress(1)
    raise McpError(Code.INVALID_PARAMS, "Never heard of it")


async def _crash(context: ToolContext) -> ToolResult:
    raise ZeroDivisionError


async def _speak(context: ToolContext) -> ToolResult:
    context.log("info", NAME)
    context.report_progress(1, 2, NAME)
    await context.sleep(0.1)
    return content([text(NAME)])


async def _flood(context: ToolContext) -> ToolResult:
    for number in range(1, 101):
        context.report_progress(number, 100)
        await context.sleep(0.05)
    return content([text("done")])


CUSTOM = Toolset(
    "custom",
    (
        Tool("fail", "Fail", "A tool error", _fail),
        Tool("protest", "Protest", "A protocol error", _protest),
        Tool("crash", "Crash", "A defect", _crash),
        Tool("speak", "Speak", "Says what is hard to say", _speak),
        Tool("flood", "Flood", "A hundred reports in five seconds", _flood),
    ),
)

# One object or a stream.

TOKEN = {"progressToken": "t"}
LEVEL = {"io.modelcontextprotocol/logLevel": "info"}
# tool and arguments, what is added to _meta, the media type of the answer
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "answered at once": ("chatty", {}, TOKEN, OBJECT),
    "refused arguments": ("simple_tool", {"delayMs": -1}, TOKEN, OBJECT),
    "unknown tool": ("nothing", {}, TOKEN, OBJECT),
    "a tool that waits, but says nothing": ("simple_tool", {"delayMs": 5000}, TOKEN, OBJECT),
    "a tool that would report, without a token": ("progress", {"steps": 3}, {}, OBJECT),
    "a tool that would log, without a level": ("log_levels", {}, {}, OBJECT),
    "a question as the only message": ("sampling_demo", {}, TOKEN, OBJECT),
    "a task": ("pure_task", {}, TOKEN, OBJECT),
    "progress": ("progress", {"steps": 3}, TOKEN, EVENTS),
    "progress without a pause": ("progress", {"steps": 3, "step_ms": 0}, TOKEN, EVENTS),
    "log messages": ("log_levels", {}, LEVEL, EVENTS),
    "a question after progress": ("test_streaming_elicitation", {}, TOKEN, EVENTS),
}


@pytest.mark.proves("2026-07-28/streamable-http/10")
@pytest.mark.parametrize("case", KINDS)
async def test_an_answer_is_one_object_when_it_is_the_only_message_else_a_stream(
    case: str, probe: Probe, autojump_clock: MockClock
) -> None:
    name, arguments, meta, kind = KINDS[case]
    client = probe.modern()
    async with client.post(tool_call(client, name, arguments, **meta)) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
        messages = await heard(client, answer)
    assert (len(messages) == 1) == (kind == OBJECT)
    assert messages[-1]["id"] == "it"


@pytest.mark.parametrize("id", ["it", "", 0, -7, 2**53 + 1, "5", 5])
@pytest.mark.parametrize("tool", ["chatty", "simple_tool", "progress"])
@pytest.mark.proves("2026-07-28/basic/6")
async def test_every_kind_of_answer_has_the_id_of_its_request(
    tool: str, id: Any, probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    async with client.post(tool_call(client, tool, id=id, **TOKEN)) as answer:
        got = (await heard(client, answer))[-1]["id"]
    assert (got, type(got)) == (id, type(id))


# A tool, the status of its answer if it stands alone, its error code.
FAILURES = [("fail", 200, None), ("crash", 200, -32603)]


@pytest.mark.parametrize(("tool", "status", "code"), FAILURES)
async def test_a_failure_that_stands_alone_is_one_object(
    tool: str, status: int, code: int | None, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, tool, **TOKEN)) as answer:
            assert (answer.status, answer.headers["content-type"]) == (status, OBJECT)
            (message,) = await heard(client, answer)
        assert message.get("error", {}).get("code") == code
        assert message.get("result", {}).get("isError") is (None if code else True)


@pytest.mark.proves("2026-07-28/streamable-http/13")
async def test_an_error_may_end_a_stream_as_well(autojump_clock: MockClock) -> None:
    """The status has been sent by then, so it is that of the stream."""
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "protest", **TOKEN)) as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, EVENTS)
            progress, error = await heard(client, answer)
        assert (progress["method"], error["error"]["code"]) == ("notifications/progress", -32602)


# The wire.


@pytest.mark.proves("2026-07-28/streamable-http/14")
async def test_the_headers_of_a_stream(probe: Probe, autojump_clock: MockClock) -> None:
    """ "When initiating an SSE stream, servers SHOULD include the `X-Accel-Buffering: no` header"; and nothing here has
    a session."""
    client = probe.modern()
    async with client.post(slow(client, steps=1)) as answer:
        assert answer.headers == {
            "content-type": EVENTS,
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
            "x-content-type-options": "nosniff",
        }


async def test_the_headers_of_an_object(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    async with client.post(silent(client)) as answer:
        body = await answer.body()
        assert answer.headers == {
            "content-type": OBJECT,
            "content-length": str(len(body)),
            "x-content-type-options": "nosniff",
        }


@pytest.mark.proves("2026-07-28/transports/1")
async def test_each_message_is_one_data_line_and_an_event_has_nothing_else(autojump_clock: MockClock) -> None:
    """ "streams are not resumable", so an event has no id, and no `retry` asks anybody to come back."""
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "speak", **TOKEN, **LEVEL)) as answer:
            raw = await answer.body()
        blocks = raw.decode().split("\n\n")
        assert blocks.pop() == ""
        assert len(blocks) == 3
        messages = []
        for block in blocks:
            assert block.startswith("data: {")
            assert not {"\n", "\r"} & set(block), "one line"
            messages.append(json.loads(block.removeprefix("data: ")))
            assert block == f"data: {json.dumps(messages[-1], ensure_ascii=False, separators=(',', ':'))}", "compact"
        log, progress, response = messages
        client.check(log), client.check(progress), client.result(response, "tools/call", "it")
        assert (
            log["params"]["data"] == progress["params"]["message"] == response["result"]["content"][0]["text"] == NAME
        )


async def test_an_object_is_one_compact_line(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "speak")) as answer:
            raw = (await answer.body()).decode()
        assert raw == json.dumps(json.loads(raw), ensure_ascii=False, separators=(",", ":"))
        assert client.result(json.loads(raw), "tools/call", "it")["content"] == [text(NAME)]


@pytest.mark.proves("2026-07-28/streamable-http/13")
async def test_the_response_ends_the_stream(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    began = trio.current_time()
    async with client.post(slow(client, steps=2)) as answer:
        assert steps(await heard(client, answer)) == [1, 2, None]
        assert trio.current_time() - began == pytest.approx(2)
    (closed,) = probe.events("http.closed")
    assert (closed["by"], closed["messages"]) == ("end of stream", 3)
    assert engine_tasks() == SERVICES


@pytest.mark.proves("2026-07-28/streamable-http/11", "2026-07-28/basic/22")
async def test_a_stream_carries_only_what_belongs_to_its_request(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    got: dict[int, list[dict[str, Any]]] = {}

    async def one(number: int) -> None:
        meta = {"progressToken": number, **LEVEL}
        name, arguments = ("test_tool_with_logging", {}) if number % 2 else ("progress", {"steps": 4, "step_ms": 20})
        async with client.post(tool_call(client, name, arguments, number, **meta)) as answer:
            got[number] = await heard(client, answer)

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(one, number)
    for number, (*notes, response) in got.items():
        assert response["id"] == number
        methods = {note["method"] for note in notes}
        assert methods == {"notifications/message" if number % 2 else "notifications/progress"}
        assert {note["params"].get("progressToken", number) for note in notes} == {number}
        assert len(notes) == (3 if number % 2 else 4)


# Silence.


async def test_a_silent_call_becomes_a_stream_after_one_interval_with_a_comment_every_further_one(
    autojump_clock: MockClock,
) -> None:
    """Nobody shall take a silent connection for a dead one (product contract, section 9: 15 s)."""
    async with running() as probe:
        client = probe.modern()
        began = trio.current_time()
        async with client.post(tool_call(client, "progress", {"steps": 10, "step_ms": 5000})) as answer:
            assert trio.current_time() - began == pytest.approx(15)
            assert (answer.status, answer.headers["content-type"]) == (200, EVENTS)
            (response,) = await heard(client, answer)
            # 30 s: no report reached the client, but the engine counts them, so that no deadline passes.
            assert trio.current_time() - began == pytest.approx(50)
        assert response["result"]["structuredContent"]["steps"] == 10
        assert answer.comments == ["keep-alive"] * 2


@pytest.mark.parametrize(("keep_alive_s", "kind"), [(1.9, EVENTS), (2.1, OBJECT)])
async def test_the_interval_decides_between_object_and_stream(
    keep_alive_s: float, kind: str, autojump_clock: MockClock
) -> None:
    async with running(keep_alive_s=keep_alive_s) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "simple_tool", {"delayMs": 2000})) as answer:
            assert answer.headers["content-type"] == kind
            assert len(await heard(client, answer)) == 1
            assert answer.comments == []


async def test_a_call_can_ask_for_a_silence_that_nothing_breaks(autojump_clock: MockClock) -> None:
    silence = {"silentMs": 90_000, "idleMs": 600_000, "keepAlive": False}
    async with running() as probe:
        modern, legacy = probe.modern(), await probe.client()
        began = trio.current_time()
        async with modern.post(tool_call(modern, "silent_call", silence)) as answer:
            assert trio.current_time() - began == pytest.approx(90)
            assert answer.headers["content-type"] == OBJECT
        call = legacy.request("tools/call", {"name": "silent_call", "arguments": silence})
        async with legacy.post(call) as streamed:
            assert trio.current_time() - began == pytest.approx(90)
            await legacy.read(streamed)
            assert trio.current_time() - began == pytest.approx(180)
        assert streamed.comments == []


async def test_a_stream_that_pauses_is_kept_alive(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=1) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "progress", {"steps": 2, "step_ms": 3500}, **TOKEN)) as answer:
            raw = (await answer.body()).decode()
        kinds = [block.partition(":")[0] or "comment" for block in raw.split("\n\n")[:-1]]
        assert kinds == [*["comment"] * 2, "data", *["comment"] * 3, "data", "data"]


# A reader that is slow, or does not read at all.


class SlowReader:
    """An HTTP client whose socket takes nothing before `reads` is set."""

    def __init__(self, client: Modern, message: dict[str, Any]) -> None:
        self.reads = trio.Event()
        self.gone = trio.Event()
        self.ended = trio.Event()
        self.body = b""
        self._client = client
        self._message = message
        self._sent = False

    async def run(self) -> None:
        scope = http_scope("POST", self._client.target, self._client.headers(self._message))
        await self._client.app(scope, self._receive, self._send)
        self.ended.set()

    async def _receive(self) -> Any:
        if self._sent:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        self._sent = True
        return {"type": "http.request", "body": json.dumps(self._message).encode(), "more_body": False}

    async def _send(self, event: Any) -> None:
        if event["type"] == "http.response.body":
            await self.reads.wait()
            self.body += event["body"]

    def messages(self) -> list[Any]:
        return [json.loads(block.removeprefix("data: ")) for block in self.body.decode().split("\n\n")[:-1]]


async def test_a_call_is_not_held_up_by_a_reader_that_does_not_read(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        reader = SlowReader(client, tool_call(client, "flood", **TOKEN))
        nursery.start_soon(reader.run)
        await trio.sleep(6)
        record = probe.record()
        assert (record["outcome"], record["emitted"], record["delivered"]) == ("completed", 100, 0)
        assert record["duration_ms"] == pytest.approx(5000, abs=1)
        reader.reads.set()
        await reader.ended.wait()
        assert steps(reader.messages()) == [*range(1, 101), None]
        assert probe.record()["delivered"] == 100


async def test_a_reader_that_falls_behind_the_buffer_loses_the_stream_and_with_it_the_call(
    autojump_clock: MockClock,
) -> None:
    """A stream with a hole would be a lie; and nothing of this era can be read again."""
    async with running(toolsets=[CUSTOM], replay_messages=8) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        reader = SlowReader(client, tool_call(client, "flood", **TOKEN))
        nursery.start_soon(reader.run)
        await trio.sleep(2)
        reader.reads.set()
        await reader.ended.wait()
        assert steps(reader.messages()) == [1]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"]) == ("disconnected", "disconnect")
        assert record["cancel_reason"] == "the client read too slowly: messages were lost before it got them"
        assert record["steps_done"] == pytest.approx(40, abs=1)
        assert record["answered"] is False
        (closed,) = probe.events("http.closed")
        assert (closed["by"].partition(":")[0], closed["messages"]) == ("overflow", 1)
        assert engine_tasks() == SERVICES


async def test_a_reader_that_falls_behind_at_the_end_loses_the_rest(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], replay_messages=8) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        reader = SlowReader(client, tool_call(client, "flood", **TOKEN))
        nursery.start_soon(reader.run)
        await trio.sleep(10)
        reader.reads.set()
        await reader.ended.wait()
        assert steps(reader.messages()) == [1]
        assert (probe.record()["outcome"], probe.record()["answered"]) == ("completed", True)
        (closed,) = probe.events("http.closed")
        assert (closed["by"].partition(":")[0], closed["messages"]) == ("overflow", 1), "the log tells what was lost"


async def test_a_slow_reader_holds_up_nobody_else(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        reader = SlowReader(client, tool_call(client, "flood", **TOKEN))
        nursery.start_soon(reader.run)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        async with client.post(tool_call(client, "flood", **TOKEN)) as answer:
            assert len(await heard(client, answer)) == 101
        assert trio.current_time() - began == pytest.approx(5)
        reader.gone.set()
        await reader.ended.wait()


@pytest.mark.parametrize("when_s", [1, 10], ids=["while the call runs", "when its answer waits"])
@pytest.mark.parametrize("token", [TOKEN, {}], ids=["stream", "one object"])
async def test_a_reader_that_never_reads_and_goes_leaves_nothing_behind(
    when_s: int, token: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with running(toolsets=[CUSTOM]) as probe, trio.open_nursery() as nursery:
        client = probe.modern()
        reader = SlowReader(client, tool_call(client, "flood", **token))
        nursery.start_soon(reader.run)
        await trio.sleep(when_s)
        reader.gone.set()
        if when_s == 10 and not token:
            # An answer in one piece is not watched: the socket says when it has failed. Here it gets through.
            reader.reads.set()
        await reader.ended.wait()
        await wait_all_tasks_blocked()
        assert engine_tasks() == SERVICES
        assert probe.record()["outcome"] == ("disconnected" if when_s == 1 else "completed")
        assert [event["effect"] for event in probe.events("call.cancelled")] == ([True] if when_s == 1 else [])
