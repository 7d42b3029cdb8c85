"""The legacy registry against the official schemas: which methods exist, since when, and what fits them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.wire.errors import Code, McpError
from probe.wire.revisions import LEGACY
from probe.wire.v2025.registry import REQUESTS, SERVER_REQUESTS, client_result, offers, request_params, task_request

from ..support.schemas import RevisionSchema, schema
from .params import JUNK, near, params_schema, resolve

NEWEST = LEGACY[-1]


def since(union: str) -> dict[str, str]:
    """Each method of a union of the schemas, with the first revision that has it."""
    first: dict[str, str] = {}
    for revision in LEGACY:
        for method in schema(revision).methods_of(union):
            first.setdefault(method, revision)
    return first


def code(method: str, revision: str, params: Mapping[str, Any] | None) -> int | None:
    """The error code for a request; None when it fits."""
    try:
        request_params(method, revision, params)
    except McpError as error:
        assert error.message
        return error.code
    return None


def test_the_methods_are_those_of_the_schemas_each_since_its_revision_and_none_besides() -> None:
    assert {method: row.since for method, row in REQUESTS.items()} == since("ClientRequest")


def test_no_revision_took_a_method_away() -> None:
    """Otherwise `since` would not be the whole story."""
    sets = [set(schema(revision).methods_of("ClientRequest")) for revision in LEGACY]
    assert sets == sorted(sets, key=len)
    assert all(older <= newer for older, newer in pairwise(sets))


def test_what_the_server_asks_for_exists_since_the_revision_that_says_so() -> None:
    """The tasks/* that a server may send as well are not used: it never makes a task of a request to the client."""
    known = since("ServerRequest")
    assert {method: row.since for method, row in SERVER_REQUESTS.items()} == {
        method: first for method, first in known.items() if not method.startswith("tasks/")
    }


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("method", [*REQUESTS, "server/discover", "Ping", "ping ", "", "notifications/initialized"])
def test_a_method_is_not_found_exactly_where_the_revision_has_none(method: str, revision: str) -> None:
    exists = method in schema(revision).methods_of("ClientRequest")
    assert (code(method, revision, {}) != Code.METHOD_NOT_FOUND) == exists


# What fits. The official JSON schema is the judge; where the server differs, the difference stands in this table.


def _without_null(official: RevisionSchema, shape: Mapping[str, Any], value: Any) -> Any:
    """An optional member that is null counts as left out: JavaScript clients send such, and nothing else is meant.

    Not a progress token: whether there is one decides what the server sends.
    """
    shape = resolve(official, shape)
    if isinstance(value, list):
        return [_without_null(official, shape.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    members, required = shape.get("properties", {}), shape.get("required", [])
    kept = {n: v for n, v in value.items() if v is not None or n in required or n not in members}
    return {n: v if n == "_meta" else _without_null(official, members.get(n, {}), v) for n, v in kept.items()}


def _only_written_integers(official: RevisionSchema, shape: Mapping[str, Any], value: Any) -> Any:
    """1.0 is no integer: a token must be echoed with its type, and 1.0 and 1 are two tokens."""
    shape = resolve(official, shape)
    if isinstance(value, float) and "integer" in shape.get("type", ()):
        return 1.5
    if not isinstance(value, dict):
        return value
    members = shape.get("properties", {})
    return {n: _only_written_integers(official, members.get(n, {}), v) for n, v in value.items()}


def _with_reference_type(official: RevisionSchema, shape: Mapping[str, Any], value: Any) -> Any:
    """A reference that lacks its `type` is known by its other member: the official models allow that."""
    ref = value.get("ref")
    if not isinstance(ref, dict) or "type" in ref:
        return value
    return {**value, "ref": {**ref, "type": "ref/resource" if isinstance(ref.get("uri"), str) else "ref/prompt"}}


def _with_known_extensions(official: RevisionSchema, shape: Mapping[str, Any], value: Any) -> Any:
    """Clients announce `extensions` to servers of any age, so it is judged, though only later revisions have it."""
    capabilities = value.get("capabilities")
    declared = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    known = declared is None or (isinstance(declared, dict) and all(isinstance(v, dict) for v in declared.values()))
    return value if known else {**value, "capabilities": "extensions are not objects"}


def _with_known_title(official: RevisionSchema, shape: Mapping[str, Any], value: Any) -> Any:
    """The `title` of a prompt reference is judged in 2025-03-26 too, which has none: one model serves all revisions."""
    ref = value.get("ref")
    named = isinstance(ref, dict) and ref.get("type") == "ref/prompt"
    known = not named or isinstance(ref.get("title"), str | None)
    return value if known else {**value, "ref": "its title is no string"}


DIFFERENCES = [_without_null, _only_written_integers, _with_reference_type, _with_known_extensions, _with_known_title]


def official_verdict(method: str, revision: str, params: dict[str, Any]) -> bool:
    """Whether parameters fit, by the schema of the revision, after the differences above."""
    # The session's revision is known only after `initialize`.
    official = schema(NEWEST if method == "initialize" else revision)
    shape = params_schema(official, method)
    # All requests have the members of ping; the schemas repeat them in some places and not in others.
    common = params_schema(official, "ping")
    for difference in DIFFERENCES:
        params = difference(official, shape, difference(official, common, params))
    return all(official.fits(params, part) for part in (shape, common))


@pytest.mark.parametrize("revision", LEGACY)
@given(data=st.data())
def test_parameters_fit_where_the_official_schema_says_so(revision: str, data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(sorted(schema(revision).methods_of("ClientRequest"))))
    official = schema(NEWEST if method == "initialize" else revision)
    params = data.draw(near(official, params_schema(official, method)).filter(lambda value: isinstance(value, dict)))
    assert code(method, revision, params) == (None if official_verdict(method, revision, params) else -32602)


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("method", REQUESTS)
def test_missing_params_are_judged_as_an_empty_object(method: str, revision: str) -> None:
    """Every `params` that may be left out has no required member, and every one that may not has some."""
    official = schema(revision)
    if method in official.methods_of("ClientRequest"):
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        needed = None if official.fits(message, official.definitions[official.request_of(method)]) else -32602
        assert code(method, revision, None) == code(method, revision, {}) == needed


@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    [
        ("tools/call", {}, "params.name is required"),
        ("tools/call", {"name": 5}, "params.name must be a string"),
        ("tools/call", {"name": "x", "arguments": [1]}, "params.arguments must be an object"),
        ("tools/call", {"name": "x", "task": {"ttl": "5"}}, "params.task.ttl must be an integer"),
        ("tools/list", {"cursor": 5}, "params.cursor must be a string"),
        ("prompts/get", {"name": "x", "arguments": {"a": 5}}, "params.arguments.a must be a string"),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a"}},
            "params.argument",
        ),
        ("tools/list", {"_meta": {"progressToken": 1.5}}, "params._meta.progressToken must be"),
    ],
)
def test_the_error_names_the_first_member_at_fault(method: str, params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(McpError) as caught:
        request_params(method, NEWEST, params)
    assert caught.value.message.startswith(f"Invalid params: {sentence}")
    assert "\n" not in caught.value.message


# Tasks and capabilities.


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("params", "ttl"),
    [({"name": "x", "task": {}}, None), ({"name": "x", "task": {"ttl": 5}}, 5), ({"name": "x"}, "none")],
)
def test_a_task_is_wished_for_only_where_the_revision_has_tasks(
    revision: str, params: dict[str, Any], ttl: Any
) -> None:
    """Receivers without the capability process the request normally, "ignoring any task-augmentation metadata"."""
    wish = task_request(request_params("tools/call", revision, params), revision)
    if ttl == "none" or revision < "2025-11-25":
        assert wish is None
    else:
        assert wish is not None
        assert wish.ttl == ttl


@pytest.mark.parametrize("task", [value for value in JUNK if not isinstance(value, dict)])
def test_a_task_of_another_shape_is_ignored_before_2025_11_25_and_refused_since(task: Any) -> None:
    params = {"name": "x", "task": task}
    assert task_request(request_params("tools/call", "2025-06-18", params), "2025-06-18") is None
    with pytest.raises(McpError, match=r"params\.task"):
        task_request(request_params("tools/call", "2025-11-25", params), "2025-11-25")


@pytest.mark.parametrize(
    ("capabilities", "capability", "offered"),
    [
        ({}, "roots", (False, False, False)),
        ({"roots": {}}, "roots", (True, True, True)),
        ({"roots": {"listChanged": True}}, "roots", (True, True, True)),
        ({"sampling": {}}, "sampling", (True, True, True)),
        ({"sampling": None}, "sampling", (False, False, False)),
        ({"elicitation": {}}, "elicitation", (False, True, True)),
        ({"elicitation": {"form": {}}}, "elicitation", (False, True, True)),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation", (False, True, True)),
        ({"elicitation": {"url": {}}}, "elicitation", (False, False, False)),
        ({"experimental": {}}, "experimental", (False, False, False)),
    ],
)
def test_a_client_is_asked_only_for_what_it_declared_and_its_revision_has(
    capabilities: dict[str, Any], capability: str, offered: tuple[bool, ...]
) -> None:
    assert tuple(offers(capabilities, revision, capability) for revision in LEGACY) == offered


# What a client answers to the server's requests.

ANSWERS = {
    "ping": "EmptyResult",
    "roots/list": "ListRootsResult",
    "sampling/createMessage": "CreateMessageResult",
    "elicitation/create": "ElicitResult",
}


def test_each_request_of_the_server_has_its_result_judged() -> None:
    assert set(ANSWERS) == set(SERVER_REQUESTS)


@pytest.mark.parametrize(
    ("method", "result", "fault"),
    [
        ("ping", {}, None),
        ("ping", {"_meta": {}, "x": 1}, None),
        ("roots/list", {"roots": []}, None),
        ("roots/list", {"roots": [{"uri": "file:///a", "name": "A"}]}, None),
        ("roots/list", {}, "result.roots is required"),
        ("roots/list", {"roots": {}}, "result.roots must be an array"),
        ("roots/list", {"roots": [{"name": "A"}]}, "result.roots.0.uri is required"),
        ("elicitation/create", {"action": "accept", "content": {"a": 1, "b": True, "c": ["x"]}}, None),
        ("elicitation/create", {"action": "decline"}, None),
        ("elicitation/create", {}, "result.action is required"),
        ("elicitation/create", {"action": "maybe"}, "result.action must be"),
        ("elicitation/create", {"action": "accept", "content": [1]}, "result.content must be an object"),
        (
            "sampling/createMessage",
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
            None,
        ),
        (
            "sampling/createMessage",
            {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}], "stopReason": "endTurn"},
            None,
        ),
        ("sampling/createMessage", {"role": "assistant", "content": {"type": "text", "text": "hi"}}, "result.model is"),
        (
            "sampling/createMessage",
            {"role": "assistant", "model": "m", "content": {"type": "text"}},
            "result.content.text is required",
        ),
    ],
)
def test_an_answer_is_judged_as_the_schema_would(method: str, result: dict[str, Any], fault: str | None) -> None:
    said = client_result(method, result)
    assert (said is None) == (fault is None), said
    assert said is None or said.startswith(fault or "")
    official = schema(NEWEST)
    assert official.fits(result, official.definitions[ANSWERS[method]]) == (fault is None)
