"""The catalogue as a whole: complete, in order, described, and as strict as its schemas say."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from trio.testing import MockClock

from probe.engine.catalogue.catalogue import select
from probe.engine.catalogue.tool import (
    ArgumentsError,
    Boolean,
    Choice,
    Integer,
    Param,
    Seconds,
    Text,
    Tool,
    input_schema,
    read_arguments,
)
from probe.settings import Settings
from probe.tools import conformance, dispatch, features, streaming
from probe.tools import probe as probe_tools
from probe.tools.catalogue import CONFORMANCE, DISPATCH, FEATURES, PROBE, STREAMING, TOOLSETS
from probe.tools.conformance import questions, resources
from probe.tools.features import prompts as feature_prompts
from probe.tools.features import resources as feature_resources
from probe.tools.features.definitions import HINTS
from probe.tools.probe import stages
from probe.wire.errors import McpError
from probe.wire.jsonrpc import Json
from probe.wire.revisions import V2026_07_28

from ..support.rows import each
from .fakes import FakeContext, call

ALL = [tool for group in TOOLSETS for tool in group.tools]
OWN = [*PROBE.tools, *STREAMING.tools, *FEATURES.tools, *DISPATCH.tools]
IDS = [tool.name for tool in ALL]
ANSWERS: dict[str, Json] = {
    "elicitation.url": {"action": "accept"},
    "elicitation": {"action": "accept", "content": {"continue": True}},
    "sampling": {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
    "roots": {"roots": [{"uri": "file:///home/ada"}]},
}
CONFORMANCE_2026 = {
    "test_x_mcp_header",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
}


def named(name: str) -> Tool:
    return next(tool for tool in ALL if tool.name == name)


def test_the_toolsets_are_in_their_order() -> None:
    assert [group.name for group in TOOLSETS] == ["probe", "streaming", "features", "dispatch", "conformance", "skills"]
    assert [tool.name for tool in PROBE.tools] == [
        "simple_tool",
        "sync_with_progress",
        "pure_task",
        "task_with_progress",
        "cancellable_task",
        "multi_stage_task",
        "failing_task",
        "pausable_task",
        "sampling_demo",
    ]
    assert [tool.name for tool in STREAMING.tools] == ["progress", "long_output", "chatty"]
    assert [tool.name for tool in FEATURES.tools] == [
        "log_levels",
        "elicit_form",
        "elicit_simple_form",
        "elicit_url",
        "list_roots",
        "ask_several",
        "ping_client",
        "announce_list_change",
        "structured_output",
        "content_types",
        "fail",
        "read_only_hint",
        "destructive_hint",
        "idempotent_hint",
        "open_world_hint",
        "routed_tool",
    ]
    assert [tool.name for tool in DISPATCH.tools] == [
        "silent_call",
        "progress_beyond_ceiling",
        "progress_gap",
        "bulk_export",
    ]
    assert {tool.name for tool in CONFORMANCE.tools} == {
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_tool_with_progress",
        "test_error_handling",
        "test_sampling",
        "test_elicitation",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "json_schema_2020_12_tool",
        "test_reconnection",
        *CONFORMANCE_2026,
    }
    assert CONFORMANCE.tools[0].name == "test_simple_text"
    assert CONFORMANCE.tools[0].read_arguments({}) == {}


def test_fixtures_of_one_era_are_not_offered_to_the_other() -> None:
    assert {tool.name for tool in CONFORMANCE.tools if tool.since == V2026_07_28} == CONFORMANCE_2026
    assert [tool.name for tool in CONFORMANCE.tools if tool.until is not None] == ["test_reconnection"]


def test_every_module_is_listed() -> None:
    listed = {id(tool) for tool in ALL}
    names = [
        f"{package.__name__}.{module.name}"
        for package in (features, conformance)
        for module in pkgutil.iter_modules(package.__path__)
    ]
    for module in (probe_tools, streaming, dispatch, *map(import_module, names)):
        content = vars(module)
        values = [item for value in content.values() for item in (value if isinstance(value, tuple) else (value,))]
        offered = [value for value in values if isinstance(value, Tool)]
        assert offered or {"RESOURCES", "PROMPTS"} & set(content), f"{module.__name__} offers nothing"
        # Also a tool that a module makes and forgets in its tuples.
        assert {id(tool) for tool in offered} <= listed, f"a tool of {module.__name__} is not in the catalogue"
    assert CONFORMANCE.resources == resources.RESOURCES
    assert CONFORMANCE.templates == resources.TEMPLATES
    assert CONFORMANCE.prompts == resources.PROMPTS
    assert FEATURES.resources == feature_resources.RESOURCES
    assert FEATURES.templates == feature_resources.TEMPLATES
    assert FEATURES.prompts == feature_prompts.PROMPTS


def test_names_are_unique_and_legal() -> None:
    assert len(set(IDS)) == len(IDS)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name) for name in IDS)
    assert not set(IDS) & {group.name for group in TOOLSETS}
    uris = [item.uri for group in TOOLSETS for item in group.resources]
    assert len(set(uris)) == len(uris)


def test_the_default_selection_exists() -> None:
    chosen = select(TOOLSETS, Settings().tools)
    assert list(chosen.tools) == [tool.name for tool in OWN]


@each("tool", ALL)
def test_every_tool_is_described(tool: Tool) -> None:
    entry = tool.describe()
    assert entry["title"]
    assert entry["title"] != tool.name
    assert "Look for:" in entry["description"]
    if tool not in HINTS:
        assert entry["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
    assert entry["inputSchema"]["type"] == "object"
    Draft202012Validator.check_schema(entry["inputSchema"])
    mcp_types.Tool.model_validate(entry)


@each("tool", OWN)
def test_structured_tools_have_an_output_schema(tool: Tool) -> None:
    # failing_task and fail never have a result; in the others the content is the point.
    without = {"failing_task", "fail", "long_output", "chatty", "content_types"}
    assert (tool.output_schema is None) == (tool.name in without)


@each("tool", OWN)
def test_task_support(tool: Tool) -> None:
    as_task = {
        "pure_task",
        "task_with_progress",
        "cancellable_task",
        "multi_stage_task",
        "failing_task",
        "pausable_task",
    }
    execution = tool.describe().get("execution")
    assert execution == ({"taskSupport": "required"} if tool.name in as_task else None)


@each("tool", ALL)
async def test_the_result_has_the_official_shape(autojump_clock: MockClock, tool: Tool) -> None:
    """With `{}` where that is legal, which it is for every tool but the fixtures of the suite."""
    needed = {param.name: "text" for param in tool.params if param.required}
    if tool.input_schema is not None:
        needed = {"email": "text"} if tool.name == "json_schema_2020_12_tool" else {}
    assert not (needed and tool in OWN)
    context = FakeContext(
        answer=ANSWERS[tool.requires[0]] if tool.requires else {},
        answers=dict.fromkeys(tool.inputs, ANSWERS["elicitation"]),
    )
    if tool.name in ("failing_task", "protocol_error_job"):
        with pytest.raises(McpError):
            await call(tool, needed, context)
        return
    result = await call(tool, needed, context)
    mcp_types.CallToolResult.model_validate(result)
    assert result["content"]
    assert ("structuredContent" in result) == (tool.output_schema is not None)
    if tool.output_schema is not None:
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"
        Draft202012Validator(tool.output_schema).validate(result["structuredContent"])
        assert not Draft202012Validator(tool.output_schema).is_valid({})
        assert not Draft202012Validator(tool.output_schema).is_valid({**result["structuredContent"], "more": 1})
    reached = context.of("progress")
    assert not reached or reached[-1][1] in (reached[-1][0], None), "the last report says that all is done"


@each("tool", ALL)
async def test_the_bounds_fit_the_deadlines(tool: Tool) -> None:
    """The slowest legal call of every dispatched tool ends before its ceiling, each step before the idle deadline.

    Those of the toolset `dispatch` are there to show what happens where it does not.
    """
    server = Settings()
    slowest = {
        "simple_tool": (5.0, 5.0),
        "sync_with_progress": (100 * 1.0, 1.0),
        "progress": (100 * 5.0, 5.0),
        "test_tool_with_logging": (0.1, 0.1),
        "test_tool_with_progress": (0.1, 0.05),
        "test_reconnection": (0.2, 0.2),
        "test_streaming_elicitation": (0.05, 0.05),
        "test_logging_tool": (0.05, 0.05),
        "test_trigger_tool_change": (0.0, 0.0),
        "test_trigger_prompt_change": (0.0, 0.0),
        "slow_compute": (120.0, 1.0),
        # 2026-07-28: a question ends the call, so nobody waits for a person.
        **{fixture.name: (0.0, 0.0) for fixture in questions.INPUT_REQUIRED},
    }
    # Logging and announcing take no time at all.
    if tool.task_support == "required" or not tool.waits or tool.name in ("log_levels", "announce_list_change"):
        return
    if tool in DISPATCH.tools:
        return
    asks = tool.requires or tool.name in ("ask_several", "ping_client")
    if asks and tool.since < V2026_07_28:
        assert tool.asks_client, "its deadlines grow by what a person may take"
        return
    whole, step = slowest[tool.name]
    assert whole < (tool.ceiling_s or server.ceiling_deadline_s)
    assert step < (tool.idle_s or server.idle_deadline_s)


# --- parameters: the schema that clients see and the judge that answers them agree -----------------------------------

_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 130_000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)


def values(param: Param) -> st.SearchStrategy[Any]:
    match param:
        case Integer(low=low, high=high):
            edges = [low - 1, low, high, high + 1, float(low), float(high), low + 0.5, low - 1.0, high + 1.0]
            return st.one_of(st.sampled_from(edges), st.integers(low, high), _ANYTHING)
        case Choice(options=options):
            spoiled = [options[0].upper(), f"{options[0]} ", "", *([[options[0]]])]
            return st.one_of(st.sampled_from([*options, *spoiled]), _ANYTHING)
        case Boolean():
            return st.one_of(st.sampled_from([True, False, 0, 1, "true"]), _ANYTHING)
        case Text(max_length=length):
            return st.one_of(st.sampled_from(["", "é" * length, "x" * (length + 1)]), _ANYTHING)
    raise AssertionError(f"no values for {param}")


def argument_sets(params: tuple[Param, ...]) -> st.SearchStrategy[Json]:
    known = st.fixed_dictionaries({}, optional={param.name: values(param) for param in params})
    unknown = st.dictionaries(st.sampled_from(["unknown", "DelayMs", ""]), _ANYTHING, max_size=1)
    return st.tuples(known, st.one_of(st.just({}), unknown)).map(lambda both: {**both[0], **both[1]})


def accepts(params: tuple[Param, ...], arguments: Json) -> bool:
    try:
        read_arguments(params, arguments)
    except ArgumentsError:
        return False
    return True


@pytest.mark.parametrize("tool", ALL, ids=IDS)
# Of each of some sixty tools; a busy machine is no failure.
@settings(max_examples=settings().max_examples // 5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_schema_and_the_judge_agree(tool: Tool, data: st.DataObject) -> None:
    arguments = data.draw(argument_sets(tool.params))
    assert accepts(tool.params, arguments) == Draft202012Validator(input_schema(tool.params)).is_valid(arguments)


@each("tool", ALL)
def test_defaults_are_legal(tool: Tool) -> None:
    defaults = {param.name: param.default for param in tool.params if not param.required}
    for param in tool.params:
        if not param.required:
            assert param.read(param.default) == param.default
            assert param.schema()["default"] == param.default
    if not any(param.required for param in tool.params) and tool.input_schema is None:
        assert tool.read_arguments({}) == defaults


BOUNDS = [
    ("simple_tool", "delayMs", 0, 5000, 0),
    ("sync_with_progress", "itemCount", 1, 100, 10),
    ("sync_with_progress", "delayPerItemMs", 10, 1000, 100),
    ("pure_task", "durationMs", 1000, 60000, 5000),
    ("task_with_progress", "itemCount", 1, 100, 10),
    ("task_with_progress", "delayPerItemMs", 10, 1000, 500),
    ("cancellable_task", "durationMs", 10000, 120000, 60000),
    ("multi_stage_task", "stageCount", 2, 10, 3),
    ("multi_stage_task", "msPerStage", 500, 10000, 1000),
    ("failing_task", "failAfterMs", 1000, 30000, 2000),
    ("pausable_task", "itemCount", 1, 50, 10),
    ("pausable_task", "pauseAfterItem", 1, 49, 5),
    ("sampling_demo", "maxTokens", 16, 256, 64),
    ("progress", "steps", 1, 100, 5),
    ("progress", "step_ms", 0, 5000, 200),
    ("long_output", "blocks", 1, 256, 3),
    ("long_output", "chars", 1, 65536, 256),
    ("routed_tool", "priority", 1, 9, 5),
    ("silent_call", "silentMs", 0, 600_000, 5000),
    ("silent_call", "idleMs", 100, 600_000, 2000),
    ("progress_beyond_ceiling", "intervalMs", 50, 60_000, 500),
    ("progress_beyond_ceiling", "durationMs", 100, 600_000, 10_000),
    ("progress_beyond_ceiling", "idleMs", 100, 60_000, 2000),
    ("progress_beyond_ceiling", "ceilingMs", 100, 300_000, 5000),
    ("progress_gap", "intervalMs", 50, 60_000, 1000),
    ("progress_gap", "reports", 1, 100, 3),
    ("progress_gap", "gapMs", 0, 600_000, 5000),
    ("progress_gap", "idleMs", 100, 60_000, 2000),
    ("bulk_export", "pages", 1, 100, 10),
    ("bulk_export", "pageMs", 0, 60_000, 300),
    ("bulk_export", "perPage", 1, 100, 20),
    ("bulk_export", "failAtPage", 0, 100, 0),
    ("simple_tool", "mark", 0, 999_999_999, 0),
    ("progress", "mark", 0, 999_999_999, 0),
    ("silent_call", "mark", 0, 999_999_999, 0),
]

CHOICES = [
    ("sync_with_progress", "mode", "determinate", ["determinate", "indeterminate"]),
    ("failing_task", "errorCode", "internal", ["timeout", "internal", "validation"]),
    ("sampling_demo", "theme", "nature", ["nature", "space", "ocean", "technology"]),
    ("sampling_demo", "style", "haiku", ["haiku", "limerick", "one_liner"]),
    ("elicit_form", "fields", "all", ["all", "basic", "formats", "choices"]),
    ("announce_list_change", "list", "tools", ["tools", "prompts", "resources"]),
    (
        "content_types",
        "kind",
        "all",
        ["all", "text", "image", "audio", "resource_link", "embedded_text", "embedded_blob"],
    ),
    ("fail", "how", "tool_error", ["tool_error", "protocol_error"]),
    ("routed_tool", "region", "eu-north", ["eu-north", "us-east", "ap-south"]),
]

BOOLEANS = [("routed_tool", "dry_run"), ("silent_call", "keepAlive"), ("sampling_demo", "progress")]


def test_the_parameters_are_those_of_the_contract_and_no_others() -> None:
    known = {(tool.name, param.name) for tool in OWN for param in tool.params}
    assert known == {(row[0], row[1]) for row in [*BOUNDS, *CHOICES, *BOOLEANS]}


@each("tool", [tool for group in TOOLSETS if group is not CONFORMANCE for tool in group.tools])
def test_arguments_are_bounded_numbers_and_enums_only(tool: Tool) -> None:
    """Nothing that a caller writes is kept or shown, so a public probe needs no accounts."""
    schema = tool.describe()["inputSchema"]
    assert schema["additionalProperties"] is False
    for described in schema["properties"].values():
        match described["type"]:
            case "integer" | "number":
                assert described["minimum"] <= described["maximum"]
            case "string":
                assert described["enum"]
            case kind:
                assert kind == "boolean"


@each("name, param, low, high, default", BOUNDS)
def test_integer_bounds(name: str, param: str, low: int, high: int, default: int) -> None:
    tool = named(name)
    assert tool.describe()["inputSchema"]["properties"][param]["default"] == default
    assert read_arguments(tool.params, {})[param] == default
    assert read_arguments(tool.params, {param: low})[param] == low
    assert read_arguments(tool.params, {param: high})[param] == high
    for wrong, shown in [
        (low - 1, str(low - 1)),
        (high + 1, str(high + 1)),
        (low + 0.5, str(low + 0.5)),
        ("5", '"5"'),
        (True, "true"),
        (None, "null"),
        ([low], f"[{low}]"),
    ]:
        with pytest.raises(ArgumentsError) as caught:
            tool.read_arguments({param: wrong})
        assert str(caught.value) == f"{param} must be an integer from {low} to {high}, got {shown}"


@each("name, param, default, options", CHOICES)
def test_choices(name: str, param: str, default: str, options: list[str]) -> None:
    tool = named(name)
    assert tool.read_arguments({})[param] == default
    assert [tool.read_arguments({param: option})[param] for option in options] == options
    for wrong, shown in [
        ("other", '"other"'),
        (options[0].upper(), f'"{options[0].upper()}"'),
        (1, "1"),
        (None, "null"),
    ]:
        with pytest.raises(ArgumentsError) as caught:
            tool.read_arguments({param: wrong})
        assert str(caught.value) == f"{param} must be one of {', '.join(options)}, got {shown}"


@each("tool", [tool for tool in ALL if tool.input_schema is None])
def test_an_unknown_parameter_gets_one_readable_sentence(tool: Tool) -> None:
    with pytest.raises(ArgumentsError) as caught:
        tool.read_arguments({"colour": 1})
    takes = ", ".join(param.name for param in tool.params)
    assert str(caught.value) == f'unknown parameter "colour": it takes {takes or "none"}'


# --- docs/tools.md ---------------------------------------------------------------------------------------------------

DOCS = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
TABLES, DEADLINES = DOCS.split("## Deadlines")
ROWS = {found[1]: found[0] for found in re.finditer(r"^\| `([^`]+)` \|.*$", TABLES, re.MULTILINE)}
OWN_SCHEMAS = {
    "json_schema_2020_12_tool": "the schema itself",
    "test_x_mcp_header": "`region` text of at most 100 characters",
    "slow_compute": "`seconds` number 0\u2013120 (1), `label` text of at most 100 characters",
}


def documented(param: Param) -> str:
    match param:
        case Integer():
            return f"`{param.name}` {param.low}\u2013{param.high} ({param.default})"
        case Choice():
            return f"`{param.name}` {', '.join(param.options)} ({param.default})"
        case Boolean():
            return f"`{param.name}` true, false ({'true' if param.default else 'false'})"
        case Text():
            return f"`{param.name}` text of at most {param.max_length} characters, required"
    raise AssertionError(f"no documentation for {param}")


@each("tool", ALL)
def test_the_documentation_names_every_parameter_and_bound(tool: Tool) -> None:
    row = ROWS[tool.name]
    cell = row.split(" | ")[1]
    expected = ", ".join(documented(param) for param in tool.params) or "none"
    assert cell == OWN_SCHEMAS.get(tool.name, expected)
    assert (tool.name in OWN_SCHEMAS) == (tool.input_schema is not None)


@each("tool", ALL)
def test_the_documentation_says_what_the_tool_says_of_itself(tool: Tool) -> None:
    """/api/tools shows the tool's own words."""
    assert tool.exercises
    assert tool.shows
    assert ROWS[tool.name].strip("| ").split(" | ")[2:] == [tool.exercises, tool.shows]


