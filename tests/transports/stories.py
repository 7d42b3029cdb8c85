"""What the stories of both eras share: their registers, the tools there are, and arguments that do not fit."""

from __future__ import annotations

import hashlib
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


# Stories of both eras.


def refused(name: str) -> Any:
    async def tell(client: Speaker) -> None:
        for arguments in misfits(SERVED[name]):
            answer = await client.tool(name, arguments)
            assert "error" in answer or answer["result"]["isError"], (arguments, answer)

    return tell


async def byte_for_byte(client: Speaker) -> list[str]:
    """Not only the same values: the same bytes."""
    digests = []
    for name, arguments in (("long_output", {"blocks": 4, "chars": 65536}), ("chatty", {})):
        answer = await client.tool(name, arguments, id="the same id everywhere")
        assert not answer["result"].get("isError", False)
        digests.append(hashlib.sha256(client.raw).hexdigest())
    return digests


async def a_cancelled_call(client: Speaker) -> None:
    """The first step has been reported; the second never is."""
    params = {"name": "progress", "arguments": {"steps": 100, "step_ms": 1000}}
    id = await client.say(client.request("tools/call", params, token="cancelled"))
    await client.told("notifications/progress", progressToken="cancelled")
    await client.cancel(id)
    await client.tool("simple_tool", {"delayMs": 1500})
    assert id not in [message.get("id") for message in client.heard if "method" not in message]


async def completions(client: Speaker) -> None:
    prompt, template = {"type": "ref/prompt", "name": "headlines"}, {"type": "ref/resource", "uri": "probe://nothing"}
    for value, count in (("19", 100), ("", 100), ("1969", 1), ("x", 0)):
        answer = await client.ask("completion/complete", {"ref": prompt, "argument": {"name": "year", "value": value}})
        assert len(answer["result"]["completion"]["values"]) == count
    squares = {"type": "ref/resource", "uri": "probe://squares/{number}"}
    await client.ask("completion/complete", {"ref": squares, "argument": {"name": "number", "value": "7"}})
    for ref, name in ((template, "number"), (prompt, "no_such_argument")):
        answer = await client.ask("completion/complete", {"ref": ref, "argument": {"name": name, "value": ""}})
        assert code(answer) == -32602
