"""The pages of the judge's rules: the committed one, and the table and the pages of the site."""

from __future__ import annotations

import html
import re
import subprocess
import sys

from infra import rule_pages
from probe.judge.reports.as_json import rule_list
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import Rule, catalogue
from probe.judge.verdicts import Verdict

from .markdown import ROOT, anchors

COMMITTED = ROOT / "docs" / "judge-rules.md"
APPLIED = {id: rule for id, rule in catalogue().rules.items() if id in FUNCTIONS}
PAGES = dict(rule_pages.site_pages())


def page(id: str) -> str:
    return PAGES[f"judge-rules/{id}.md"]


def test_the_committed_page_is_made_without_the_packages_of_the_server() -> None:
    """Else: python infra/rule_pages.py > docs/judge-rules.md."""
    command = [sys.executable, "-I", "-S", "infra/rule_pages.py"]
    made = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout
    assert COMMITTED.read_text(encoding="utf-8") == made


def test_each_finding_leads_to_its_rule_in_the_documents() -> None:
    there = anchors(COMMITTED)
    docs = {rule.rule: rule.docs for rule in rule_list(catalogue()).rules}
    assert docs.keys() >= FUNCTIONS.keys()
    for id, address in docs.items():
        assert address == (f"docs/judge-rules.md#{id}" if id in FUNCTIONS else None)
        assert address is None or id in there


def test_each_rule_that_is_applied_has_a_page_with_its_sentences() -> None:
    assert PAGES.keys() == {f"judge-rules/{id}.md" for id in APPLIED}
    for id, rule in APPLIED.items():
        text = page(id).replace("\\", "")
        assert text.startswith(f"# `{id}`\n")
        for part in (rule.title, rule.fault, rule.passes, rule.fails, *(sentence.text for sentence in rule.spec)):
            assert part.removesuffix(".") in text, id


def test_the_levels_of_a_page_are_those_by_which_the_judge_decides() -> None:
    def verdict(rule: Rule, revision: str) -> str:
        if revision not in rule.revisions:
            return "-"
        found = rule.verdict_of(revision)
        return "measured" if found is Verdict.PASS else found.name

    for id, rule in APPLIED.items():
        cells = " | ".join(verdict(rule, revision) for revision in rule_pages.REVISIONS)
        assert f"| At worst | {cells} |" in page(id)


def test_a_table_of_a_page_has_as_many_cells_as_its_head() -> None:
    for id in APPLIED:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in page(id).splitlines() if line.startswith("|")}
        assert widths == {3, 6}, id


def test_the_table_of_the_site_leads_to_each_page() -> None:
    table = rule_pages.site_table()
    assert re.findall(r'<tr id="([^"]+)"', table) == [*dict.fromkeys(re.findall(r'href="([^"]+)/"', table))]
    assert {*re.findall(r'<tr id="([^"]+)"', table)} == APPLIED.keys()
    for rule in APPLIED.values():
        levels = " ".join(f"{revision}:{rule.level_of(revision)}" for revision in rule.revisions)
        assert f'<tr id="{rule.id}" data-at="{levels}"' in table
        assert html.escape(rule.title) in table
