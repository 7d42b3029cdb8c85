"""Toolset `probe`: each tool exercises one feature of the protocol by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ..engine.calls.context import ToolContext
from ..engine.catalogue.tool import (
    ArgumentsError,
    Boolean,
    Choice,
    Integer,
    ToolFailureError,
    ToolResult,
    WorkCancelledError,
    content,
    shown,
    structured,
    text,
)
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import Json
from .shared import MARK, item_message, output, probe_tool, sampled_text, sampling_request


async def _simple_tool(context: ToolContext) -> ToolResult:
    delay_ms = context.arguments["delayMs"]
    await context.sleep(delay_ms / 1000)
    return structured({"message": f"Completed after {delay_ms}ms"})


SIMPLE_TOOL = probe_tool(
    name="simple_tool",
    title="Simple tool",
    exercises="a call and its result",
    shows="the message; that the call is running while it waits",
    description=(
        "Waits, then returns a message. Look for: the message in your client, and with a longer delay a sign that the "
        "call is still running."
    ),
    run=_simple_tool,
    params=(Integer("delayMs", 0, 5000, 0, "How long to wait, in milliseconds"), MARK),
    output_schema=output(message={"type": "string"}),
)


async def _sync_with_progress(context: ToolContext) -> ToolResult:
    count, delay_ms = context.arguments["itemCount"], context.arguments["delayPerItemMs"]
    determinate = context.arguments["mode"] == "determinate"
    for item in range(1, count + 1):
        await context.sleep(delay_ms / 1000)
        if determinate:
            context.report_progress(item, count, item_message(item, count))
        else:
            context.report_progress(item, None, f"Processing item {item}...")
    return structured({"processedItems": count})


SYNC_WITH_PROGRESS = probe_tool(
    name="sync_with_progress",
    title="Call with progress",
    exercises="`notifications/progress` without a task",
    shows="a bar that moves with each item; without a total a counter or spinner, never a made-up percentage",
    description=(
        "Processes items and reports progress after each one. Look for: a bar that moves item by item while the call "
        "runs (determinate), or a counter or spinner without a percentage (indeterminate, no total is sent)."
    ),
    run=_sync_with_progress,
    steps=lambda arguments: arguments["itemCount"] if arguments["mode"] == "determinate" else None,
    params=(
        Integer("itemCount", 1, 100, 10, "How many items to process"),
        Integer("delayPerItemMs", 10, 1000, 100, "How long each item takes, in milliseconds"),
        Choice("mode", ("determinate", "indeterminate"), "determinate", "Whether the total is told or left out"),
    ),
    output_schema=output(processedItems={"type": "integer"}),
)

_FORMS: Mapping[str, str] = {
    "haiku": "a haiku",
    "limerick": "a limerick",
    "one_liner": "one witty sentence",
}


async def _sampling_demo(context: ToolContext) -> ToolResult:
    form, theme = _FORMS[context.arguments["style"]], context.arguments["theme"]
    prompt = f"Write {form} about {theme}. Answer with nothing else."
    request = sampling_request(prompt, context.arguments["maxTokens"])
    answer = sampled_text(await context.sample(request, progress=context.arguments["progress"]))
    # Prose for a person, so not the JSON of the structure.
    return {**content([text(answer)]), "structuredContent": {"text": answer}}


SAMPLING_DEMO = probe_tool(
    name="sampling_demo",
    title="Sampling demo",
    exercises="`sampling/createMessage`",
    shows="the prompt for approval, then the text",
    description=(
        "Asks your client for a completion and returns its text. Look for: a request for your approval that shows the "
        "prompt, and the text that the model wrote. Needs a client with sampling."
    ),
    run=_sampling_demo,
    params=(
        Choice("theme", ("nature", "space", "ocean", "technology"), "nature", "What to write about"),
        Choice("style", tuple(_FORMS), "haiku", "What to write"),
        Integer("maxTokens", 16, 256, 64, "The longest answer to ask for, in tokens"),
        Boolean("progress", False, "Ask for progress notifications from your client, too (until 2025-11-25)"),
    ),
    output_schema=output(text={"type": "string"}),
    requires=("sampling",),
    asks_client=True,
)


async def _pure_task(context: ToolContext) -> ToolResult:
    duration_ms = context.arguments["durationMs"]
    await context.sleep(duration_ms / 1000)
    return structured({"message": f"Completed after {duration_ms}ms"})


PURE_TASK = probe_tool(
    name="pure_task",
    title="Plain task",
    exercises="the states of a task and nothing else: no progress, no status message",
    shows="working, then completed, then the result",
    description=(
        "A task that works for a while and completes, without progress. Look for: the handle at once, the status "
        "working, then completed, and the result fetched afterwards."
    ),
    run=_pure_task,
    params=(Integer("durationMs", 1000, 60000, 5000, "How long the task works, in milliseconds"),),
    output_schema=output(message={"type": "string"}),
    task_support="required",
)


async def _task_with_progress(context: ToolContext) -> ToolResult:
    count, delay_ms = context.arguments["itemCount"], context.arguments["delayPerItemMs"]
    for item in range(1, count + 1):
        context.set_status(f"Starting item {item} of {count}")
        await context.sleep(delay_ms / 1000)
        context.report_progress(item, count, item_message(item, count))
    return structured({"processedItems": count})


TASK_WITH_PROGRESS = probe_tool(
    name="task_with_progress",
    title="Task with progress",
    exercises="status messages and progress that alternate",
    shows="both, in order, also after the handle came back",
    description=(
        "A task that processes items; status messages and progress notifications alternate. Look for: both kept "
        "apart and in order, and progress still arriving after the handle came back."
    ),
    run=_task_with_progress,
    steps=lambda arguments: arguments["itemCount"],
    params=(
        Integer("itemCount", 1, 100, 10, "How many items to process"),
        Integer("delayPerItemMs", 10, 1000, 500, "How long each item takes, in milliseconds"),
    ),
    output_schema=output(processedItems={"type": "integer"}),
    task_support="required",
)


def _seconds(milliseconds: int) -> float:
    whole, rest = divmod(milliseconds, 1000)
    return milliseconds / 1000 if rest else whole


async def _cancellable_task(context: ToolContext) -> ToolResult:
    duration_ms = context.arguments["durationMs"]
    total = _seconds(duration_ms)
    context.set_status(f"Running for {total:g}s unless cancelled")
    for before_ms in range(0, duration_ms, 1000):
        now_ms = min(before_ms + 1000, duration_ms)
        await context.sleep((now_ms - before_ms) / 1000)
        elapsed = _seconds(now_ms)
        context.report_progress(elapsed, total, f"Running... {elapsed:g}s / {total:g}s")
    return structured({"message": f"Completed after {duration_ms}ms"})


CANCELLABLE_TASK = probe_tool(
    name="cancellable_task",
    title="Cancellable task",
    exercises="`tasks/cancel`; progress every second",
    shows="a way to cancel, cancelled right after, no progress from then on",
    description=(
        "A long task that reports progress every second. Look for: a way to cancel it, the status cancelled right "
        "after, no further progress, and an error when a finished task is cancelled."
    ),
    run=_cancellable_task,
    steps=lambda arguments: _seconds(arguments["durationMs"]),
    params=(Integer("durationMs", 10000, 120000, 60000, "How long the task works, in milliseconds"),),
    output_schema=output(message={"type": "string"}),
    task_support="required",
)

_BETWEEN = (
    "Processing",
    "Transforming",
    "Enriching",
    "Aggregating",
    "Indexing",
    "Optimizing",
    "Validating",
    "Packaging",
)


def stages(count: int) -> list[str]:
    """The names of `count` stages, 2 to 10, all different."""
    return ["Initializing", *_BETWEEN[: count - 2], "Finalizing"]


async def _multi_stage_task(context: ToolContext) -> ToolResult:
    names = stages(context.arguments["stageCount"])
    for number, name in enumerate(names, 1):
        message = f"Stage {number}: {name}"
        context.set_status(message)
        await context.sleep(context.arguments["msPerStage"] / 1000)
        context.report_progress(number, len(names), message)
    return structured({"stagesCompleted": names})


MULTI_STAGE_TASK = probe_tool(
    name="multi_stage_task",
    title="Task in stages",
    exercises="progress messages that change",
    shows="the name of the stage beside the bar",
    description=(
        "A task that goes through named stages. Look for: the text beside the bar changing with each stage, and the "
        "list of stages in the result."
    ),
    run=_multi_stage_task,
    steps=lambda arguments: arguments["stageCount"],
    params=(
        Integer("stageCount", 2, 10, 3, "How many stages"),
        Integer("msPerStage", 500, 10000, 1000, "How long each stage takes, in milliseconds"),
    ),
    output_schema=output(stagesCompleted={"type": "array", "items": {"type": "string"}}),
    task_support="required",
)

_CODES: Mapping[str, Code] = {
    "timeout": Code.SIMULATED_TIMEOUT,
    "internal": Code.INTERNAL_ERROR,
    "validation": Code.INVALID_PARAMS,
}


async def _failing_task(context: ToolContext) -> NoReturn:
    kind = context.arguments["errorCode"]
    await context.sleep(context.arguments["failAfterMs"] / 1000)
    raise McpError(_CODES[kind], f"Simulated {kind} error", {"code": kind})


FAILING_TASK = probe_tool(
    name="failing_task",
    title="Failing task",
    exercises="a task that ends failed with a JSON-RPC error",
    shows="failed, with the message, as an error and not as a result",
    description=(
        "A task that works for a while and then fails. Look for: the status failed with its message, and the error "
        "itself shown as an error, not as a result."
    ),
    run=_failing_task,
    params=(
        Integer("failAfterMs", 1000, 30000, 2000, "How long the task works before it fails, in milliseconds"),
        Choice("errorCode", tuple(_CODES), "internal", "Which error it ends with"),
    ),
    task_support="required",
)

ITEM_S = 0.2
"""Seconds of work per item: 50 items take no longer than a person likes to watch."""

_FORM: Json = {
    "type": "object",
    "properties": {
        "continue": {
            "type": "boolean",
            "title": "Continue",
            "description": "Whether to process the remaining items",
            "default": True,
        }
    },
}


def _check_pause(arguments: Mapping[str, Any]) -> None:
    """Refuse a pause that would come after the work. Raises `ArgumentsError`."""
    pause, count = arguments["pauseAfterItem"], arguments["itemCount"]
    if pause >= count:
        raise ArgumentsError(
            f"pauseAfterItem must be less than itemCount, got pauseAfterItem {pause} and itemCount {count}"
        )


async def _pausable_task(context: ToolContext) -> ToolResult:
    """Process the items, with the question after item `pauseAfterItem`."""
    count, pause = context.arguments["itemCount"], context.arguments["pauseAfterItem"]
    context.set_status(f"Processing {count} items, pausing after item {pause}")
    await _process(context, range(1, pause + 1))
    answer = await context.elicit(f"Processed {pause} of {count} items. Continue?", _FORM)
    judge(answer, f"after item {pause} of {count}")
    context.set_status(f"Resumed after item {pause} of {count}")
    await _process(context, range(pause + 1, count + 1))
    return structured({"processedItems": count, "pausedAt": pause})


async def _process(context: ToolContext, items: range) -> None:
    count = context.arguments["itemCount"]
    for item in items:
        await context.sleep(ITEM_S)
        context.report_progress(item, count, item_message(item, count))


def judge(answer: Json, where: str) -> None:
    """Return when the person wants to go on.

    Raises `WorkCancelledError` if not, with the way in which that was expressed, and `ToolFailureError` for an answer
    that does not fit the form. A form without its field means the default.
    """
    match answer.get("action"):
        case "accept":
            _judge_form(answer.get("content"), where)
        case "decline":
            raise WorkCancelledError(f"Cancelled {where}: the request to continue was declined")
        case "cancel":
            raise WorkCancelledError(f"Cancelled {where}: the request to continue was dismissed")
        case other:
            raise ToolFailureError(
                f"The answer is malformed: action must be accept, decline or cancel, got {shown(other)}"
            )


def _judge_form(content: Any, where: str) -> None:
    form = {} if content is None else content
    if not isinstance(form, dict):
        raise ToolFailureError(f"The answer is malformed: content must be an object, got {shown(form)}")
    go_on = form.get("continue", True)
    if not isinstance(go_on, bool):
        raise ToolFailureError(f"The answer is malformed: continue must be a boolean, got {shown(go_on)}")
    if not go_on:
        raise WorkCancelledError(f"Cancelled {where}: the answer was not to continue")


PAUSABLE_TASK = probe_tool(
    name="pausable_task",
    title="Pausable task",
    exercises="`input_required` and a form",
    shows="that input is wanted, a checkbox that is already ticked, completed or cancelled by the answer",
    description=(
        "A task that pauses after an item and asks whether to continue. Look for: the status input_required, a form "
        "with one checkbox, and completed or cancelled according to the answer. Needs a client with elicitation."
    ),
    run=_pausable_task,
    steps=lambda arguments: arguments["itemCount"],
    params=(
        Integer("itemCount", 1, 50, 10, "How many items to process"),
        Integer("pauseAfterItem", 1, 49, 5, "After which item to ask; less than itemCount"),
    ),
    output_schema=output(processedItems={"type": "integer"}, pausedAt={"type": "integer"}),
    task_support="required",
    requires=("elicitation",),
    check=_check_pause,
)
