"""What the stories of both eras share: their registers, the tools there are, and arguments that do not fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from probe.engine.catalogue.tool import Tool
from probe.tools.catalogue import DISPATCH, TOOLSETS

from .ports import Json
from .speaker import Speaker

Tell: TypeAlias = Callable[[Any], Awaitable[Any]]
"""A story, told to a client; what it returns has to be the same everywhere, as has everything that was heard."""

SERVED = {tool.name: tool for toolset in TOOLSETS[:4] for tool in toolset.tools}
assert [toolset.name for toolset in TOOLSETS[:4]] == ["probe", "streaming", "features", "dispatch"]
TASKS = [name for name, tool in SERVED.items() if tool.task_support == "required"]
CALLS = [name for name in SERVED if name not in TASKS]
# They take seconds, and their answers tell how many milliseconds; so they are called in virtual time alone.
TIMED = [tool.name for tool in DISPATCH.tools]

# The shortest legal work of each task, and the default.
QUICK: dict[str, Json] = {
    "pure_task": {"durationMs": 1000},
    "task_with_progress": {"itemCount": 3, "delayPerItemMs": 100},
    "multi_stage_task": {"stageCount": 2, "msPerStage": 500},
    "failing_task": {"failAfterMs": 1000},
    "pausable_task": {"itemCount": 3, "pauseAfterItem": 1},
}
TERMINAL = ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Story:
    """One story. A `long` one is told in virtual time alone."""

    name: str
    tell: Tell
    long: bool


@dataclass
class Chapter:
    """Stories that are told one after the other on one connection of an era."""

    name: str
    era: str
    revision: str = "2025-11-25"
    capabilities: Json = field(default_factory=dict)
    stories: list[Story] = field(default_factory=list)

    def story(self, *, long: bool = False) -> Callable[[Tell], Tell]:
        """Add a function as a story."""

        def add(tell: Tell) -> Tell:
            self.add(tell.__name__, tell, long=long)
            return tell

        return add

    def add(self, name: str, tell: Tell, *, long: bool = False) -> None:
        self.stories.append(Story(name, tell, long))


def misfits(tool: Tool) -> list[Json]:
    """Arguments that a tool refuses: each parameter beyond its bounds, of another type, and one that does not exist."""
    found: list[Json] = [{"no_such_parameter": 1}]
    for name, schema in tool.describe()["inputSchema"].get("properties", {}).items():
        match schema["type"]:
            case "integer":
                found += [{name: schema["maximum"] + 1}, {name: schema["minimum"] - 1}, {name: "many"}]
            case "string":
                beyond = "x" * (schema["maxLength"] + 1) if "maxLength" in schema else "no such value"
                found += [{name: beyond}, {name: 7}]
            case "boolean":
                found.append({name: "perhaps"})
    return found


def code(answer: Json) -> int:
    return int(answer["error"]["code"])


async def lists(client: Speaker) -> list[int]:
    """A story of both eras: every list to its last page, and a cursor that nobody gave."""
    counts = []
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        params: Json = {}
        counts.append(0)
        while True:
            result = (await client.ask(method, params))["result"]
            counts[-1] += sum(len(value) for value in result.values() if isinstance(value, list))
            if "nextCursor" not in result:
                break
            params = {"cursor": result["nextCursor"]}
    assert counts[1] > 50, "more than one page"
    assert code(await client.ask("resources/list", {"cursor": "no such cursor"})) == -32602
    return counts
