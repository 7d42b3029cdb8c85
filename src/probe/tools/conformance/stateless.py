"""Fixtures that show what a request without a session carries with it: capabilities, log level, subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import ListKind, ToolResult, content, text
from ...wire.revisions import V2026_07_28
from ..shared import probe_tool
from .questions import entered, form

_PAUSE_S: Final = 0.05


def _sampling_is_declared(_: Mapping[str, Any]) -> ToolResult:
    return content([text("The request declares sampling.")])


async def _ask_on_a_stream(context: ToolContext) -> ToolResult:
    """Begin the stream with progress, so that a question on it would be seen."""
    context.report_progress(1, 2, "Before the question")
    await context.sleep(_PAUSE_S)
    answer = await context.elicit("How many?", form(count={"type": "integer", "title": "Count"}), key="count")
    context.report_progress(2, 2, "After the answer")
    return content([text(f"Count: {entered(answer, 'count', int)}")])


async def _log(context: ToolContext) -> ToolResult:
    context.log("info", "The work begins")
    await context.sleep(_PAUSE_S)
    context.log("info", "The work ends")
    return content([text("Two log messages were sent if the request asks for level info or below.")])


async def _change_tools(context: ToolContext) -> ToolResult:
    return _announce(context, "tools")


async def _change_prompts(context: ToolContext) -> ToolResult:
    return _announce(context, "prompts")


def _announce(context: ToolContext, changed: ListKind) -> ToolResult:
    # The lists stay as they are: the suite compares them before and after.
    context.announce(changed)
    return content([text(f"A change of the list of {changed} was announced; the list is what it was.")])


TOOLS = (
    probe_tool(
        name="test_missing_capability",
        title="Missing capability",
        exercises="error -32021 for a client without sampling; nothing is asked",
        shows="what is missing, or the result",
        description=(
            "Needs a client with sampling, but asks it nothing. Look for: error -32021 that names sampling if your "
            "client does not declare it."
        ),
        run=_sampling_is_declared,
        requires=("sampling",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_streaming_elicitation",
        title="Question on a stream",
        exercises="progress, then an `InputRequiredResult`; no request on the stream",
        shows="a form",
        description=(
            "Reports progress and then asks for a number. Look for: a form, and no request from the server on the "
            "stream of the response."
        ),
        run=_ask_on_a_stream,
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_logging_tool",
        title="Logging on request",
        exercises="log messages only where the request names a level",
        shows="two messages, or none without a level",
        description=(
            "Sends two log messages of level info if the request names a log level that lets them through. Look for: "
            "both, or none without a level."
        ),
        run=_log,
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_trigger_tool_change",
        title="Change of the tools",
        exercises="`notifications/tools/list_changed` on subscriptions; nothing really changes",
        shows="the list asked for again",
        description=(
            "Announces that the list of tools has changed, though it has not. Look for: your client asking for the "
            "list again."
        ),
        run=_change_tools,
        announces=("tools",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_trigger_prompt_change",
        title="Change of the prompts",
        exercises="`notifications/prompts/list_changed`, likewise",
        shows="the list asked for again",
        description=(
            "Announces that the list of prompts has changed, though it has not. Look for: your client asking for the "
            "list again."
        ),
        run=_change_prompts,
        announces=("prompts",),
        since=V2026_07_28,
    ),
)
