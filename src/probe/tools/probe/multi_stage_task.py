"""A task with stages: its progress messages name them."""

from __future__ import annotations

from ...engine.catalogue.params import Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ..shared import READ_ONLY, output

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


async def run(context: ToolContext) -> ToolResult:
    """Go through the stages: the status changes when one starts, progress follows when it is done."""
    names = stages(context.arguments["stageCount"])
    for number, name in enumerate(names, 1):
        message = f"Stage {number}: {name}"
        context.set_status(message)
        await context.sleep(context.arguments["msPerStage"] / 1000)
        context.report_progress(number, len(names), message)
    return structured({"stagesCompleted": names})


TOOL = Tool(
    name="multi_stage_task",
    title="Task in stages",
    exercises="progress messages that change",
    shows="the name of the stage beside the bar",
    description=(
        "A task that goes through named stages. Look for: the text beside the bar changing with each stage, and the "
        "list of stages in the result."
    ),
    run=run,
    steps=lambda arguments: arguments["stageCount"],
    params=(
        Integer("stageCount", 2, 10, 3, "How many stages"),
        Integer("msPerStage", 500, 10000, 1000, "How long each stage takes, in milliseconds"),
    ),
    output_schema=output(stagesCompleted={"type": "array", "items": {"type": "string"}}),
    annotations=READ_ONLY,
    task_support="required",
)
