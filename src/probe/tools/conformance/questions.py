"""Fixtures that ask the client before the result, by requests of the server or by multi-round-trip requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from ...engine.calls.context import ToolContext
from ...engine.catalogue.tool import Ask, Text, ToolResult, content, failure, shown, text
from ...wire.jsonrpc import Json, encode
from ...wire.revisions import V2025_11_25, V2026_07_28
from ..shared import probe_tool, sampled_text, sampling_request


async def _pass_prompt(context: ToolContext) -> ToolResult:
    answer = await context.sample(sampling_request(context.arguments["prompt"], 100))
    return content([text(f"LLM response: {sampled_text(answer)}")])


async def _elicit_contact(context: ToolContext) -> ToolResult:
    return _answered("User response", await context.elicit(context.arguments["message"], _CONTACT))


async def _elicit_defaults(context: ToolContext) -> ToolResult:
    return _answered("Elicitation completed", await context.elicit("Please check the preset values", _DEFAULTS))


async def _elicit_enums(context: ToolContext) -> ToolResult:
    return _answered("Elicitation completed", await context.elicit("Please choose among the options", _ENUMS))


def _answered(what: str, answer: Json) -> ToolResult:
    sent = encode(answer.get("content") or {}).decode()
    return content([text(f"{what}: action={answer.get('action')}, content={sent}")])


def _titled(options: Sequence[str]) -> list[Json]:
    return [{"const": option, "title": f"Choice {number}"} for number, option in enumerate(options, 1)]


_CONTACT: Json = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "A user name"},
        "email": {"type": "string", "description": "An e-mail address"},
    },
    "required": ["username", "email"],
}

_DEFAULTS: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A name", "default": "John Doe"},
        "age": {"type": "integer", "description": "An age", "default": 30},
        "score": {"type": "number", "description": "A score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "A status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Whether it is verified", "default": True},
    },
    "required": [],
}

_OPTIONS = ("option1", "option2", "option3")
_VALUES = ("value1", "value2", "value3")

_ENUMS: Json = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "description": "One of three", "enum": list(_OPTIONS)},
        "titledSingle": {"type": "string", "description": "One of three, with titles", "oneOf": _titled(_VALUES)},
        "legacyEnum": {
            "type": "string",
            "description": "One of three, with names in the older way",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Choice 1", "Choice 2", "Choice 3"],
        },
        "untitledMulti": {
            "type": "array",
            "description": "Any of three",
            "items": {"type": "string", "enum": list(_OPTIONS)},
        },
        "titledMulti": {
            "type": "array",
            "description": "Any of three, with titles",
            "items": {"anyOf": _titled(_VALUES)},
        },
    },
    "required": [],
}

ASKING = (
    probe_tool(
        name="test_sampling",
        title="Sampling",
        exercises="`sampling/createMessage`",
        shows="the prompt for approval",
        description="Asks your client for a completion. Look for: a request for approval, and the answer.",
        run=_pass_prompt,
        params=(Text("prompt", "What to ask the model"),),
        requires=("sampling",),
        asks_client=True,
    ),
    probe_tool(
        name="test_elicitation",
        title="Elicitation",
        exercises="`elicitation/create`",
        shows="a form with two required fields",
        description="Asks for a user name and an e-mail address. Look for: a form with two required fields.",
        run=_elicit_contact,
        params=(Text("message", "What to say above the form"),),
        requires=("elicitation",),
        asks_client=True,
    ),
    probe_tool(
        name="test_elicitation_sep1034_defaults",
        title="Elicitation with defaults",
        exercises="a default in a field of each type",
        shows="every field filled in at the start",
        description="Asks by a form of five fields with defaults. Look for: every field filled in when the form opens.",
        run=_elicit_defaults,
        requires=("elicitation",),
        asks_client=True,
    ),
    probe_tool(
        name="test_elicitation_sep1330_enums",
        title="Elicitation with choices",
        exercises="five kinds of choice",
        shows="titles where there are some; two multiple choices (2025-11-25 only)",
        description="Asks by a form with five kinds of choice. Look for: titles, and two multiple choices.",
        run=_elicit_enums,
        requires=("elicitation",),
        asks_client=True,
        # 2025-11-25 changelog: titled and multi-select enums are new there.
        since=V2025_11_25,
    ),
)

T = TypeVar("T")

NAME: Final[Json] = {"type": "string", "title": "Name"}
_NAME_QUESTION: Final = "What is your name?"
_CAPITAL: Final = sampling_request("What is the capital of France?", 100)


def form(**fields: Json) -> Json:
    """The schema of a form with exactly these fields, all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def question(message: str, **fields: Json) -> Ask:
    """A form to show before the work begins."""
    return Ask("elicitation/create", {"message": message, "requestedSchema": form(**fields)})


