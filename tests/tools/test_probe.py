"""Toolset `probe`: exact texts, what is reported when, and how each tool ends."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.catalogue.tool import ArgumentsError, ClientRequestError, Tool, ToolFailureError, WorkCancelledError
from probe.tools import probe
from probe.wire.errors import Code, McpError
from probe.wire.jsonrpc import Json, encode

from .fakes import FakeContext, call, texts


def structure(result: Json) -> Any:
    """The structured content, which must stand as JSON in the only text block too."""
    assert texts(result) == [encode(result["structuredContent"]).decode()]
    return result["structuredContent"]


@pytest.mark.parametrize("delay_ms", [0, 250, 5000])
async def test_simple_tool_waits_and_says_how_long(autojump_clock: MockClock, delay_ms: int) -> None:
    before = trio.current_time()
    result = await call(probe.SIMPLE_TOOL, {"delayMs": delay_ms})
    assert structure(result) == {"message": f"Completed after {delay_ms}ms"}
    assert trio.current_time() - before == pytest.approx(delay_ms / 1000)


async def test_simple_tool_can_be_cancelled_while_it_waits(autojump_clock: MockClock) -> None:
    before = trio.current_time()
    with trio.move_on_after(1) as scope:
        await call(probe.SIMPLE_TOOL, {"delayMs": 5000})
    assert scope.cancelled_caught
    assert trio.current_time() - before == pytest.approx(1)


async def test_sync_with_progress_reports_each_item_after_its_work(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(probe.SYNC_WITH_PROGRESS, {"itemCount": 3, "delayPerItemMs": 40}, context)
    assert structure(result) == {"processedItems": 3}
    assert context.events == [
        ("sleep", 0.04),
        ("progress", 1, 3, "Processing item 1 of 3"),
        ("sleep", 0.04),
        ("progress", 2, 3, "Processing item 2 of 3"),
        ("sleep", 0.04),
        ("progress", 3, 3, "Processing item 3 of 3"),
    ]


async def test_sync_with_progress_leaves_out_the_total_in_indeterminate_mode(autojump_clock: MockClock) -> None:
    context = FakeContext()
    await call(probe.SYNC_WITH_PROGRESS, {"itemCount": 2, "mode": "indeterminate"}, context)
    assert context.of("progress") == [(1, None, "Processing item 1..."), (2, None, "Processing item 2...")]


async def test_pure_task_waits_and_notifies_of_nothing(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(probe.PURE_TASK, context=context)
    assert structure(result) == {"message": "Completed after 5000ms"}
    assert context.events == [("sleep", 5.0)]


async def test_task_with_progress_interleaves_status_and_progress(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(probe.TASK_WITH_PROGRESS, {"itemCount": 2}, context)
    assert structure(result) == {"processedItems": 2}
    assert context.events == [
        ("status", "Starting item 1 of 2"),
        ("sleep", 0.5),
        ("progress", 1, 2, "Processing item 1 of 2"),
        ("status", "Starting item 2 of 2"),
        ("sleep", 0.5),
        ("progress", 2, 2, "Processing item 2 of 2"),
    ]


async def test_cancellable_task_reports_every_second(autojump_clock: MockClock) -> None:
    context = FakeContext()
    result = await call(probe.CANCELLABLE_TASK, context=context)
    assert structure(result) == {"message": "Completed after 60000ms"}
    assert context.of("sleep") == [(1.0,)] * 60
    assert context.of("progress") == [(n, 60, f"Running... {n}s / 60s") for n in range(1, 61)]
    assert context.of("status") == [("Running for 60s unless cancelled",)]
    assert context.events[1:3] == [("sleep", 1.0), ("progress", 1, 60, "Running... 1s / 60s")]


async def test_cancellable_task_sleeps_the_last_part_of_a_second_too(autojump_clock: MockClock) -> None:
    context = FakeContext()
    before = trio.current_time()
    result = await call(probe.CANCELLABLE_TASK, {"durationMs": 10_250}, context)
    assert structure(result) == {"message": "Completed after 10250ms"}
    assert trio.current_time() - before == pytest.approx(10.25)
    assert context.of("progress")[-2:] == [
        (10, 10.25, "Running... 10s / 10.25s"),
        (10.25, 10.25, "Running... 10.25s / 10.25s"),
    ]


@pytest.mark.parametrize("duration_ms", [10_001, 99_999, 119_999])
async def test_cancellable_task_shows_milliseconds_unrounded(autojump_clock: MockClock, duration_ms: int) -> None:
    context = FakeContext()
    await call(probe.CANCELLABLE_TASK, {"durationMs": duration_ms}, context)
    last = context.of("progress")[-1]
    assert last == (duration_ms / 1000, duration_ms / 1000, f"Running... {duration_ms / 1000}s / {duration_ms / 1000}s")


async def test_cancellable_task_stops_where_it_is_cancelled(autojump_clock: MockClock) -> None:
    context = FakeContext()
    with trio.move_on_after(3.5) as scope:
        await call(probe.CANCELLABLE_TASK, context=context)
    assert scope.cancelled_caught
    assert [step for step, _, _ in context.of("progress")] == [1, 2, 3]


@pytest.mark.parametrize("count", range(2, 11))
async def test_multi_stage_task_names_its_stages(autojump_clock: MockClock, count: int) -> None:
    context = FakeContext()
    result = await call(probe.MULTI_STAGE_TASK, {"stageCount": count}, context)
    names = structure(result)["stagesCompleted"]
    assert len(set(names)) == len(names) == count
    assert (names[0], names[-1]) == ("Initializing", "Finalizing")
    expected: list[tuple[Any, ...]] = []
    for number, name in enumerate(names, 1):
        message = f"Stage {number}: {name}"
        expected += [("status", message), ("sleep", 1.0), ("progress", number, count, message)]
    assert context.events == expected


async def test_multi_stage_task_has_processing_between_by_default(autojump_clock: MockClock) -> None:
    result = await call(probe.MULTI_STAGE_TASK)
    assert result["structuredContent"] == {"stagesCompleted": ["Initializing", "Processing", "Finalizing"]}


@pytest.mark.parametrize(
    ("kind", "code"),
    [("internal", -32603), ("validation", -32602), ("timeout", Code.SIMULATED_TIMEOUT)],
)
async def test_failing_task_ends_with_the_chosen_error(autojump_clock: MockClock, kind: str, code: int) -> None:
    before = trio.current_time()
    with pytest.raises(McpError) as caught:
        await call(probe.FAILING_TASK, {"errorCode": kind, "failAfterMs": 1500})
    assert caught.value.body() == {"code": code, "message": f"Simulated {kind} error", "data": {"code": kind}}
    assert trio.current_time() - before == pytest.approx(1.5)


def test_the_simulated_timeout_has_a_code_outside_the_reserved_range() -> None:
    assert not -32768 <= Code.SIMULATED_TIMEOUT <= -32000


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"continue": True}},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": None},
        {"action": "accept"},
    ],
)
async def test_pausable_task_asks_once_and_goes_on(autojump_clock: MockClock, answer: Json) -> None:
    context = FakeContext(answer=answer)
    result = await call(probe.PAUSABLE_TASK, {"itemCount": 3, "pauseAfterItem": 2}, context)
    assert structure(result) == {"processedItems": 3, "pausedAt": 2}
    assert [event for event in context.events if event[0] not in ("sleep", "elicit")] == [
        ("status", "Processing 3 items, pausing after item 2"),
        ("progress", 1, 3, "Processing item 1 of 3"),
        ("progress", 2, 3, "Processing item 2 of 3"),
        ("status", "Resumed after item 2 of 3"),
        ("progress", 3, 3, "Processing item 3 of 3"),
    ]
    asked_after = context.events.index(("progress", 2, 3, "Processing item 2 of 3")) + 1
    assert [index for index, event in enumerate(context.events) if event[0] == "elicit"] == [asked_after]
    assert context.slept == pytest.approx(3 * probe.ITEM_S)


async def test_pausable_task_asks_by_a_form_with_one_checkbox(autojump_clock: MockClock) -> None:
    context = FakeContext(answer={"action": "accept"})
    await call(probe.PAUSABLE_TASK, context=context)
    ((message, form),) = context.of("elicit")
    assert message == "Processed 5 of 10 items. Continue?"
    assert list(form["properties"]) == ["continue"]
    box = form["properties"]["continue"]
    assert (form["type"], box["type"], box["default"], bool(box["title"])) == ("object", "boolean", True, True)
    assert "required" not in form


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"action": "decline"}, "Cancelled after item 5 of 10: the request to continue was declined"),
        ({"action": "cancel"}, "Cancelled after item 5 of 10: the request to continue was dismissed"),
        (
            {"action": "accept", "content": {"continue": False}},
            "Cancelled after item 5 of 10: the answer was not to continue",
        ),
    ],
)
async def test_pausable_task_gives_up_when_told_so(autojump_clock: MockClock, answer: Json, message: str) -> None:
    context = FakeContext(answer=answer)
    with pytest.raises(WorkCancelledError) as caught:
        await call(probe.PAUSABLE_TASK, context=context)
    assert str(caught.value) == message
    assert len(context.of("progress")) == 5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"action": "accept", "content": {"continue": "yes"}}, 'continue must be a boolean, got "yes"'),
        ({"action": "accept", "content": {"continue": 1}}, "continue must be a boolean, got 1"),
        ({"action": "accept", "content": {"continue": None}}, "continue must be a boolean, got null"),
        ({"action": "accept", "content": [True]}, "content must be an object, got [true]"),
        ({"action": "accept", "content": ""}, 'content must be an object, got ""'),
        ({"action": "maybe"}, 'action must be accept, decline or cancel, got "maybe"'),
        ({}, "action must be accept, decline or cancel, got null"),
    ],
)
async def test_pausable_task_fails_on_a_malformed_answer(autojump_clock: MockClock, answer: Json, message: str) -> None:
    with pytest.raises(ToolFailureError) as caught:
        await call(probe.PAUSABLE_TASK, context=FakeContext(answer=answer))
    assert str(caught.value) == f"The answer is malformed: {message}"


async def test_pausable_task_passes_on_that_nobody_answered(autojump_clock: MockClock) -> None:
    with pytest.raises(ClientRequestError, match="nobody"):
        await call(probe.PAUSABLE_TASK, context=FakeContext(answer=ClientRequestError("nobody")))


@pytest.mark.parametrize(("count", "pause"), [(5, 5), (5, 6), (1, 1), (49, 49)])
def test_pausable_task_refuses_a_pause_after_the_work(count: int, pause: int) -> None:
    with pytest.raises(ArgumentsError) as caught:
        probe.PAUSABLE_TASK.read_arguments({"itemCount": count, "pauseAfterItem": pause})
    assert str(caught.value) == (
        f"pauseAfterItem must be less than itemCount, got pauseAfterItem {pause} and itemCount {count}"
    )


def test_pausable_task_judges_defaults_and_sent_values_together() -> None:
    with pytest.raises(ArgumentsError, match="got pauseAfterItem 5 and itemCount 5"):
        probe.PAUSABLE_TASK.read_arguments({"itemCount": 5})
    assert probe.PAUSABLE_TASK.read_arguments({"itemCount": 6}) == {"itemCount": 6, "pauseAfterItem": 5}


_SAID: Json = {"type": "text", "text": "Waves arrive, and leave."}
_IMAGE: Json = {"type": "image", "data": "", "mimeType": "image/png"}


@pytest.mark.parametrize("sent", [_SAID, [_SAID], [_IMAGE, _SAID]])
async def test_sampling_demo_returns_the_text_itself(autojump_clock: MockClock, sent: Any) -> None:
    context = FakeContext(answer={"role": "assistant", "content": sent, "model": "m"})
    result = await call(probe.SAMPLING_DEMO, {"theme": "ocean", "style": "one_liner", "maxTokens": 16}, context)
    assert texts(result) == ["Waves arrive, and leave."]
    assert result["structuredContent"] == {"text": "Waves arrive, and leave."}
    ((params,),) = context.of("sample")
    assert params["maxTokens"] == 16
    (message,) = params["messages"]
    assert message["role"] == "user"
    assert "ocean" in message["content"]["text"]


async def test_sampling_demo_asks_for_progress_where_it_is_told_to(autojump_clock: MockClock) -> None:
    context = FakeContext(answer={"role": "assistant", "content": _SAID, "model": "m"})
    await call(probe.SAMPLING_DEMO, {"progress": True}, context)
    assert [rest for _, *rest in context.of("sample")] == [["progress"]]


async def test_sampling_demo_joins_several_blocks(autojump_clock: MockClock) -> None:
    two = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert texts(await call(probe.SAMPLING_DEMO, context=FakeContext(answer={"content": two}))) == ["one\ntwo"]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (_IMAGE, "The client's answer has no text block; it has: image"),
        ([_IMAGE, {"type": "audio"}], "The client's answer has no text block; it has: audio, image"),
        ([], "The client's answer has no text block; it has: nothing"),
        (None, "The client's answer has no text block; it has: nothing"),
        ("plain", "The client's answer has no text block; it has: nothing"),
        ({"type": "text"}, "The client's answer is malformed: a text block without a string in `text`"),
        (
            [_SAID, {"type": "text", "text": 5}],
            "The client's answer is malformed: a text block without a string in `text`",
        ),
    ],
)
async def test_sampling_demo_names_an_answer_without_text(autojump_clock: MockClock, sent: Any, message: str) -> None:
    with pytest.raises(ToolFailureError) as caught:
        await call(probe.SAMPLING_DEMO, context=FakeContext(answer={"content": sent}))
    assert str(caught.value) == message


async def test_sampling_demo_asks_differently_for_each_theme_and_style(autojump_clock: MockClock) -> None:
    prompts = set()
    for theme in ("nature", "space", "ocean", "technology"):
        for style in ("haiku", "limerick", "one_liner"):
            context = FakeContext(answer={"content": _SAID})
            await call(probe.SAMPLING_DEMO, {"theme": theme, "style": style}, context)
            prompts.add(context.of("sample")[0][0]["messages"][0]["content"]["text"])
    assert len(prompts) == 12


@pytest.mark.parametrize(
    ("tool", "requires"),
    [(probe.PAUSABLE_TASK, ("elicitation",)), (probe.SAMPLING_DEMO, ("sampling",)), (probe.SIMPLE_TOOL, ())],
)
def test_tools_that_ask_the_client_name_the_capability(tool: Tool, requires: tuple[str, ...]) -> None:
    assert tool.requires == requires