def own_deadline(tool: Tool, own: Seconds | None) -> list[str]:
    """How the documentation has to state it: a number, or the parameter that says it."""
    if own is None or not callable(own):
        return [] if own is None else [f"{own:g} s"]
    numbers = [param for param in tool.params if isinstance(param, Integer)]
    saying = [param for param in numbers if _says(tool, own, param)]
    longest = own({param.name: param.high for param in numbers})
    return [f"`{param.name}`, up to {param.high / 1000:g} s" for param in saying] or [f"{longest:g} s"]


def _says(tool: Tool, own: Callable[[Mapping[str, Any]], float | None], param: Integer) -> bool:
    """Whether a deadline is the value of a parameter, in seconds."""
    defaults = tool.read_arguments({})
    return all(own({**defaults, param.name: value}) == value / 1000 for value in (param.low, 1234, param.high))


@each("tool", ALL)
def test_the_documentation_names_every_own_deadline(tool: Tool) -> None:
    """Also the longest that a client may ask for."""
    for name, own in (("idle", tool.idle_s), ("ceiling", tool.ceiling_s)):
        rows = re.findall(rf"^\| `{tool.name}` \| ([^|]*) \|", DEADLINES, re.MULTILINE)
        stated = re.findall(rf"{name} (\d+ s|`\w+`, up to \d+ s)", rows[0]) if rows else []
        assert stated == own_deadline(tool, own)
        assert len(stated) == (own is not None), "it is a parameter that says it"
    longer = re.findall(rf"^\| `{tool.name}` \| `client_request_s` longer, both", DEADLINES, re.MULTILINE)
    assert bool(longer) is tool.asks_client


def test_the_documentation_names_nothing_that_does_not_exist() -> None:
    # The sixty items have one row together.
    listed = [item for group in TOOLSETS for item in group.resources]
    things = [item.uri for item in listed if not re.fullmatch(r"item-(?!1$).*", item.name)]
    things += [item.uri_template for group in TOOLSETS for item in group.templates]
    things += [item.name for group in TOOLSETS for item in group.prompts]
    things += [skill.uri.removesuffix("/SKILL.md") for group in TOOLSETS for skill in group.skills]
    assert set(ROWS) == {*IDS, *things}


def test_the_documentation_lists_the_stages() -> None:
    assert ", ".join(stages(10)) in DOCS
