"""The tables of tests/support/rows.py: every row is run, and the one that fails is named."""

from __future__ import annotations

import pytest

from .support.rows import each

LETTERS, DIGITS = ["a", "b"], [(1, 2), (3, 4)]
seen: list[tuple[str, int, int]] = []


@each("letter", LETTERS)
@each("low, high", DIGITS)
async def test_every_combination_is_run(letter: str, low: int, high: int, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_every_combination_is_run"
    seen.append((letter, low, high))


def test_all_of_them_were() -> None:
    assert seen == [(letter, *row) for letter in LETTERS for row in DIGITS]


def test_the_row_that_fails_is_named() -> None:
    @each("number", [1, 2, 3])
    def test(number: int) -> None:
        assert number < 2

    with pytest.raises(AssertionError) as caught:
        test()
    assert caught.value.__notes__ == ["in the row number=2"]


def test_a_table_has_rows_and_their_test_takes_them() -> None:
    with pytest.raises(AssertionError, match="no rows for number"):
        each("number", [])
    with pytest.raises(AssertionError, match="the test takes no number"):
        each("number", [1])(lambda other: None)
