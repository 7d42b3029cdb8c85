"""Reports: what a client says of itself cannot act on whoever reads them."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import fromstring

import pytest

from probe.judge.judge import Judge
from probe.judge.outcome import compare
from probe.judge.report import Judgement, report_of
from probe.judge.reports.card import badge, card
from probe.judge.reports.junit import junit
from probe.judge.reports.terminal import comparison, terminal
from probe.judge.reports.wording import spoken
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.log.event_log import Entry
from probe.log.ndjson import End

from ..logs import HEADER, Log, judge_all

ACCUSED = "::error ::forged"
FORGED = f"\n{ACCUSED}\r{ACCUSED}\u2028{ACCUSED}\u2029{ACCUSED}\x85{ACCUSED}\ufffe\uffff"
NAME = "<script>alert(1)</script>\x1b[31m\x00\x07\u202e&\"'"


def judged(name: str, label: str = "acme") -> Judgement:
    """A client of this name, with one fault."""
    log = Log()
    session = log.http(label, name=name, version=name).session()
    session.post({"jsonrpc": name, "id": 9, "method": "ping"})
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    return report_of(judge)


def test_the_page_begins_with_the_worst_client_in_the_words_of_the_dashboard() -> None:
    log = Log()
    kept, broken = log.http("kept").session(), log.http("broken").session()
    kept.answer(kept.request("ping", id=7))
    broken.post({"jsonrpc": "1.0", "id": 9, "method": "ping"})
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    page = card(report_of(judge), lambda seq: None)
    places = [
        page.index(part)
        for part in ("of 2 MCP clients", 'id="broken"', "<dt>Found</dt>", "<dt>Expected</dt>", 'id="kept"')
    ]
    assert places == sorted(places)


@pytest.fixture
def report() -> Judgement:
    """A client with an evil name, and one fault."""
    return judged(NAME)


def test_every_entry_that_breaks_a_rule_is_named_and_no_other() -> None:
    log = Log()
    session = log.http().session()
    first = session.request("ping", id=7)
    session.answer(first)
    again = [session.request("tools/list", {"cursor": f"{page}"}, id=7).seq for page in range(6)]
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    (subject,) = report_of(judge).subjects
    (found,) = (rule for rule in subject.rules if rule.rule.id == "jsonrpc.id-unused-before")
    assert list(found.breaches) == again
    assert any(first.seq in evidence.seqs for evidence in found.evidence), "it shows the breach, and is none"


def test_posts_without_a_request_of_the_protocol_are_counted_as_what_they_are(report: Judgement) -> None:
    (subject,) = report.subjects
    refused = replace(subject, requests=0, exchanges=2, sessions=0)
    assert spoken(refused).endswith("; no MCP request in 2 HTTP requests")
    assert spoken(replace(refused, exchanges=0)).endswith("; no MCP request")


@pytest.mark.parametrize(("gaps", "words"), [(1, "in 1 place."), (2, "in 2 places.")])
def test_a_report_counts_the_places_where_entries_are_missing(gaps: int, words: str) -> None:
    log = Log()
    session = log.http().session()
    for _ in range(gaps):
        log.gap()
        session.request("ping")
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    judge.end(End(log.seq))
    assert next(terminal(report_of(judge), lambda seq: None)).endswith(f"entries are missing {words}")


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


def test_neither_a_name_nor_a_label_makes_a_line_of_its_own() -> None:
    forged = judged(FORGED, f"acme{FORGED}")
    for lines in (terminal(forged, lambda seq: None), comparison(compare(forged, forged), (), verbose=True)):
        said = list(lines)
        assert any(ACCUSED in line for line in said)
        assert all(len(line.splitlines()) <= 1 for line in said)


def test_junit_is_xml_whatever_a_client_and_a_log_call_themselves() -> None:
    root = fromstring(junit(judged(FORGED, f"acme{FORGED}"), lambda seq: None))
    assert "\\ufffe\\uffff" in root[0].attrib["name"]
    assert not {"\ufffe", "\uffff"} & set("".join(root.itertext()))


def test_under_each_piece_of_evidence_stands_the_begin_of_its_message() -> None:
    log = Log()
    session = log.http("acme").session()
    wrong = session.post({"jsonrpc": "1.0", "id": 9, "method": "ping", "params": {"_meta": {"x": "y" * 200}}})
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    report, entries = report_of(judge), {each.seq: each for each in log.items if isinstance(each, Entry)}
    begin = '{"jsonrpc":"1.0","id":9,"method":"ping","params":{"_meta":{"x":"'
    begin += "y" * (120 - len(begin)) + "…"
    lines = list(terminal(report, entries.get))
    at = next(place for place, line in enumerate(lines) if f"#{wrong.seq} message.received ping id 9" in line)
    assert lines[at + 1] == f"            {begin}"
    more = [line for line in lines if "--html FILE shows" in line]
    assert len(more) == 1
    said = "".join(fromstring(junit(report, entries.get)).itertext())
    assert f"\n    {begin}\n" in said
    assert "--html FILE shows" in said


@pytest.mark.parametrize(
    ("name", "shown"), [("mcp", "acme (mcp 0.1.0, User-Agent python-httpx/1.2): "), ("tool", "acme (tool 0.1.0): ")]
)
def test_a_default_name_has_the_user_agent_beside_it(name: str, shown: str) -> None:
    log = Log()
    client = log.http("acme", name=name, version="0.1.0")
    request = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    client.post(request, headers={"user-agent": "python-httpx/1.2"})
    client.session()
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    judge_all(judge, log.items)
    assert any(line.startswith(shown) for line in terminal(report_of(judge), lambda seq: None))
