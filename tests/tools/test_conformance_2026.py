"""Toolset `conformance`: the fixtures that only 2026-07-28 has, one run of the work at a time."""

from __future__ import annotations

import re
from typing import Any

import mcp_types
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from trio.testing import MockClock

from probe.engine.catalogue.catalogue import Prompt, select
from probe.engine.catalogue.offers import Offer
from probe.engine.catalogue.tool import (
    ArgumentsError,
    Ask,
    InputRequiredError,
    Tool,
    ToolFailureError,
    WorkCancelledError,
)
from probe.engine.host_tools.hosted import HostedTools
from probe.tools.catalogue import CONFORMANCE, TOOLSETS
from probe.wire.errors import Code, McpError
from probe.wire.jsonrpc import Json

from .fakes import FakeContext, call, texts

MRTR = "test_input_required_result_"
SAMPLED: Json = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
ROOTS: Json = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}


def tool(name: str) -> Tool:
    return next(item for item in CONFORMANCE.tools if item.name == name)


def accepted(**fields: Any) -> Json:
    return {"action": "accept", "content": fields}


def fields_of(form: Json) -> dict[str, str]:
    """The types of a form's fields, all of which must be required."""
    assert form["type"] == "object"
    assert form["required"] == list(form["properties"])
    return {name: field["type"] for name, field in form["properties"].items()}


def form_of(ask: Ask) -> dict[str, str]:
    assert ask.method == "elicitation/create"
    mcp_types.ElicitRequestFormParams.model_validate(ask.params)
    return fields_of(ask.params["requestedSchema"])


# --- a header ---------------------------------------------------------------------------------------------------------


def test_the_annotated_parameter_is_an_optional_string() -> None:
    """The suite calls it with a header, and takes only a string property; 2026-07-28 server/tools, x-mcp-header."""
    schema = tool("test_x_mcp_header").describe()["inputSchema"]
    (region,) = schema["properties"].values()
    assert (region["type"], region["x-mcp-header"]) == ("string", "Region")
    assert "required" not in schema


async def test_the_region_is_returned() -> None:
    assert texts(await call(tool("test_x_mcp_header"), {"region": " caf\u00e9 "})) == ["Region:  caf\u00e9 "]
    assert texts(await call(tool("test_x_mcp_header"))) == ["No region was given."]


# --- capabilities, log level, subscriptions ---------------------------------------------------------------------------


def test_what_a_fixture_needs_is_declared_by_it() -> None:
    assert {name: tool(name).requires for name in NEEDS} == NEEDS


NEEDS = {
    "test_missing_capability": ("sampling",),
    "test_streaming_elicitation": ("elicitation",),
    "test_logging_tool": (),
    "test_trigger_tool_change": (),
    "test_trigger_prompt_change": (),
    f"{MRTR}elicitation": ("elicitation",),
    f"{MRTR}sampling": ("sampling",),
    f"{MRTR}list_roots": ("roots",),
    f"{MRTR}request_state": ("elicitation",),
    f"{MRTR}multiple_inputs": ("elicitation", "sampling", "roots"),
    f"{MRTR}multi_round": ("elicitation",),
    f"{MRTR}tampered_state": ("elicitation",),
    f"{MRTR}capabilities": (),
    "greet": (),
    "slow_compute": (),
    "failing_job": (),
    "protocol_error_job": (),
    "confirm_delete": ("elicitation",),
    "multi_input": ("elicitation",),
    "test_tool_with_task": ("elicitation",),
}


async def test_progress_precedes_the_question(autojump_clock: MockClock) -> None:
    context = FakeContext(by_key={"count": accepted(count=3)})
    assert texts(await call(tool("test_streaming_elicitation"), context=context)) == ["Count: 3"]
    assert [event[0] for event in context.events] == ["progress", "sleep", "elicit", "progress"]
    ((_, form, key),) = context.of("elicit")
    assert (fields_of(form), key) == ({"count": "integer"}, "count")


async def test_logging_tool_logs_at_both_ends(autojump_clock: MockClock) -> None:
    context = FakeContext()
    await call(tool("test_logging_tool"), context=context)
    assert [(event[0], *event[1:2]) for event in context.events] == [("log", "info"), ("sleep", 0.05), ("log", "info")]


@pytest.mark.parametrize(("name", "kind"), [("tool", "tools"), ("prompt", "prompts")])
async def test_a_trigger_announces_its_own_list_and_no_other(name: str, kind: str) -> None:
    subject, context = tool(f"test_trigger_{name}_change"), FakeContext()
    await call(subject, context=context)
    assert context.events == [("announce", kind)]
    assert subject.announces == (kind,)


