"""The official schemas as the judge uses them: whole, mended where they are known to be wrong, blind where it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from probe.judge.rules.messages import schemas
from probe.log import redaction
from probe.wire.revisions import LEGACY, MODERN

ACCEPTED = {"action": "accept", "content": {"share": 0.25, "names": ["a"], "count": 2}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"experimental": {"x": {"share": 0.25, "none": None}}},
}


@pytest.mark.parametrize(
    ("revision", "definition", "value"),
    [
        ("2025-06-18", "ElicitResult", {"action": "accept", "content": {"share": 0.25}}),
        ("2025-11-25", "ElicitResult", ACCEPTED),
        ("2026-07-28", "ElicitResult", ACCEPTED),
        ("2025-11-25", "TaskMetadata", {"ttl": 1500.5}),
        ("2026-07-28", "RequestParams", {"_meta": META}),
        ("2025-03-26", "ListRootsResult", {"roots": [{"uri": "no uri at all", "extra": 1}]}),
    ],
)
def test_what_a_client_may_send_fits(revision: str, definition: str, value: Any) -> None:
    assert schemas.misfit(revision, definition, value) is None


@pytest.mark.parametrize(
    ("revision", "definition", "value", "pointer", "why"),
    [
        (
            "2025-11-25",
            "ElicitResult",
            {"action": "perhaps"},
            "/action",
            '"accept", "cancel" or "decline", got "perhaps"',
        ),
        ("2025-11-25", "ElicitResult", {"action": "accept", "content": {"a/b": None}}, "/content/a~1b", "got null"),
        ("2025-11-25", "PingRequest", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, "/id", "got 1.5"),
        ("2025-03-26", "ListRootsResult", {"roots": None}, "/roots", 'not of type "array", got null'),
        ("2026-07-28", "RequestParams", {"_meta": {}}, "/_meta", "is a required property"),
        ("2025-11-25", "Error", {"code": 1.5, "message": "no"}, "/code", "got 1.5"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(
    revision: str, definition: str, value: Any, pointer: str, why: str
) -> None:
    misfit = schemas.misfit(revision, definition, value)
    assert misfit is not None
    assert misfit.pointer == pointer
    assert why in misfit.why


def test_a_place_is_counted_from_the_root_of_the_message() -> None:
    misfit = schemas.misfit("2025-11-25", "ElicitResult", {"action": 1}, at="/result")
    assert str(misfit).startswith("/result/action: ")


@pytest.mark.parametrize(
    "content",
    [{"password": {"a": 1}}, {"password": None}, {"secret": {"token": [1, None]}}],
)
def test_what_redaction_hid_fits(content: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": content}}
    hidden = redaction.hidden_members(message)
    shown = redaction.message(message)["result"]
    assert schemas.misfit("2025-11-25", "ElicitResult", shown, hidden, at="/result") is None
    assert schemas.misfit("2025-11-25", "ElicitResult", {**shown, "action": "x"}, hidden, at="/result") is not None


def test_a_hidden_member_excuses_the_alternatives_that_it_may_belong_to() -> None:
    block = {"type": "tool_use", "id": "1", "name": "x", "input": {"token": "[redacted]"}}
    result = {"role": "assistant", "model": "m", "content": {**block, "id": 1}}
    assert schemas.misfit("2025-11-25", "CreateMessageResult", result) is not None
    assert schemas.misfit("2025-11-25", "CreateMessageResult", result, (("/content/input/token", "object"),)) is None


def test_where_more_is_hidden_than_is_noted_nothing_is_said() -> None:
    hidden = tuple((f"/content/{number}/token", "string") for number in range(100))
    assert schemas.misfit("2025-11-25", "ElicitResult", {"action": 1}, hidden) is None
    assert schemas.misfit("2025-11-25", "ElicitResult", {"action": 1}, hidden[:99]) is not None


@pytest.mark.parametrize("revision", [*LEGACY, *MODERN])
def test_each_method_of_a_client_has_its_definition(revision: str) -> None:
    methods = schemas.client_methods(revision)
    assert {"tools/list", "tools/call", "notifications/cancelled"} <= methods.keys()
    assert ("initialize" in methods) == (revision in LEGACY)
    assert "sampling/createMessage" not in methods
    for method, definition in methods.items():
        misfit = schemas.misfit(revision, definition, {"jsonrpc": "2.0", "id": 1, "method": method + "x", "params": {}})
        assert misfit is not None, method
    assert schemas.request_of(revision, "no/such") is None
    assert schemas.result_of(revision, "sampling/createMessage") == "CreateMessageResult"


def test_an_unknown_definition_is_no_misfit_of_the_client() -> None:
    with pytest.raises(KeyError):
        schemas.misfit("2025-03-26", "ElicitResult", {})


@pytest.mark.parametrize(
    ("definition", "value", "right"),
    [
        ("ClientCapabilities", {"elicitation": {"form": None}}, "`/elicitation/form` is an object, such as `{}`"),
        ("Implementation", {"name": "a"}, '`/version` is a string, such as `"text"`'),
        ("ElicitResult", {"action": "perhaps"}, '`/action` is one of `"accept"`, `"cancel"`, `"decline"`'),
        (
            "ElicitResult",
            {"action": "accept", "content": {"a": None}},
            "is an array or a string or a number or",
        ),
        ("PingRequest", {"jsonrpc": "2.0", "id": None, "method": "ping"}, "`/id` is a string or an integer"),
        ("PingRequest", {"jsonrpc": "1.0", "id": 1, "method": "ping"}, '`/jsonrpc` is `"2.0"`'),
        ("Root", None, 'it is an object, such as `{"uri":"text"}`'),
    ],
)
def test_what_does_not_fit_is_told_what_is_right(definition: str, value: Any, right: str) -> None:
    misfit = schemas.misfit("2025-11-25", definition, value)
    assert misfit is not None
    assert right in misfit.right
    assert str(misfit).endswith(f"; right: {misfit.right}")


@pytest.mark.parametrize("revision", [*LEGACY, *MODERN])
def test_an_example_of_what_is_right_fits(revision: str) -> None:
    shown = 0
    for definition in schemas.client_methods(revision).values():
        for value in (None, {}):
            for misfit in schemas.misfits(revision, definition, value):
                found = re.fullmatch(r"(?:it|`/(\w+)`) is an object, such as `(.*)`", misfit.right)
                if found is not None:
                    example = json.loads(found[2])
                    wrong = schemas.misfits(revision, definition, {found[1]: example} if found[1] else example)
                    assert not [each for each in wrong if each.pointer.startswith(f"/{found[1] or ''}")]
                    shown += 1
    assert shown > 10