def entered(answer: Json, field: str, kind: type[T]) -> T | None:
    """The value that a person entered; None if the form was not accepted, or has no value of this kind."""
    filled = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(filled, dict):
        return None
    value = filled.get(field)
    return value if isinstance(value, kind) else None


def greeting(answer: Json) -> ToolResult:
    """A greeting for the name in a form, or a tool error that shows what came instead."""
    name = entered(answer, "name", str)
    if name is None:
        return failure(f"There is no name in the answer: {shown(answer)}")
    return content([text(f"Hello, {name}!")])


async def elicit(context: ToolContext) -> ToolResult:
    """Ask for a name."""
    return greeting(await context.elicit(_NAME_QUESTION, form(name=NAME), key="user_name"))


async def _sample(context: ToolContext) -> ToolResult:
    answer = await context.sample(_CAPITAL, key="capital_question")
    return content([text(f"LLM response: {sampled_text(answer)}")])


async def _list_roots(context: ToolContext) -> ToolResult:
    answer = await context.list_roots(key="client_roots")
    return content([text(f"Roots: {shown(answer.get('roots'))}")])


async def _confirm(context: ToolContext) -> ToolResult:
    answer = await context.elicit("Please confirm", form(ok={"type": "boolean", "title": "OK"}), key="confirm")
    state = "state-ok" if context.resumed else "no state came back"
    return content([text(f"{state}; answer: {shown(answer)}")])


async def _two_rounds(context: ToolContext) -> ToolResult:
    first = await context.elicit(f"Step 1: {_NAME_QUESTION}", form(name=NAME), key="step1")
    color: Json = {"type": "string", "title": "Color"}
    second = await context.elicit("Step 2: What is your favorite color?", form(color=color), key="step2")
    return content([text(f"First answer: {shown(first)}"), text(f"Second answer: {shown(second)}")])


async def _several(context: ToolContext) -> ToolResult:
    asks = {key: ask for key, ask in _SEVERAL.items() if context.declares(ask.method)}
    if not asks:
        return content([text("The request declares nothing that could be asked.")])
    answers = await context.ask(asks)
    return content([text(f"{key}: {shown(answer)}") for key, answer in answers.items()])


_SEVERAL: Final[Mapping[str, Ask]] = {
    "user_name": question(_NAME_QUESTION, name=NAME),
    "capital_question": Ask("sampling/createMessage", _CAPITAL),
    "client_roots": Ask("roots/list", {}),
}

INPUT_REQUIRED = (
    probe_tool(
        name="test_input_required_result_elicitation",
        title="Input required: elicitation",
        exercises="a form by a multi-round-trip request",
        shows="a form, then a greeting",
        description="Asks for a name before it greets. Look for: a form, and the greeting after it.",
        run=elicit,
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_sampling",
        title="Input required: sampling",
        exercises="sampling, likewise",
        shows="the prompt for approval, then the answer",
        description="Asks your client for a completion. Look for: a request for approval, and the answer.",
        run=_sample,
        requires=("sampling",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_list_roots",
        title="Input required: roots",
        exercises="roots, likewise",
        shows="its roots in the result",
        description="Asks your client for its roots. Look for: them in the result.",
        run=_list_roots,
        requires=("roots",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_request_state",
        title="Input required: state",
        exercises="`requestState` that comes back",
        shows="state-ok in the result",
        description="Asks for a confirmation. Look for: state-ok in the result, the proof that requestState came back.",
        run=_confirm,
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_multiple_inputs",
        title="Input required: three at once",
        exercises="elicitation, sampling and roots at once",
        shows="all three, and their answers in the result",
        description=(
            "Asks at once for a name, a completion and the roots. Look for: all three, and their answers in the result."
        ),
        run=_several,
        requires=("elicitation", "sampling", "roots"),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_multi_round",
        title="Input required: two rounds",
        exercises="two rounds, each with a state of its own",
        shows="two forms, then both answers",
        description="Asks for a name and then for a color. Look for: two forms, and both answers in the result.",
        run=_two_rounds,
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_tampered_state",
        title="Input required: sealed state",
        exercises="error -32602 for a `requestState` that was changed",
        shows="state-ok; the error when something on the way changes it",
        description=(
            "Asks for a confirmation, and refuses a requestState that is not exactly what it gave. Look for: error "
            "-32602 when something on the way changes it."
        ),
        run=_confirm,
        requires=("elicitation",),
        since=V2026_07_28,
    ),
    probe_tool(
        name="test_input_required_result_capabilities",
        title="Input required: only what is declared",
        exercises="only questions that the request declares",
        shows="nothing that it cannot answer",
        description=(
            "Asks at once for a name, a completion and the roots, each only if your client declares it. Look for: "
            "nothing that your client cannot answer."
        ),
        run=_several,
        since=V2026_07_28,
    ),
)