@pytest.mark.parametrize(("revision", "changing"), [("2025-11-25", False), ("2026-07-28", True)])
def test_a_change_is_declared_only_where_something_can_announce_it(revision: str, changing: bool) -> None:
    nobody = HostedTools(lambda: None, enabled=False)
    declared = Offer(select(TOOLSETS, "conformance"), "conformance", revision, 50, nobody).capabilities()
    assert [declared[kind].get("listChanged", False) for kind in ("tools", "prompts")] == [changing, changing]


# --- multi-round-trip requests ----------------------------------------------------------------------------------------


async def test_elicitation_greets_by_the_name(autojump_clock: MockClock) -> None:
    context = FakeContext(by_key={"user_name": accepted(name="Alice")})
    assert texts(await call(tool(f"{MRTR}elicitation"), context=context)) == ["Hello, Alice!"]
    assert [(message, fields_of(form), key) for message, form, key in context.of("elicit")] == [
        ("What is your name?", {"name": "string"}, "user_name")
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "decline", "content": {"name": "Alice"}},
        {"action": "accept"},
        {"action": "accept", "content": []},
        accepted(other="Alice"),
        accepted(name=5),
        {},
    ],
    ids=str,
)
async def test_an_answer_without_a_name_is_a_tool_error_that_shows_it(autojump_clock: MockClock, answer: Json) -> None:
    for name in (f"{MRTR}elicitation", "test_tool_with_task"):
        context = FakeContext(by_key={"user_name": answer}, answers={"user_name": answer})
        result = await call(tool(name), context=context)
        assert result["isError"] is True
        assert texts(result)[0].startswith("There is no name in the answer: {")


async def test_sampling_returns_the_answer(autojump_clock: MockClock) -> None:
    context = FakeContext(by_key={"capital_question": SAMPLED})
    assert texts(await call(tool(f"{MRTR}sampling"), context=context)) == ["LLM response: Paris"]
    ((params, key),) = context.of("sample")
    assert params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}],
        "maxTokens": 100,
    }
    assert key == "capital_question"


async def test_sampling_without_text_is_a_tool_error(autojump_clock: MockClock) -> None:
    with pytest.raises(ToolFailureError, match="it has: image"):
        await call(tool(f"{MRTR}sampling"), context=FakeContext(answer={"content": {"type": "image"}}))


async def test_roots_are_returned(autojump_clock: MockClock) -> None:
    context = FakeContext(by_key={"client_roots": ROOTS})
    (line,) = texts(await call(tool(f"{MRTR}list_roots"), context=context))
    assert "file:///test/root" in line
    assert context.of("roots") == [("client_roots",)]


@pytest.mark.parametrize("name", ["request_state", "tampered_state"])
@pytest.mark.parametrize(("resumed", "said"), [(True, "state-ok;"), (False, "no state came back;")])
async def test_the_result_tells_whether_the_state_came_back(
    autojump_clock: MockClock, name: str, resumed: bool, said: str
) -> None:
    context = FakeContext(by_key={"confirm": accepted(ok=True)}, resumed=resumed)
    assert texts(await call(tool(MRTR + name), context=context))[0].startswith(said)
    ((_, form, key),) = context.of("elicit")
    assert (fields_of(form), key) == ({"ok": "boolean"}, "confirm")


class Rounds(FakeContext):
    """Ends the run at a question whose key has no answer yet, as the engine does in 2026-07-28."""

    async def _ask(self, key: str | None, *question: Any) -> Json:
        answer = await super()._ask(key, *question)
        if key not in self.by_key:
            raise InputRequiredError({"key": key})
        return answer


async def test_each_round_asks_one_step(autojump_clock: MockClock) -> None:
    given: dict[str, Json] = {}
    for step, answer in (("step1", accepted(name="Alice")), ("step2", accepted(color="blue"))):
        with pytest.raises(InputRequiredError) as asked:
            await call(tool(f"{MRTR}multi_round"), context=Rounds(by_key=given))
        assert asked.value.result == {"key": step}
        given[step] = answer
    context = Rounds(by_key=given)
    first, second = texts(await call(tool(f"{MRTR}multi_round"), context=context))
    assert "Alice" in first
    assert "blue" in second
    assert [fields_of(form) for _, form, _ in context.of("elicit")] == [{"name": "string"}, {"color": "string"}]


