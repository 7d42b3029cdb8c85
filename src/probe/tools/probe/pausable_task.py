"""A task that stops half-way and asks a person whether to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.catalogue.params import ArgumentsError, Integer, shown
from ...engine.catalogue.tool import Tool, ToolContext, ToolFailureError, ToolResult, WorkCancelledError, structured
from ...wire.jsonrpc import Json
from ..shared import READ_ONLY, item_message, output

ITEM_S = 0.2
"""Seconds of work per item: 50 items stay below the time a person likes to watch."""

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


def check(arguments: Mapping[str, Any]) -> None:
    """Refuse a pause that would come after the work. Raises `ArgumentsError`."""
    pause, count = arguments["pauseAfterItem"], arguments["itemCount"]
    if pause >= count:
        raise ArgumentsError(
            f"pauseAfterItem must be less than itemCount, got pauseAfterItem {pause} and itemCount {count}"
        )


async def run(context: ToolContext) -> ToolResult:
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

    Raises `WorkCancelledError` when not, saying how that was expressed, and `ToolFailureError` for an answer that does
    not fit the form. A form sent back without its field means the default.
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


TOOL = Tool(
    name="pausable_task",
    title="Pausable task",
    exercises="`input_required` and a form",
    shows="that input is wanted, a checkbox that is already ticked, completed or cancelled by the answer",
    description=(
        "A task that pauses after an item and asks whether to continue. Look for: the status input_required, a form "
        "with one checkbox, and completed or cancelled according to the answer. Needs a client with elicitation."
    ),
    run=run,
    steps=lambda arguments: arguments["itemCount"],
    params=(
        Integer("itemCount", 1, 50, 10, "How many items to process"),
        Integer("pauseAfterItem", 1, 49, 5, "After which item to ask; less than itemCount"),
    ),
    output_schema=output(processedItems={"type": "integer"}, pausedAt={"type": "integer"}),
    annotations=READ_ONLY,
    task_support="required",
    requires=("elicitation",),
    check=check,
)
