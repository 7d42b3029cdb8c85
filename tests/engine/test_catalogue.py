"""Selections: toolsets and single tools, in the order of the catalogue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from probe.engine.catalogue.catalogue import Catalogue, Toolset, UnknownSelectionError, select
from probe.engine.catalogue.tool import Tool, content
from probe.tools.conformance import resources


def tool(name: str) -> Tool:
    return Tool(name=name, title=name, description=name, run=lambda arguments: content([]))


FIRST = Toolset("first", (tool("a"), tool("b")), resources=resources.RESOURCES)
SECOND = Toolset("second", (tool("c"), tool("d")), templates=resources.TEMPLATES, prompts=resources.PROMPTS)
TOOLSETS = (FIRST, SECOND)


def chosen(selection: str) -> Catalogue:
    return select(TOOLSETS, selection)


@pytest.mark.parametrize(
    ("selection", "tools"),
    [
        ("all", "abcd"),
        ("first", "ab"),
        ("second,first", "abcd"),
        ("d,a", "ad"),
        ("b", "b"),
        ("first,a", "ab"),
        ("first,c", "abc"),
        ("all,c", "abcd"),
        (" a , ,c,", "ac"),
        ("a,a", "a"),
    ],
)
def test_a_selection_offers_its_tools_once_in_the_order_of_the_catalogue(selection: str, tools: str) -> None:
    catalogue = chosen(selection)
    assert "".join(catalogue.tools) == tools
    assert catalogue.toolset_of == {name: "first" if name in "ab" else "second" for name in tools}


@pytest.mark.parametrize(
    ("selection", "parts"),
    [
        ("all", (True, True, True)),
        ("first", (True, False, False)),
        ("second", (False, True, True)),
        ("a,c", (False, False, False)),
    ],
)
def test_resources_templates_and_prompts_come_with_their_whole_toolset(selection: str, parts: tuple[bool, ...]) -> None:
    catalogue = chosen(selection)
    assert tuple(map(bool, (catalogue.resources, catalogue.templates, catalogue.prompts))) == parts
    assert list(catalogue.resources.values()) == (list(FIRST.resources) if parts[0] else [])


@pytest.mark.parametrize(
    ("selection", "wrong"),
    [("x", "unknown tools: x"), ("a,x,A", "unknown tools: A, x"), ("", "no tools named"), (" , ", "no tools named")],
)
def test_an_unknown_name_is_refused_with_the_known_ones(selection: str, wrong: str) -> None:
    with pytest.raises(UnknownSelectionError) as caught:
        chosen(selection)
    assert str(caught.value) == f"{wrong}; known are all, first, second, hosts, a, b, c, d"
    assert caught.value.brief == f"{wrong}; toolsets are all, first, second, hosts"


def test_the_first_unknown_names_get_a_hint_where_one_is_near() -> None:
    with pytest.raises(UnknownSelectionError, match=r"tools: firts \(did you mean first\?\), hots \(.*\), x, zecond; "):
        chosen("firts,hots,x,zecond")


def test_a_tool_without_a_last_revision_is_defined_in_those_to_come() -> None:
    later = "2099-01-01"
    assert tool("a").is_defined(later)
    assert replace(tool("a"), since=later).is_defined(later)
    assert not replace(tool("a"), until="2026-07-28").is_defined(later)
    assert not replace(tool("a"), since=later).is_defined("2026-07-28")
