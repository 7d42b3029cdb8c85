"""The schemas that a host's tools may have, and those that they may not: each is refused with which and why."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from probe.engine.host_tools.hosted import Schema, SchemaError
from probe.settings import Limits
from probe.wire.jsonrpc import encode

from ..support.hosts import PLAIN, Host, hosting
from ..support.probe import Probe

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def of(schema: Any) -> dict[str, Any]:
    """An object with the member `a`, which has this schema."""
    return {"type": "object", "properties": {"a": schema}}


ROOM = 1024 - len(encode(of({"title": ""})))
"""How long the title can be in a schema of 1024 bytes."""

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({}, '"type" must be "object"'),
    "an array": ({"type": "array"}, '"type" must be "object"'),
    "an object or nothing": ({"type": ["object", "null"]}, '"type" must be "object"'),
    "an older dialect": ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, '"$schema" must be'),
    "no dialect": ({"type": "object", "$schema": 5}, '"$schema" must be'),
    "a reference to a page": (of({"$ref": "http://127.0.0.1:9/schema"}), "nothing is fetched"),
    "a reference to a file": (of({"$ref": "file:///etc/hostname"}), "nothing is fetched"),
    "a reference by another base": ({"$id": "http://x.example/", **of({"$ref": "y"})}, "nothing is fetched"),
    "a reference to nothing": (of({"$ref": "#/$defs/no"}), "/$defs/no"),
    "an anchor that is nowhere": (of({"$dynamicRef": "#no"}), "no"),
    "look-ahead": (of({"pattern": "(?=a)b"}), "properties.a.pattern"),
    "look-behind": (of({"pattern": "(?<!a)b"}), "properties.a.pattern"),
    "a back-reference": (of({"pattern": r"(a)\1"}), "properties.a.pattern"),
    "a pattern of many states": (of({"pattern": "(a{1000}){1000}"}), "properties.a.pattern"),
    "look-ahead in a name": ({"type": "object", "patternProperties": {"(?!x)": {}}}, "patternProperties"),
    "a type that is none": (of({"type": "strin"}), "properties.a.type"),
    "a negative count": ({"type": "object", "minProperties": -1}, "minProperties"),
    "properties that are none": ({"type": "object", "properties": [1]}, "properties"),
    "required that is none": ({"type": "object", "required": "a"}, "required"),
    "a header that is no token": (of({"type": "string", "x-mcp-header": "a b"}), "x-mcp-header"),
    "a header on an array": (of({"type": "array", "x-mcp-header": "A"}), "x-mcp-header"),
    "a header twice": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "x-mcp-header": "Word"},
                "b": {"type": "string", "x-mcp-header": "word"},
            },
        },
        "x-mcp-header",
    ),
}


@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize("name", BAD)
async def test_a_schema_that_cannot_be_used_is_refused_with_the_name_of_its_tool(
    probe: Probe, host: Host, name: str, member: str, autojump_clock: MockClock
) -> None:
    schema, why = BAD[name]
    tool = {**PLAIN, "name": "odd", member: schema}
    code, message = await host.refused("host.update", {"tools": [PLAIN, tool]})
    assert code == -32602
    assert message.startswith(f"Invalid params: the {member} of odd: ")
    assert why in message
    assert len(message) < 600
    listed = await probe.modern(tools="hosts").call("tools/list")
    assert [tool["name"] for tool in listed["tools"]] == ["demo__echo", "demo__plain"]


GOOD: dict[str, tuple[dict[str, Any], Any, Any]] = {
    # a value that fits, and one that does not
    "anything": ({"type": "object"}, {"a": [None]}, None),
    "the dialect named": ({"type": "object", "$schema": DIALECT}, {}, None),
    "a reference within": ({"$defs": {"w": {"type": "string"}}, **of({"$ref": "#/$defs/w"})}, {"a": ""}, {"a": 1}),
    "a reference to itself": (of({"$ref": "#"}), {"a": {"a": {}}}, {"a": {"a": 5}}),
    "nothing but itself": ({"type": "object", "$ref": "#"}, {}, None),
    "the metaschema": (of({"$ref": DIALECT}), {"a": {"type": "null"}}, {"a": {"type": "nil"}}),
    "a pattern": (of({"pattern": "^(a|b)+$"}), {"a": "ab" * 50_000}, {"a": "ab" * 50_000 + "c"}),
    "a count that no machine holds": ({"type": "object", "minProperties": 10**30}, None, {}),
    "a number that no machine holds": (of({"maximum": 10**400}), {"a": 10**399}, {"a": 10**401}),
    "a header": (of({"type": "string", "x-mcp-header": "Word"}), {"a": ""}, {"a": 1}),
    "names that are checked": ({"type": "object", "unevaluatedProperties": False}, {}, {"a": 1}),
}


@pytest.mark.parametrize("name", GOOD)
async def test_a_schema_that_can_be_used_judges(name: str) -> None:
    schema, fits, does_not = GOOD[name]
    usable = Schema(schema, Limits())
    assert fits is None or usable.fault(fits) is None
    fault = None if does_not is None else usable.fault(does_not)
    assert (fault is None) == (does_not is None)
    assert fault is None or 5 < len(fault) < 500


@pytest.mark.parametrize(
    ("limit", "value", "fits", "beyond"),
    [
        ("max_host_schema_depth", 5, of({"items": {"items": {}}}), of({"items": {"items": {"not": {}}}})),
        ("max_host_schema_bytes", 1024, of({"title": "x" * ROOM}), of({"title": "x" * (ROOM + 1)})),
    ],
)
async def test_the_size_of_a_schema_has_its_limits(
    limit: str, value: int, fits: dict[str, Any], beyond: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with hosting(**{limit: value}) as (probe, host):
        await host.update({**PLAIN, "inputSchema": fits, "outputSchema": fits})
        for member in ("inputSchema", "outputSchema"):
            code, message = await host.refused("host.update", {"tools": [{**PLAIN, member: beyond}]})
            assert code == 11
            assert message.startswith(f"the {member} of plain: ")
            assert message.endswith(f"({limit})")
        reached = probe.events("limit.reached")
        assert [(event["limit"], event["value"]) for event in reached] == [(limit, value)] * 2


async def test_as_deep_as_it_may_be_a_schema_can_still_be_listed(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    schema: dict[str, Any] = {}
    for _ in range(29):
        schema = {"not": schema}
    deepest = of(schema)
    await host.update({**PLAIN, "inputSchema": deepest, "outputSchema": deepest})
    for revision in ("2025-11-25", "2026-07-28"):
        client = probe.modern(tools="hosts") if revision == "2026-07-28" else await probe.client(tools="hosts")
        (tool,) = (await client.call("tools/list"))["tools"]
        assert (tool["inputSchema"], tool["outputSchema"]) == (deepest, deepest)
    code, _ = await host.refused("host.update", {"tools": [{**PLAIN, "inputSchema": of({"not": schema})}]})
    assert code == 11


def test_a_fault_names_the_place_and_cuts_what_was_sent() -> None:
    schema = Schema(of({"type": "object", "properties": {"b": {"type": "string", "maxLength": 3}}}), Limits())
    fault = schema.fault({"a": {"b": "x" * 100_000}})
    assert fault is not None
    assert fault.startswith("a.b: ")
    assert len(fault) < 200


def test_what_is_wrong_with_a_schema_is_cut_too() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema(of({"$ref": "http://x.example/" + "x" * 10_000}), Limits())
    assert len(str(caught.value)) < 600
