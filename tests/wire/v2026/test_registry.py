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


FAULTS = [
    ("tools/call", None, "name"),
    ("tools/call", {"name": 5}, "name"),
    ("tools/call", {"name": "t", "arguments": []}, "arguments"),
    ("tools/call", {"name": "t", "inputResponses": []}, "inputResponses"),
    ("tools/call", {"name": "t", "input_responses": {}, "requestState": 5}, "requestState"),
    ("prompts/get", {"name": "p", "arguments": {"a": 1}}, "arguments"),
    ("resources/read", {"name": "p"}, "uri"),
    ("tools/list", {"cursor": 5}, "cursor"),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}, "argument"),
    ("subscriptions/listen", {}, "notifications"),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": "yes"}}, "toolsListChanged"),
    ("subscriptions/listen", {"notifications": {"taskIds": "t"}}, "taskIds"),
    ("subscriptions/listen", {"notifications": {"taskIds": [5]}}, "taskIds"),
    ("tasks/get", {}, "taskId"),
    ("tasks/get", {"task_id": "t"}, "taskId"),
    ("tasks/get", {"taskId": 5}, "taskId"),
    ("tasks/update", {"taskId": "t"}, "inputResponses"),
    ("tasks/update", {"taskId": "t", "inputResponses": None}, "inputResponses"),
]


@pytest.mark.parametrize(("method", "params", "member"), FAULTS)
def test_a_fault_is_one_sentence_that_names_the_member(method: str, params: Any, member: str) -> None:
    with pytest.raises(McpError) as caught:
        request_params(method, params)
    assert caught.value.code is Code.INVALID_PARAMS
    assert caught.value.message.startswith("Invalid params: params")
    assert member in caught.value.message
    assert "\n" not in caught.value.message


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