async def test_three_things_are_asked_at_once(autojump_clock: MockClock) -> None:
    given = {"user_name": accepted(name="Alice"), "capital_question": SAMPLED, "client_roots": ROOTS}
    context = FakeContext(by_key=given)
    lines = texts(await call(tool(f"{MRTR}multiple_inputs"), context=context))
    ((asks,),) = context.of("ask")
    assert {key: ask.method for key, ask in asks.items()} == {
        "user_name": "elicitation/create",
        "capital_question": "sampling/createMessage",
        "client_roots": "roots/list",
    }
    assert form_of(asks["user_name"]) == {"name": "string"}
    for line, part in zip(lines, ("Alice", "Paris", "file:///test/root"), strict=True):
        assert part in line


@pytest.mark.parametrize(
    "declared",
    [
        ("sampling/createMessage",),
        ("elicitation/create",),
        ("roots/list",),
        ("elicitation/create", "roots/list"),
    ],
)
async def test_only_what_is_declared_is_asked(autojump_clock: MockClock, declared: tuple[str, ...]) -> None:
    """2026-07-28 basic/patterns/mrtr: "MUST NOT send an inputRequests that the client has not declared support for"."""
    context = FakeContext(declared=declared)
    await call(tool(f"{MRTR}capabilities"), context=context)
    ((asks,),) = context.of("ask")
    assert sorted(ask.method for ask in asks.values()) == sorted(declared)


async def test_a_client_that_declares_nothing_is_asked_nothing() -> None:
    context = FakeContext(declared=())
    assert texts(await call(tool(f"{MRTR}capabilities"), context=context)) == [
        "The request declares nothing that could be asked."
    ]
    assert context.events == []


def prompt() -> Prompt:
    return next(item for item in CONFORMANCE.prompts if item.name == f"{MRTR}prompt")


def test_the_prompt_asks_for_its_context() -> None:
    assert {key: form_of(ask) for key, ask in prompt().inputs.items()} == {"user_context": {"context": "string"}}
    assert not [item.name for item in CONFORMANCE.prompts if item.inputs and item != prompt()]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (accepted(context="test context"), "Prompt with context: test context"),
        (accepted(context=""), "Prompt with context: "),
        ({"action": "decline"}, 'Prompt with context: there is none in the answer: {"action":"decline"}'),
        (
            accepted(context=5),
            'Prompt with context: there is none in the answer: {"action":"accept","content":{"context":5}}',
        ),
    ],
    ids=str,
)
def test_the_prompt_repeats_its_context(answer: Json, said: str) -> None:
    (message,) = prompt().render({}, {"user_context": answer})
    assert message == {"role": "user", "content": {"type": "text", "text": said}}


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_which_fixtures_are_tasks() -> None:
    assert {item.name: item.task_support for item in CONFORMANCE.tools if item.task_support != "forbidden"} == {
        "slow_compute": "optional",
        "failing_job": "required",
        "protocol_error_job": "required",
        "confirm_delete": "required",
        "multi_input": "required",
        "test_tool_with_task": "required",
    }
    assert not tool("greet").waits, "it answers at once"


async def test_greet() -> None:
    assert await call(tool("greet"), {"name": "sep-2243"}) == {
        "content": [{"type": "text", "text": "Hello, sep-2243!"}]
    }


@pytest.mark.parametrize(
    ("sent", "slept", "reached", "said"),
    [
        ({}, 1, [1], "Computed for 1s"),
        ({"seconds": 0, "label": "zero"}, 0, [], "Computed zero for 0s"),
        ({"seconds": 2}, 2, [1, 2], "Computed for 2s"),
        ({"seconds": 0.25}, 0.25, [0.25], "Computed for 0.25s"),
        ({"seconds": 2.7, "label": "x"}, 2.7, [1, 2, 2.7], "Computed x for 2.7s"),
    ],
)
async def test_slow_compute_reports_each_second(
    autojump_clock: MockClock, sent: Json, slept: float, reached: list[float], said: str
) -> None:
    context = FakeContext()
    assert texts(await call(tool("slow_compute"), sent, context)) == [said]
    assert context.slept == pytest.approx(slept)
    assert [(done, total) for done, total, _ in context.of("progress")] == [(done, reached[-1]) for done in reached]


async def test_a_failing_job_has_a_result_with_an_error(autojump_clock: MockClock) -> None:
    context = FakeContext()
    assert (await call(tool("failing_job"), context=context))["isError"] is True
    assert context.slept == 1


