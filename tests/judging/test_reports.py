"""Reports: what a client says of itself cannot act on whoever reads them."""

from __future__ import annotations

import pytest

from probe.judge.catalogue import catalogue
from probe.judge.judge import Judge, judge_all
from probe.judge.outcome.judgement import report_of
from probe.judge.predicates.all import PREDICATES
from probe.judge.report import Judgement
from probe.judge.reports.badge import badge
from probe.judge.reports.card import card
from probe.judge.reports.junit import junit
from probe.judge.reports.terminal import terminal

from ..judge.logs import HEADER, Log

NAME = "<script>alert(1)</script>\x1b[31m\x00\x07\u202e&\"'"


@pytest.fixture
def report() -> Judgement:
    """A client with an evil name, and one fault."""
    log = Log()
    session = log.http("acme", name=NAME, version=NAME).session()
    session.post({"jsonrpc": NAME, "id": 9, "method": "ping"})
    judge = Judge(catalogue(), PREDICATES)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    return report_of(judge)


def test_the_ids_of_rules_are_never_divided(report: Judgement) -> None:
    for width in range(40, 120):
        assert not any(line.endswith("-") for line in terminal(report, lambda seq: None, width=width))


def test_no_report_obeys_a_client(report: Judgement) -> None:
    said = "\n".join(terminal(report, lambda seq: None))
    page = card(report, lambda seq: None)
    assert "alert(1)" in said
    assert "alert(1)" in page
    assert "<script" not in page
    for text in (said, page, badge(report), junit(report, lambda seq: None).decode()):
        assert not {"\x00", "\x07", "\x1b"} & set(text)
    for text in (said, page):
        assert "\u202e" not in text
