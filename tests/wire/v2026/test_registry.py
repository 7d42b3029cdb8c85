"""Which methods 2026-07-28 has, and how strictly their parameters are read."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from probe.wire.errors import Code, McpError
from probe.wire.v2026.registry import (
    REQUESTS,
    CallToolParams,
    ListenParams,
    TaskParams,
    UpdateTaskParams,
    client_answer,
    offers,
    request_params,
)

SCHEMAS = files("probe.wire") / "schemas"


def methods_of(document: str) -> set[str]:
    """The methods of all requests that a schema defines."""
    definitions = json.loads((SCHEMAS / f"{document}.json").read_text())["$defs"]
    found = set()
    for name, definition in definitions.items():
        for part in [definition, *definition.get("allOf", [])]:
            if name.endswith("Request") and "const" in (method := part.get("properties", {}).get("method", {})):
                found.add(method["const"])
    return found


def test_the_methods_are_those_of_the_schemas_less_what_the_server_asks() -> None:
    asked = {"elicitation/create", "sampling/createMessage", "roots/list"}
    defined = methods_of("2026-07-28") | methods_of("ext-tasks") | methods_of("ext-skills")
    assert set(REQUESTS) == defined - asked


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "elicitation/create",
        "unknown/method",
        "TOOLS/LIST",
        "",
    ],
)
def test_what_has_left_does_not_exist(method: str) -> None:
    with pytest.raises(McpError) as caught:
        request_params(method, {"taskId": "t"})
    assert caught.value.code is Code.METHOD_NOT_FOUND
    assert "2026-07-28" in caught.value.message


def test_a_long_method_is_cut_in_the_message() -> None:
    with pytest.raises(McpError) as caught:
        request_params("x" * 100_000, None)
    assert len(caught.value.message) < 200


def test_mcp_name_repeats_what_the_specification_names() -> None:
    named = {method: row.name_member for method, row in REQUESTS.items() if row.name_member is not None}
    assert named == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
        "tasks/get": "taskId",
        "tasks/update": "taskId",
        "tasks/cancel": "taskId",
    }


def test_only_three_methods_can_be_asked_for_input() -> None:
    assert {method for method, row in REQUESTS.items() if row.input_responses} == {
        "tools/call",
        "prompts/get",
        "resources/read",
    }
    assert {method for method, row in REQUESTS.items() if row.extension} == {
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
    }


def test_a_retry_keeps_its_answers_as_sent() -> None:
    answers = {"a": {"action": "accept"}, "junk": {"ignored": True}, "worse": 12345}
    params = request_params("tools/call", {"name": "t", "inputResponses": answers, "requestState": "s"})
    assert isinstance(params, CallToolParams)
    assert (params.name, params.input_responses, params.request_state) == ("t", answers, "s")


@pytest.mark.parametrize("task", [{"ttl": 1, "pollInterval": 2}, {"ttl": "soon"}, None, 5])
def test_the_legacy_task_wish_is_ignored_whatever_its_shape(task: Any) -> None:
    params = request_params("tools/call", {"name": "t", "task": task})
    assert isinstance(params, CallToolParams)
    assert params.task is None


def test_tasks_methods() -> None:
    cancel = request_params("tasks/cancel", {"taskId": "t", "extra": 1})
    update = request_params("tasks/update", {"taskId": "t", "inputResponses": {"k": {"ignored": True}}})
    assert isinstance(cancel, TaskParams)
    assert isinstance(update, UpdateTaskParams)
    assert (cancel.task_id, update.input_responses) == ("t", {"k": {"ignored": True}})


def test_the_filter_of_listen_has_the_extensions_member_too() -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["a:b"], "taskIds": ["t1", "t2"]}
    params = request_params("subscriptions/listen", {"notifications": wanted})
    assert isinstance(params, ListenParams)
    assert params.notifications.model_dump(by_alias=True, exclude_none=True) == wanted


EXAMPLES: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "chatty"},
    "prompts/get": {"name": "attachments"},
    "resources/read": {"uri": "probe://text"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "headlines"},
        "argument": {"name": "year", "value": "19"},
    },
    "subscriptions/listen": {"notifications": {}},
    "skills/get": {"uri": "skill://exercise-client/SKILL.md"},
    "resources/directory/read": {"uri": "skill://exercise-client"},
    "tasks/get": {"taskId": "x"},
    "tasks/update": {"taskId": "x", "inputResponses": {}},
    "tasks/cancel": {"taskId": "x"},
}


NO_STRING: list[Any] = [None, 5, 1.5, True, [], {}, ["x"]]
NO_OBJECT: list[Any] = [None, 5, True, "x", [], [{}]]
NO_LIST: list[Any] = [5, True, "x", {}]
# The cursor and other optional members: null is how some languages leave one out, and is taken for that.
WRONG: list[tuple[str, str, list[Any]]] = [
    ("tools/call", "name", NO_STRING),
    ("tools/call", "arguments", NO_OBJECT[1:]),
    ("tools/call", "inputResponses", NO_OBJECT),
    ("tools/call", "requestState", NO_STRING),
    ("prompts/get", "name", NO_STRING),
    ("prompts/get", "arguments", [*NO_OBJECT[1:], {"style": 5}, {"style": None}, {"style": {}}]),
    ("prompts/get", "inputResponses", NO_OBJECT),
    ("prompts/get", "requestState", NO_STRING),
    ("resources/read", "uri", NO_STRING),
    ("resources/read", "inputResponses", NO_OBJECT),
    ("resources/read", "requestState", NO_STRING),
    ("tools/list", "cursor", NO_STRING[1:]),
    ("prompts/list", "cursor", NO_STRING[1:]),
    ("resources/list", "cursor", NO_STRING[1:]),
    ("resources/templates/list", "cursor", NO_STRING[1:]),
    ("completion/complete", "ref", [*NO_OBJECT, {}, {"type": "ref/prompt"}, {"type": "ref/x", "name": "headlines"}]),
    ("completion/complete", "argument", [*NO_OBJECT, {}, {"name": "year"}, {"name": "year", "value": 5}]),
    ("completion/complete", "context", [*NO_OBJECT[1:], {"arguments": {"style": 5}}]),
    ("subscriptions/listen", "notifications", NO_OBJECT),
    *(
        ("subscriptions/listen", "notifications", [{member: value} for value in values])
        for member, values in [
            ("toolsListChanged", [5, "true", [], {}]),
            ("promptsListChanged", [5, "true", [], {}]),
            ("resourcesListChanged", [5, "true", [], {}]),
            ("resourceSubscriptions", [*NO_LIST, [5], [None], [["x"]]]),
            ("taskIds", [*NO_LIST, [5], [None], [["x"]]]),
        ]
    ),
    ("skills/list", "cursor", NO_STRING[1:]),
    ("skills/get", "uri", NO_STRING),
    ("resources/directory/read", "uri", NO_STRING),
    ("resources/directory/read", "cursor", NO_STRING[1:]),
    ("tasks/get", "taskId", NO_STRING),
    ("tasks/cancel", "taskId", NO_STRING),
    ("tasks/update", "taskId", NO_STRING),
    ("tasks/update", "inputResponses", NO_OBJECT),
]


@pytest.mark.proves("2026-07-28/basic/16", "2026-07-28/mrtr/16", "2026-07-28/mrtr/17")
@pytest.mark.parametrize(("method", "member", "values"), WRONG, ids=lambda part: part if isinstance(part, str) else "")
def test_a_member_of_the_wrong_type_is_named(method: str, member: str, values: list[Any]) -> None:
    for value in values:
        fault = refusal(method, {**EXAMPLES.get(method, {}), member: value})
        assert f"params.{member}" in fault, fault


def refusal(method: str, params: Any) -> str:
    """The one sentence by which params are refused."""
    with pytest.raises(McpError) as caught:
        request_params(method, params)
    assert caught.value.code is Code.INVALID_PARAMS
    assert caught.value.message.startswith("Invalid params: params")
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("method", "member"), [(method, member) for method, params in EXAMPLES.items() for member in params]
)
def test_a_required_member_that_is_missing_is_named_also_when_it_is_there_in_pythons_spelling(
    method: str, member: str
) -> None:
    """The official models, which read the params, know both spellings of a name."""
    left = {name: value for name, value in EXAMPLES[method].items() if name != member}
    for params in (left, {"task_id": "x", "input_responses": {}, "task_ids": [], **left}):
        assert f"params.{member} is required" in refusal(method, params)


def test_every_method_has_its_rows() -> None:
    """server/discover takes nothing, so nothing in it can be wrong."""
    assert {method for method, _, _ in WRONG} == set(REQUESTS) - {"server/discover"}


GOOD = {
    "elicitation/create": [
        {"action": "accept", "content": {"a": "x", "b": 1, "c": 1.5, "d": True, "e": ["x"]}},
        {"action": "decline"},
        {"action": "cancel", "later": 1},
    ],
    "sampling/createMessage": [
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "t"}, "stopReason": "endTurn"},
        {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "t"}]},
    ],
    "roots/list": [{"roots": []}, {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}],
}
BAD: dict[str, list[Any]] = {
    "elicitation/create": [
        12345,
        None,
        [],
        "accept",
        {},
        {"action": "yes"},
        {"action": "accept", "content": {"a": {}}},
    ],
    "sampling/createMessage": [
        {},
        {"role": "assistant", "model": "m", "content": "text"},
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "t", "annotations": {"priority": "1"}}},
        {"action": "accept"},
    ],
    "roots/list": [{}, {"roots": {}}, {"roots": [{"name": "no uri"}]}, {"action": "accept"}],
}


@pytest.mark.parametrize("method", GOOD)
def test_an_answer_is_judged_by_what_was_asked(method: str) -> None:
    for answer in GOOD[method]:
        assert client_answer(method, answer) is None
    for answer in BAD[method]:
        problem = client_answer(method, answer)
        assert problem is not None
        assert problem.startswith("result")
    for other in GOOD.keys() - {method}:
        assert client_answer(method, GOOD[other][0]) is not None


@pytest.mark.parametrize(
    ("capabilities", "method", "offered"),
    [
        ({"elicitation": {}}, "elicitation/create", True),
        ({"elicitation": {"form": {}}}, "elicitation/create", True),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", True),
        ({"elicitation": {"url": {}}}, "elicitation/create", False),
        ({"elicitation": None}, "elicitation/create", False),
        ({"elicitation": True}, "elicitation/create", False),
        ({}, "elicitation/create", False),
        ({"sampling": {}}, "sampling/createMessage", True),
        ({"sampling": {}}, "elicitation/create", False),
        ({"roots": {"listChanged": True}}, "roots/list", True),
        ({"roots": []}, "roots/list", False),
        ({"tools": {}}, "tools/list", False),
        ({"sampling": {}}, "sampling/other", False),
    ],
)
def test_what_a_client_may_be_asked(capabilities: dict[str, Any], method: str, offered: bool) -> None:
    assert offers(capabilities, method) is offered
