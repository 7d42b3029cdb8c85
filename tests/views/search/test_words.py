"""Filter lines are read as words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe.log.query import QueryError
from probe.views.search.words import Word, matcher, read

TABLE = Path(__file__).parent / "lines.json"
CASES: list[dict[str, Any]] = json.loads(TABLE.read_text())["read"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"])
def test_a_line_is_its_words_or_says_what_is_not_understood(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(QueryError) as error:
            read(case["line"])
        assert str(error.value) == case["error"]
    else:
        assert read(case["line"]) == tuple(
            Word(word["key"], tuple(word["values"]), word["negated"]) for word in case["words"]
        )


def test_a_filter_has_a_bounded_number_of_values() -> None:
    with pytest.raises(QueryError, match="at most 50 values"):
        read(" ".join(f"call:c{number}" for number in range(51)))


@pytest.mark.parametrize(
    ("value", "names"),
    [("tools/*", {"tools/call", "tools/list"}), ("*s/*a*l", {"tools/call"}), ("*i*", {"tools/list", "ping"})],
)
def test_a_star_stands_for_anything(value: str, names: set[str]) -> None:
    matches = matcher(Word("method", (value,)))
    assert {name for name in ("tools/call", "tools/list", "ping") if matches(name)} == names


def test_many_stars_take_no_longer_than_the_name_is_long() -> None:
    # With a backtracking pattern this would not end.
    assert not matcher(Word("method", ("*a" * 50 + "*b",)))("a" * 5000)
