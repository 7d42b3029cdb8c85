"""A toolset whose tools, prompts and resources ask their client; what they heard is their result. And answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Answers, Argument, Prompt, Resource, Toolset
from probe.engine.catalogue.tool import Ask, Integer, Tool, ToolResult, structured, text


def _form(field: str) -> Ask:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return Ask("elicitation/create", {"message": f"Your {field}?", "requestedSchema": schema})


_PROMPT = {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}
ASKS: Mapping[str, Ask] = {
    "name": _form("name"),
    "capital": Ask("sampling/createMessage", {"messages": [_PROMPT], "maxTokens": 16}),
    "roots": Ask("roots/list", {}),
}
ANSWERS: Mapping[str, dict[str, Any]] = {
    "name": {"action": "accept", "content": {"name": "Ångström"}},
    "capital": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}},
    "roots": {"roots": [{"uri": "file:///test"}]},
}
OTHER_ANSWERS: Mapping[str, dict[str, Any]] = {
    "name": {"action": "decline"},
    "capital": {"role": "assistant", "model": "other", "content": {"type": "text", "text": "Rome"}},
    "roots": {"roots": []},
}
MISFITS: Mapping[str, Any] = {"name": 12345, "capital": {"role": "assistant"}, "roots": {"roots": "file:///test"}}
STEPS = (("name", "capital"), ("roots",))
AT_ONCE = (("name", "capital"),)


async def _steps(context: ToolContext) -> ToolResult:
    heard: dict[str, Any] = {}
    for keys in STEPS:
        heard |= await context.ask({key: ASKS[key] for key in keys})
    return structured({"heard": heard, "resumed": context.resumed})


def _messages(arguments: Mapping[str, str], answers: Answers) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text(json.dumps(answers))}]


def _resource(name: str) -> Resource:
    inputs = {key: ASKS[key] for key in AT_ONCE[0]}
    return Resource(f"q://{name}", name, name, name, "application/json", _contents, inputs=inputs)


def _contents(now: float, answers: Answers) -> dict[str, Any]:
    return {"text": json.dumps(answers)}


def _tool(name: str) -> Tool:
    return Tool(name=name, title=name, description=name, run=_steps, params=(Integer("n", 0, 9, 0, "Any number"),))


def _prompt(name: str) -> Prompt:
    arguments = (Argument("tone", "Any", required=False),)
    return Prompt(name, name, name, _messages, arguments, {key: ASKS[key] for key in AT_ONCE[0]})


QUESTIONS = Toolset(
    "questions",
    (_tool("steps"), _tool("more"), _tool("ask")),
    (_resource("one"), _resource("two")),
    (),
    (_prompt("ask"), _prompt("other"), _prompt("steps"), _prompt("more")),
)


@dataclass(frozen=True)
class Asking:
    """A request that asks: `groups` are the keys that it asks for, round by round.

    `others` are other params of its method; those of tools and prompts that are a name alone fit both methods.
    """

    method: str
    params: Mapping[str, Any]
    groups: tuple[tuple[str, ...], ...]
    others: tuple[Mapping[str, Any], ...]

    @property
    def keys(self) -> list[str]:
        """All keys, in the order of the rounds."""
        return [key for group in self.groups for key in group]

    def heard(self, result: Mapping[str, Any]) -> Any:
        """The answers that a final result repeats."""
        assert result["resultType"] == "complete"
        match self.method:
            case "tools/call":
                return result["structuredContent"]["heard"]
            case "prompts/get":
                return json.loads(result["messages"][0]["content"]["text"])
        return json.loads(result["contents"][0]["text"])


ASKING = (
    Asking(
        "tools/call",
        {"name": "steps", "arguments": {"n": 1}},
        STEPS,
        ({"name": "more", "arguments": {"n": 1}}, {"name": "steps", "arguments": {"n": 2}}, {"name": "steps"}),
    ),
    Asking(
        "prompts/get",
        {"name": "ask", "arguments": {"tone": "a"}},
        AT_ONCE,
        ({"name": "other", "arguments": {"tone": "a"}}, {"name": "ask", "arguments": {"tone": "b"}}, {"name": "ask"}),
    ),
    Asking("resources/read", {"uri": "q://one"}, AT_ONCE, ({"uri": "q://two"},)),
)
