"""Each sentence that the catalogue quotes was found in the page that it names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from probe.judge.rules.catalogue import catalogue
from probe.log.events import Event

from . import quotes


def test_each_quote_was_found_in_its_page() -> None:
    found = set(quotes.FOUND.read_text(encoding="utf-8").splitlines())
    new = [f"{each.doc}: {each.text}" for each in quotes.quotes() if quotes.digest(each) not in found]
    assert not new, "not looked up yet: python -m tests.judge.quotes FOLDER"
    assert found == {quotes.digest(each) for each in quotes.quotes()}, "some are quoted no more"


def test_a_word_or_a_page_that_differs_is_another_quote() -> None:
    quote = next(each for each in quotes.quotes() if "MUST NOT" in each.text)
    assert quotes.digest(replace(quote, text=f"  {quote.text}\n")) == quotes.digest(quote)
    for other in (
        replace(quote, text=quote.text.replace("MUST NOT", "MUST")),
        replace(quote, text=quote.text.replace("MUST NOT", "must not")),
        replace(quote, doc="2025-03-26/none.md"),
    ):
        assert quotes.digest(other) != quotes.digest(quote)


def test_what_a_page_does_not_say_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = quotes.quotes()[0]
    page, written = tmp_path / first.doc, tmp_path / "quotes.txt"
    page.parent.mkdir(parents=True)
    page.write_text(f"* [Before](https://example.org). **{first.text}**\nAfter.")
    monkeypatch.setattr(quotes, "FOUND", written)
    monkeypatch.setattr(quotes, "quotes", lambda: [first])
    assert quotes.main(tmp_path) == 0
    assert written.read_text() == f"{quotes.digest(first)}\n"
    monkeypatch.setattr(quotes, "quotes", lambda: [first, replace(first, text=f"{first.text} always")])
    assert quotes.main(tmp_path) == 1
    assert f"{first.doc} does not say: {first.text} always" in capsys.readouterr().out


def test_a_row_says_what_a_person_sees_and_names_no_kind_of_entry() -> None:
    """`observe` and what passes and fails are shown in reports."""
    kinds = {kind.kind for kind in get_args(Event)}
    shown = {rule.id: f"{rule.observe} {rule.passes} {rule.fails}" for rule in catalogue().rules.values()}
    words = re.compile(r"[a-z_]+\.[a-z_]+").findall
    assert {(id, kind) for id, text in shown.items() for kind in kinds if kind in words(text)} == set()
