"""The table of kinds in docs/observation.md has the words of the code."""

from __future__ import annotations

from .events import BEGIN, END, PAGE, words, written


def test_the_table_of_kinds_is_that_of_the_docstrings() -> None:
    """Else: python -m tests.documents.events."""
    page = PAGE.read_text()
    assert BEGIN in page
    assert END in page
    assert written(page) == page


def test_a_docstring_is_one_line_with_the_words_of_json() -> None:
    assert words("First.\n\n    `a` is None\n    for NoneType.") == "First. `a` is null for NoneType."