async def test_a_protocol_error_job_has_an_error_and_no_result(autojump_clock: MockClock) -> None:
    context = FakeContext()
    with pytest.raises(McpError) as caught:
        await call(tool("protocol_error_job"), context=context)
    assert caught.value.code == Code.INTERNAL_ERROR
    assert context.slept == 1


@pytest.mark.parametrize(("answer", "done"), [(True, "Deleted"), (False, "Kept")])
async def test_a_deletion_is_confirmed(autojump_clock: MockClock, answer: bool, done: str) -> None:
    context = FakeContext(by_key={"confirm": accepted(confirm=answer)})
    result = await call(tool("confirm_delete"), {"filename": "a.txt"}, context)
    assert texts(result) == [f"{done} a.txt (a pretence: no file was touched)"]
    ((message, form, _),) = context.of("elicit")
    assert message == "Delete a.txt?"
    assert fields_of(form) == {"confirm": "boolean"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_deletion_that_is_not_answered_is_cancelled(autojump_clock: MockClock, action: str) -> None:
    with pytest.raises(WorkCancelledError, match=r"a\.txt"):
        await call(tool("confirm_delete"), {"filename": "a.txt"}, FakeContext(answer={"action": action}))


async def test_a_malformed_confirmation_is_a_tool_error(autojump_clock: MockClock) -> None:
    context = FakeContext(answer=accepted(confirm="yes"))
    assert (await call(tool("confirm_delete"), {"filename": "a.txt"}, context))["isError"] is True


async def test_multi_input_asks_two_forms_at_once(autojump_clock: MockClock) -> None:
    context = FakeContext(by_key={"name": accepted(name="partial-1"), "confirm": accepted(confirm=True)})
    first, second = texts(await call(tool("multi_input"), context=context))
    ((asks,),) = context.of("ask")
    assert {key: form_of(ask) for key, ask in asks.items()} == {
        "name": {"name": "string"},
        "confirm": {"confirm": "boolean"},
    }
    assert "partial-1" in first
    assert "true" in second


async def test_a_task_greets_whoever_was_named_before_it(autojump_clock: MockClock) -> None:
    subject = tool("test_tool_with_task")
    assert {key: form_of(ask) for key, ask in subject.inputs.items()} == {"user_name": {"name": "string"}}
    context = FakeContext(answers={"user_name": accepted(name="Alice")})
    assert texts(await call(subject, context=context)) == ["Hello, Alice!"]
    assert context.events == [("sleep", 1.0)]


# --- schemas of their own ---------------------------------------------------------------------------------------------

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 121), st.floats(-1, 121), st.text(max_size=3), st.just("x" * 101)
)
_ARGUMENTS = st.dictionaries(st.sampled_from(["region", "seconds", "label", "other"]), _SCALARS, max_size=3)


@pytest.mark.parametrize("name", ["test_x_mcp_header", "slow_compute"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
@given(arguments=_ARGUMENTS)
@example(arguments={"region": "\u00e9" * 100})
@example(arguments={"region": "x" * 101})
@example(arguments={"seconds": 120, "label": "x" * 100})
@example(arguments={"seconds": 120.5})
@example(arguments={"seconds": -0.5})
@example(arguments={"seconds": True})
def test_an_own_schema_and_its_judge_agree(name: str, arguments: Json) -> None:
    subject = tool(name)
    if Draft202012Validator(subject.describe()["inputSchema"]).is_valid(arguments):
        assert subject.read_arguments(arguments) == arguments
    else:
        with pytest.raises(ArgumentsError):
            subject.read_arguments(arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("slow_compute", {"seconds": 120.5}, "seconds must be a number from 0 to 120, got 120.5"),
        ("slow_compute", {"seconds": "5"}, 'seconds must be a number from 0 to 120, got "5"'),
        ("slow_compute", {"label": 5}, "label must be a string of at most 100 characters, got 5"),
        ("slow_compute", {"ms": 5}, 'unknown parameter "ms": it takes seconds, label'),
        ("test_x_mcp_header", {"region": 5}, "region must be a string of at most 100 characters, got 5"),
        ("test_x_mcp_header", {"zone": "a"}, 'unknown parameter "zone": it takes region'),
        ("greet", {}, "name is required"),
        ("confirm_delete", {}, "filename is required"),
    ],
)
def test_a_misfit_gets_one_sentence(name: str, arguments: Json, message: str) -> None:
    with pytest.raises(ArgumentsError, match=f"^{re.escape(message)}$"):
        tool(name).read_arguments(arguments)
