"""The validator that checks all messages of the server in tests, beside a second one that was written independently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from probe.judge.reports.links import link

from .support.schemas import RevisionSchema, SchemaViolationError, schema

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "ext-tasks"]
# what may stand in the place of any value
SPOILED: list[Any] = [None, True, -1, 1.0, 1.5, 2**70, "", "é", [], [1], {}, {"x": 1}]
TOOL = {"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}}
GOOD = {
    "JSONRPCNotification": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"_meta": {}}},
    "ProgressNotification": {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": 0, "progress": 1, "total": 2.5, "message": "x"},
    },
    "ListToolsResult": {"tools": [TOOL], "ttlMs": 0, "cacheScope": "public", "resultType": "complete"},
    "CallToolResult": {
        "content": [{"type": "text", "text": "x"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "isError": False,
        "resultType": "complete",
    },
}


def spoiled(value: Any) -> Iterator[Any]:
    """The value itself, and each value that differs from it in one member: another value, or none."""
    yield value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        for other in [*SPOILED, *spoiled(member)]:
            changed = json.loads(json.dumps(value))
            changed[key] = other
            yield changed
        if isinstance(value, dict):
            yield {name: rest for name, rest in value.items() if name != key}


def independent(official: RevisionSchema, definition: str) -> Any:
    key = "$defs" if "$defs" in official.document else "definitions"
    dialect = jsonschema.Draft202012Validator if key == "$defs" else jsonschema.Draft7Validator
    return dialect({key: official.definitions, "$ref": f"#/{key}/{definition}"})


def accepts(official: RevisionSchema, value: Any, definition: str) -> bool:
    try:
        official.check(value, definition)
    except SchemaViolationError:
        return False
    return True


@pytest.mark.parametrize("revision", REVISIONS)
def test_two_validators_agree(revision: str) -> None:
    official = schema(revision)
    verdicts = set()
    for definition in GOOD.keys() & official.definitions.keys():
        second = independent(official, definition)
        for value in spoiled(GOOD[definition]):
            verdict = accepts(official, value, definition)
            assert verdict == second.is_valid(value), (definition, value)
            verdicts.add(verdict)
    assert verdicts == {True, False}


def test_the_tasks_extension_is_the_dated_text_everywhere() -> None:
    """Its drafts change; what the judge and the requirements quote does not."""
    assert "/2026-07-28/" in schema("ext-tasks").document["$id"]
    assert link("ext-tasks/tasks.md").endswith("/specification/2026-07-28/tasks.md")
