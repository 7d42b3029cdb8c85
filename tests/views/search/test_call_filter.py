"""Filters of calls: what they pass, and that nothing misspelt is taken for an empty answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.log.query import QueryError
from probe.log.redaction import bounded
from probe.views.records import CallRecord
from probe.views.search.call_filter import NAMES, OUTCOMES, CallFilter, parse, same

from ...support.shown import EVERY_CALL
from ..calls import RUN, record


def passes(item: CallRecord, *pairs: tuple[str, str]) -> bool:
    """What the filter says of the record; of the row in JSON it must say the same."""
    wanted = parse(pairs)
    assert wanted.matches(item) is wanted.matches_row(item.encoded())
    return wanted.matches(item)


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("tool", "simple_tool", "Simple_tool"),
        ("toolset", "probe", "prob"),
        ("outcome", "completed", "tool_error"),
        ("outcome", "cancelled,completed", "running,cancelled"),
        ("session", "s1", "s10"),
        ("client", "my client, v2", "my client"),
        ("era", "legacy", "modern"),
        ("era", "modern,legacy", "modern"),
        ("revision", "2025-11-25", "2025-06-18"),
        ("task", "t-1", "t-2"),
        ("run", RUN, "00000000"),
        ("from", "1001", "1001.5"),
        ("until", "1001.5", "1001"),
        ("text", "DÉJÀ vu", "deja vu"),
        ("text", '"TOOL":"simple', "simple tool"),
    ],
)
def test_a_row_passes_by_its_fields(name: str, value: str, other: str) -> None:
    item = record(outcome="completed", client_name="my client, v2", task="t-1", arguments='{"x":"Déjà Vu"}'.encode())
    assert passes(item, (name, value))
    assert not passes(item, (name, other))


def test_the_only_transport_passes() -> None:
    assert passes(record(), ("transport", "http"))


def test_a_call_without_an_outcome_is_running() -> None:
    for outcome in OUTCOMES:
        assert not passes(record(), ("outcome", outcome))
        assert not passes(record(outcome=outcome), ("outcome", "running"))
        assert passes(record(outcome=outcome), ("outcome", outcome))
    assert passes(record(), ("outcome", "running"))
    assert passes(record(), ("outcome", "lost,running"))


def test_what_a_call_does_not_have_equals_nothing() -> None:
    item = record(session=None)
    assert not passes(item, ("session", "null"))
    assert not passes(item, ("task", "None"))


def test_all_that_is_asked_must_hold() -> None:
    item = record(arguments=b'{"steps":5}')
    assert passes(item, ("tool", "simple_tool"), ("arguments.steps", "5"), ("text", "steps"))
    assert not passes(item, ("tool", "simple_tool"), ("arguments.steps", "6"))
    assert not passes(item, ("tool", "x"), ("arguments.steps", "5"))
    assert not passes(item, ("arguments.steps", "5"), ("text", "nothing of it"))


def test_no_filter_passes_all() -> None:
    assert parse([]) == EVERY_CALL == CallFilter()
    assert passes(record())


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("arguments.steps", "5", True),
        ("arguments.steps", "5.0", True),
        ("arguments.steps", '"5"', False),
        ("arguments.steps", "true", False),
        ("arguments.one", "1", True),
        ("arguments.one", "true", False),
        ("arguments.yes", "true", True),
        ("arguments.yes", "1", False),
        ("arguments.name", "5", False),
        ("arguments.name", '"5"', True),
        ("arguments.word", "word", True),
        ("arguments.word", '"word"', True),
        ("arguments.word", "Word", False),
        ("arguments.nothing", "null", True),
        ("arguments.missing", "null", False),
        ("arguments.empty", "", True),
        ("arguments.list.0", "a", True),
        ("arguments.list.1", '{"b":[1]}', True),
        ("arguments.list.1.b.0", "1", True),
        ("arguments.list.2", "a", False),
        ("arguments.list.-1", "a", False),
        ("arguments.list", '["a",{"b":[1.0]}]', True),
        ("arguments.list", '["a",{"b":[true]}]', False),
        ("arguments.list.length", "2", False),
        ("arguments.list." + "9" * 5000, "a", False),
        ("arguments.7", "seven", True),
        (r"arguments.a\.b", "dot", True),
        ("arguments.a.b", "nested", True),
        (r"arguments.c\\d", "backslash", True),
        (r"arguments.c\\\.d", "both", True),
        ("arguments.ü", "ö", True),
        ("arguments.big", "9007199254740993", True),
        ("arguments.big", "9007199254740992", False),
        ("arguments.huge", "1e400", False),
        ("arguments.nan", "NaN", True),
        ("result.content.0.type", "text", True),
        ("result.structuredContent.done", "false", True),
        ("result.structuredContent.done", "0", False),
        ("result.isError", "true", False),
    ],
)
def test_values_inside_are_found_by_their_path(path: str, value: str, found: bool) -> None:
    arguments: dict[str, Any] = {
        "steps": 5,
        "one": 1,
        "yes": True,
        "name": "5",
        "word": "word",
        "nothing": None,
        "empty": "",
        "list": ["a", {"b": [1]}],
        "7": "seven",
        "a.b": "dot",
        "a": {"b": "nested"},
        "c\\d": "backslash",
        "c\\.d": "both",
        "ü": "ö",
        "big": 2**53 + 1,
        "nan": "NaN",
    }
    result = {"content": [{"type": "text"}], "structuredContent": {"done": False}}
    item = record(arguments=json.dumps(arguments).encode(), result=json.dumps(result).encode())
    assert passes(item, (path, value)) is found


def test_nothing_is_found_in_a_result_that_there_is_not_yet() -> None:
    assert not passes(record(), ("result.isError", "false"))


@pytest.mark.parametrize("wanted", [("arguments.text", "x" * 300), ("arguments.steps", "5")])
def test_nothing_is_found_in_what_was_cut(wanted: tuple[str, str]) -> None:
    arguments = {"text": "x" * 300, "steps": 5}
    cut = bounded(arguments, 256)
    assert b'"cut"' in cut
    assert not passes(record(arguments=cut), wanted)
    assert not passes(record(arguments=cut), ("arguments.cut", json.loads(cut)["cut"]))
    assert not passes(record(arguments=cut), ("arguments.bytes", str(json.loads(cut)["bytes"])))


def test_arguments_that_look_as_if_they_were_cut_are_none() -> None:
    assert passes(record(arguments=b'{"cut":"x","bytes":300}'), ("arguments.bytes", "300"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:16:41Z", 1001.0),
        ("1970-01-01t00:16:41z", 1001.0),
        ("1970-01-01 00:16:41.25Z", 1001.25),
        ("1970-01-01T01:16:41.250000000+01:00", 1001.25),
        ("1969-12-31T23:16:41-01:00", 1001.0),
        ("1001", 1001.0),
        ("1001.25", 1001.25),
    ],
)
def test_times_are_rfc_3339_or_seconds(text: str, seconds: float) -> None:
    assert parse([("from", text)]).conditions[0].values == (seconds,)


@pytest.mark.parametrize(
    "text",
    [
        *("yesterday", "2026-03-01", "2026-03-01T12:00:00", "2026-03-01T12:00Z", "2026-02-30T00:00:00Z", "-1", "1e3"),
        *("2026-03-01T12:00:00 01:00", "2026-03-01T24:00:00Z", "NaN", "inf", "9" * 40, "٣"),
        *("2026-03-01T12:00:00+25:00", "0000-01-01T00:00:00Z", "1001 ", " 1001", "1001\n"),
    ],
)
@pytest.mark.parametrize("name", ["from", "until"])
def test_a_bad_time_is_refused_with_examples(name: str, text: str) -> None:
    with pytest.raises(QueryError, match=rf"^{name} must be a time such as 2026-03-01T12:00:00Z"):
        parse([(name, text)])


@pytest.mark.parametrize("name", ["tols", "Tool", "", "limit", "argument.x", "resultx", "client_name"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse([(name, "x")], beside=["limit2", "cursor"])
    for known in (*NAMES, "arguments.PATH", "result.PATH", "limit2", "cursor"):
        assert known in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        *("arguments", "arguments.", "arguments..x", "arguments.x.", "result"),
        *(r"arguments.x\y", "arguments.x\\", "result.\\"),
    ],
)
def test_a_bad_path_is_refused(name: str) -> None:
    with pytest.raises(QueryError, match="is no path"):
        parse([(name, "x")])


def test_a_path_is_bounded() -> None:
    parse([("arguments" + ".x" * 200, "1")])
    with pytest.raises(QueryError, match="is no path"):
        parse([("arguments" + ".x" * 201, "1")])


@pytest.mark.parametrize(
    ("name", "known"), [("outcome", "input_required, lost, running"), ("era", "legacy, modern"), ("transport", "http")]
)
@pytest.mark.parametrize("value", ["nope", "Running", "running,,lost", "null"])
def test_an_unknown_choice_is_refused_with_the_known_ones(name: str, known: str, value: str) -> None:
    with pytest.raises(QueryError, match=known):
        parse([(name, value)])


def test_a_name_stands_once_and_has_a_value() -> None:
    with pytest.raises(QueryError, match="tool stands twice"):
        parse([("tool", "a"), ("tool", "b")])
    with pytest.raises(QueryError, match=r"arguments\.x stands twice"):
        parse([("arguments.x", "1"), ("arguments.x", "2")])
    for name in NAMES:
        with pytest.raises(QueryError, match=f"{name} is empty"):
            parse([(name, "")])


def test_only_what_looks_inside_needs_more_than_the_fields() -> None:
    assert not parse([("tool", "x"), ("from", "5")]).looks_inside
    assert parse([("text", "x")]).looks_inside
    assert parse([("arguments.x", "1")]).looks_inside


def test_a_record_is_read_as_json_only_where_that_is_asked_for_and_all_else_fits() -> None:
    broken = record(arguments=b"no JSON")
    assert not parse([("tool", "other"), ("arguments.x", "1")]).matches(broken)
    assert parse([("tool", "simple_tool")]).matches(broken)


def test_numbers_are_equal_by_value_and_nothing_else_is() -> None:
    assert same(1, 1.0)
    assert same([{"a": 0}], [{"a": -0.0}])
    different = [(1, True), (0, False), ("1", 1), ([], {}), (None, False), ({"a": 1}, {"a": 1, "b": 2}), ([1], [])]
    for one, other in different:
        assert not same(one, other)
        assert not same(other, one)
