"""Each sentence of the protocol that binds a server is proven by a test, or says why no test can."""

from __future__ import annotations

from collections import Counter

import pytest

from .requirements import DOCUMENT, LEVELS, Specification, document, proofs, specifications

SPECIFICATIONS = specifications()
CLAUSES = [clause for specification in SPECIFICATIONS for clause in specification.clauses]


def test_no_id_is_used_twice() -> None:
    assert [id for id, count in Counter(clause.id for clause in CLAUSES).items() if count > 1] == []


@pytest.mark.parametrize("specification", SPECIFICATIONS, ids=lambda specification: specification.name)
def test_each_clause_is_complete(specification: Specification) -> None:
    for clause in specification.clauses:
        assert clause.id.startswith(f"{specification.name}/")
        assert clause.level in LEVELS
        assert clause.section
        assert clause.text
        if clause.level.isupper():
            word = "RECOMMENDED" if "RECOMMENDED" in clause.text else clause.level
            assert word in clause.text, clause.id


def test_every_id_that_a_test_names_exists() -> None:
    known = {clause.id for clause in CLAUSES}
    assert {id: tests for id, tests in proofs().items() if id not in known} == {}


def test_each_clause_has_a_test_or_a_reason() -> None:
    open_ids = [clause.id for clause in CLAUSES if clause.id not in proofs() and not clause.unprovable]
    assert not open_ids, f"{len(open_ids)} of {len(CLAUSES)} have neither: {', '.join(open_ids)}"


def test_no_clause_has_both_a_test_and_a_reason_why_there_can_be_none() -> None:
    assert [clause.id for clause in CLAUSES if clause.id in proofs() and clause.unprovable] == []


def test_the_document_says_what_the_clauses_and_the_tests_say() -> None:
    """Otherwise run `python -m tests.requirements`."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()
