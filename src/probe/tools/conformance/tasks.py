"""Fixtures for the tasks extension of 2026-07-28."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import (
    ArgumentsError,
    Text,
    ToolResult,
    WorkCancelledError,
    content,
    failure,
    shown,
    text,
)
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json
from ...wire.revisions import V2026_07_28
from ..shared import probe_tool
from .questions import NAME, entered, form, greeting, question

_MAX_S: Final = 120
"""Seconds: the longest work of `cancellable_task` in toolset `probe`."""

_MAX_LABEL: Final = 100
_JOB_S: Final = 1.0
"""Seconds from the handle to the end: a client polls at least once meanwhile."""

_CONFIRM: Final[Json] = {"type": "boolean", "title": "Confirm", "default": False}

_SLOW_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "seconds": {
            "type": "number",
            "minimum": 0,
            "maximum": _MAX_S,
            "default": 1,
            "description": "How long to compute, in seconds",
        },
        "label": {"type": "string", "maxLength": _MAX_LABEL, "description": "A word for the result"},
    },
    "additionalProperties": False,
}


def _greet(arguments: Mapping[str, Any]) -> ToolResult:
    return content([text(f"Hello, {arguments['name']}!")])


def _check_slow(arguments: Mapping[str, Any]) -> None:
    """Raise `ArgumentsError` about the first argument of `slow_compute` at fault."""
    for name, value in arguments.items():
        if name not in _SLOW_SCHEMA["properties"]:
            raise ArgumentsError(f"unknown parameter {shown(name)}: it takes seconds, label")
        if name == "seconds" and not _is_duration(value):
            raise ArgumentsError(f"seconds must be a number from 0 to {_MAX_S}, got {shown(value)}")
        if name == "label" and not (isinstance(value, str) and len(value) <= _MAX_LABEL):
            raise ArgumentsError(f"label must be a string of at most {_MAX_LABEL} characters, got {shown(value)}")


def _is_duration(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MAX_S


async def _slow_compute(context: ToolContext) -> ToolResult:
    seconds, label = context.arguments.get("seconds", 1), context.arguments.get("label")
    done: float = 0
    while done < seconds:
        step = min(1, seconds - done)
        await context.sleep(step)
        done += step
        context.report_progress(done, seconds, f"Computed for {done:g}s of {seconds:g}s")
    named = "" if label is None else f" {label}"
    return content([text(f"Computed{named} for {seconds:g}s")])


async def _failing_job(context: ToolContext) -> ToolResult:
    await context.sleep(_JOB_S)
    return failure("The job failed, as it always does")


async def _protocol_error_job(context: ToolContext) -> NoReturn:
    await context.sleep(_JOB_S)
    raise McpError(Code.INTERNAL_ERROR, "The job broke, as it always does")


async def _confirm_delete(context: ToolContext) -> ToolResult:
    filename = context.arguments["filename"]
    answer = await context.elicit(f"Delete {filename}?", form(confirm=_CONFIRM), key="confirm")
    if answer.get("action") in ("decline", "cancel"):
        raise WorkCancelledError(f"Cancelled: the question whether to delete {filename} was not answered")
    confirmed = entered(answer, "confirm", bool)
    if confirmed is None:
        return failure(f"There is no confirmation in the answer: {shown(answer)}")
    return content([text(f"{'Deleted' if confirmed else 'Kept'} {filename} (a pretence: no file was touched)")])


async def _multi_input(context: ToolContext) -> ToolResult:
    asks = {"name": question("What is your name?", name=NAME), "confirm": question("Go on?", confirm=_CONFIRM)}
    answers = await context.ask(asks)
    return content([text(f"{key}: {shown(answer)}") for key, answer in answers.items()])


async def _greet_later(context: ToolContext) -> ToolResult:
    await context.sleep(_JOB_S)
    return greeting(context.answers["user_name"])


TOOLS = (
    probe_tool(
        name="greet",
        title="Greeting",
        exercises="a call that is never a task",
        shows="the greeting",
        description="Greets at once, and is never a task. Look for: the greeting.",
        run=_greet,
        params=(Text("name", "Whom to greet"),),
        since=V2026_07_28,
    ),
    probe_tool(
        name="slow_compute",
        title="Slow computation",
        exercises="a task with the tasks extension, a call with progress without it",
        shows="its status each second, a way to cancel it",
        description=(
            "Works for a while: a task if your client has the tasks extension, else a call with progress. Look for: "
            "its status each second, a way to cancel it, and the result."
        ),
        run=_slow_compute,
        task_support="optional",
        input_schema=_SLOW_SCHEMA,
        check=_check_slow,
        since=V2026_07_28,
    ),
    probe_tool(
        name="failing_job",
        title="Job with a tool error",
        exercises="a task that completes with a tool error",
        shows="completed, its result marked as an error",
        description=(
            "A task that ends with a tool error (isError). Look for: the status completed, and its result marked as "
            "an error."
        ),
        run=_failing_job,
        task_support="required",
        since=V2026_07_28,
    ),
    probe_tool(
        name="protocol_error_job",
        title="Job with a protocol error",
        exercises="a task that ends failed with a JSON-RPC error",
        shows="failed, and the error",
        description="A task that ends with a JSON-RPC error. Look for: the status failed, and the error.",
        run=_protocol_error_job,
        task_support="required",
        since=V2026_07_28,
    ),
    probe_tool(
        name="confirm_delete",
        title="Deletion to confirm",
        exercises="`inputRequests` of a task; no file is touched",
        shows="that input is wanted; completed, or cancelled when declined",
        description=(
            "A task that asks whether to delete a file, which does not exist. Look for: the status input_required, a "
            "form with one checkbox, and the result."
        ),
        run=_confirm_delete,
        params=(Text("filename", "What to delete; only its name is used"),),
        task_support="required",
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="multi_input",
        title="Two questions at once",
        exercises="two `inputRequests` at once",
        shows="two forms, and that one is left when one is answered",
        description=(
            "A task that asks two things at once. Look for: both forms, and input_required until both are answered."
        ),
        run=_multi_input,
        task_support="required",
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_tool_with_task",
        title="A question, then a task",
        exercises="a question before there is a task",
        shows="a form, then the task, then the name in the result",
        description=(
            "Asks for a name before it becomes a task that greets. Look for: a form before there is a task, and the "
            "name in the result."
        ),
        run=_greet_later,
        task_support="required",
        requires=("elicitation",),
        inputs={"user_name": question("What is your name?", name=NAME)},
        since=V2026_07_28,
    ),
)
