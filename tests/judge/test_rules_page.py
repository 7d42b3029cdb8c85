"""docs/judge-rules.md is made from the catalogue, and has an anchor for each rule that the judge applies."""

from __future__ import annotations

from probe.judge.reports.as_json import rule_list
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue

from ..documents.markdown import ROOT, anchors
from . import page

COMMITTED = ROOT / "docs" / "judge-rules.md"


def test_the_committed_page_is_not_stale() -> None:
    """Else: python -m tests.judge.page > docs/judge-rules.md."""
    assert COMMITTED.read_text(encoding="utf-8") == page.page()


def test_each_finding_leads_to_its_rule_in_the_documents() -> None:
    there = anchors(COMMITTED)
    docs = {rule.rule: rule.docs for rule in rule_list(catalogue()).rules}
    assert docs.keys() >= FUNCTIONS.keys()
    for id, address in docs.items():
        assert address == (f"docs/judge-rules.md#{id}" if id in FUNCTIONS else None)
        assert address is None or id in there
