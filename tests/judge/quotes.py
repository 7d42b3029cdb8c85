"""The sentences that the catalogue quotes, as they were found in the texts of the specification.

The texts are no part of this project, so `quotes.txt` has one line for each quote: its page, and a digest of its words.

    python -m tests.judge.quotes FOLDER     write it anew; FOLDER has the pages of each revision, as `doc` names them

A quote that is not in its page is an error there, and one that was never found is an error of `test_quotes.py`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from probe.judge.rules.catalogue import Sentence, catalogue

FOUND: Final = Path(__file__).with_name("quotes.txt")
_LINK: Final = re.compile(r"\]\([^)]*\)|\]\[[^]]*\]")
# An underscore is a mark of emphasis, too.
_WORD: Final = re.compile(r"[^\W_]+")


def words(text: str) -> str:
    """The words alone: marks of Markdown, the targets of links, and the breaks of lines are no part of a sentence."""
    return " ".join(_WORD.findall(_LINK.sub(" ", text)))


def digest(quote: Sentence) -> str:
    """What stands in `quotes.txt` of a quote."""
    return f"{quote.doc} {sha256(f'{quote.doc} {words(quote.text)}'.encode()).hexdigest()[:16]}"


def quotes() -> list[Sentence]:
    """Every quote of the catalogue."""
    return [quote for rule in catalogue().rules.values() for quote in rule.spec]


def missing(folder: Path) -> Iterator[Sentence]:
    """The quotes that are not in their pages."""

    @cache
    def page(doc: str) -> str:
        raw = (folder / doc).read_text(encoding="utf-8")
        return f" {words(' '.join(_texts(json.loads(raw))) if doc.endswith('.json') else raw)} "

    return (quote for quote in quotes() if not words(quote.text) or f" {words(quote.text)} " not in page(quote.doc))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def main(folder: Path) -> int:
    """Write the file; returns an exit status."""
    wrong = list(missing(folder))
    for quote in wrong:
        print(f"{quote.doc} does not say: {quote.text}")
    if not wrong:
        FOUND.write_text("".join(f"{line}\n" for line in sorted(set(map(digest, quotes())))), encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
