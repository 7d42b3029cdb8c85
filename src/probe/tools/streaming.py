"""Toolset `streaming`: what gateways must forward in time, in order and byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.calls.context import ToolContext
from ..engine.catalogue.tool import Integer, ToolResult, content, structured, text
from .shared import MARK, output, probe_tool


async def _progress(context: ToolContext) -> ToolResult:
    steps = context.arguments["steps"]
    for step in range(1, steps + 1):
        await context.sleep(context.arguments["step_ms"] / 1000)
        context.report_progress(step, steps, f"step {step}/{steps}")
    return structured({"steps": steps, "notified": context.notified, "done": True})


PROGRESS = probe_tool(
    name="progress",
    title="Progress",
    exercises="notifications at an even pace, the client's own token; cancellation in between",
    shows="each step in its time; all at once at the end means that something buffers the stream",
    description=(
        "Reports progress at an even pace. Look for: notifications that arrive one by one, step_ms apart, with your "
        "own token; if all come at the end, something between buffers the stream. notified is false without a token."
    ),
    run=_progress,
    steps=lambda arguments: arguments["steps"],
    params=(
        Integer("steps", 1, 100, 5, "How many steps, each with one notification"),
        Integer("step_ms", 0, 5000, 200, "How long each step takes, in milliseconds"),
        MARK,
    ),
    output_schema=output(steps={"type": "integer"}, notified={"type": "boolean"}, done={"type": "boolean"}),
    # 100 steps of 5 s are 500 s; the rest is slack for a busy machine.
    ceiling_s=530.0,
)

_LONGEST = 65536
# Every ten characters end with their count, so the end of a truncated block shows where it was cut.
_RULER = "".join(f"{end:.>10}" for end in range(10, _LONGEST + 10, 10))


def block(number: int, ruler: str) -> str:
    """Block `number`, as long as the ruler."""
    label = f"[block {number}] "
    return (label + ruler[len(label) :])[: len(ruler)]


def _long_output(arguments: Mapping[str, Any]) -> ToolResult:
    """ASCII only, so that a limit in bytes and one in characters cut at the same place."""
    ruler = _RULER[: arguments["chars"]]
    return content([text(block(number, ruler)) for number in range(1, arguments["blocks"] + 1)])


LONG_OUTPUT = probe_tool(
    name="long_output",
    title="Long output",
    exercises="number, order and size of blocks, up to 16.8 MB",
    shows="every block, complete",
    description=(
        "Returns many text blocks of an exact length. Look for: every block there, in order, complete; the last number "
        "in a block says how many characters had come by then."
    ),
    run=_long_output,
    params=(
        Integer("blocks", 1, 256, 3, "How many text blocks"),
        Integer("chars", 1, _LONGEST, 256, "How many characters each block has"),
    ),
)

_BLOCKS = (
    "first block: short",
    "second block: a slightly longer string with multiple words",
    "third block: numbers 1 2 3 4 5",
    "fourth block: unicode; café résumé naïve",
)


def _chatty(_: Mapping[str, Any]) -> ToolResult:
    return content([text(block) for block in _BLOCKS])


CHATTY = probe_tool(
    name="chatty",
    title="Chatty",
    exercises="order of blocks, text beyond ASCII",
    shows="four blocks, the fourth with café résumé naïve",
    description=(
        "Returns four text blocks. Look for: all four, in order, and the accents of the fourth unharmed "
        "(café résumé naïve)."
    ),
    run=_chatty,
)
