"""Tools that put every kind of message on a stream, when they are told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Choice, ClientRequestError, Integer, Tool, ToolResult, content, structured, text
from probe.tools.catalogue import TOOLSETS
from probe.wire.errors import McpError

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10}
QUESTIONS = ("elicitation", "sampling", "roots")
ANSWERS: Mapping[str, dict[str, Any]] = {
    "elicitation": {"action": "accept", "content": {"name": "Ada"}},
    "sampling": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}},
    "roots": {"roots": [{"uri": "file:///home", "name": "work"}]},
}


async def ask(context: ToolContext) -> ToolResult:
    """Wait, ask so often, and give the last answer."""
    await context.sleep(context.arguments["waitMs"] / 1000)
    answer: dict[str, Any] = {}
    for _ in range(context.arguments["times"]):
        match context.arguments["kind"]:
            case "elicitation":
                answer = dict(await context.elicit("Who?", FORM))
            case "sampling":
                answer = dict(await context.sample(SAMPLING))
            case _:
                answer = dict(await context.list_roots())
    return structured({"heard": answer})


async def ask_and_fail(context: ToolContext) -> ToolResult:
    """Wait, ask, and answer with an error of JSON-RPC, whatever the client says."""
    await context.sleep(context.arguments["waitMs"] / 1000)
    try:
        await context.elicit("Who?", FORM)
    except ClientRequestError as error:
        raise McpError(4712, "nobody answered") from error
    raise McpError(4711, "an answer, and still wrong")


async def fail(context: ToolContext) -> ToolResult:
    await context.sleep(context.arguments["waitMs"] / 1000)
    raise McpError(4711, "very wrong", {"why": ["a", 1, None]})


async def shout(context: ToolContext) -> ToolResult:
    """Log messages, one per second, each of so many bytes."""
    for number in range(context.arguments["times"]):
        await context.sleep(context.arguments["waitMs"] / 1000)
        context.log("info", f"{number:6}" + "x" * (context.arguments["bytes"] - 6))
    return content([text("done")])


async def stubborn(context: ToolContext) -> ToolResult:
    """Wait; cancelled, clean up for five seconds, and go on talking meanwhile."""
    try:
        await context.sleep(25)
    finally:
        with trio.CancelScope(shield=True):
            for _ in range(5):
                await trio.sleep(1)
                context.log("info", "nobody should hear this")
                context.report_progress(1, 2)
    return content([text("slept")])


_WAIT = Integer("waitMs", 0, 60_000, 1000, "how long first")
_TIMES = Integer("times", 1, 100, 1, "how often")
_SPEAKING = (
    (ask, (_WAIT, _TIMES, Choice("kind", QUESTIONS, "elicitation", "what"))),
    (ask_and_fail, (_WAIT,)),
    (fail, (_WAIT,)),
    (shout, (_WAIT, _TIMES, Integer("bytes", 6, 1_000_000, 1000, "how long a message is"))),
    (stubborn, ()),
)
SPEAKING = Toolset(
    "speaking",
    tuple(
        Tool(name=run.__name__, title="T", description="D", run=run, params=params, asks_client=run is ask)
        for run, params in _SPEAKING
    ),
)
ALL = (*TOOLSETS, SPEAKING)
SLOW = {"steps": 4, "step_ms": 1000}
"""The arguments of `progress` for one message per second, and the result with the last of them."""
