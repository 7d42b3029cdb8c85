"""A session as a page: whole in itself, harmless, bounded, and with the report where there is one."""

from __future__ import annotations

import re
import tracemalloc
from html.parser import HTMLParser

import pytest

from probe.judge.reports import card
from probe.log.context import NO_CONTEXT
from probe.log.event_log import Entry
from probe.web.exports import page as page_module
from probe.web.exports.extract import Extract, OverviewTally
from probe.web.exports.page import ShownSession, WireLog

from ...support.api import LOCAL
from ...support.facts import received
from ...support.http import exchange
from ...support.legacy import Legacy
from ...support.probe import Probe, running

_VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balanced(HTMLParser):
    """Checks that each element that begins ends, and collects the names of all."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.names.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def shown(probe: Probe, query: str = "") -> str:
    async with exchange(probe.app, "GET", f"/api/export.html{query}", LOCAL) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["content-disposition"].endswith('.html"')
        return (await answer.body()).decode()


def checked(text: str) -> Balanced:
    parsed = Balanced()
    parsed.feed(text)
    assert parsed.open == []
    assert not parsed.names & {"script", "iframe", "img", "link", "object", "form"}
    assert all(address.startswith(("https://", "#")) for address in parsed.addresses)
    assert "url(" not in text
    assert "@import" not in text
    return parsed


async def test_the_page_has_the_wire_line_by_line_and_needs_nothing_else(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool", {"delayMs": -1})
    await client.tool("progress", {"steps": 2, "step_ms": 0}, _meta={"progressToken": 7})
    text = await shown(probe, "?client=s1")
    checked(text)
    assert "<title>s1 on MCP Probe</title>" in text
    assert re.search(r"tools/call progress <span class=\"fine\">ok, [\d.]+ ms, 2 progress</span>", text)
    assert re.search(r"tools/call simple_tool <span class=\"warn\">tool error: ", text)
    assert "notifications/progress" in text
    assert "There is no report" in text


async def test_the_report_is_on_the_page_where_the_server_judges() -> None:
    async with running(judge=True) as probe:
        client = Legacy(probe.app, "/mcp?tools=all&client=nightly")
        await client.initialize()
        text = await shown(probe, "?client=nightly")
        checked(text)
        assert 'id="nightly"' in text
        assert "There is no report" not in text


async def test_what_a_client_sends_is_text_on_the_page(probe: Probe) -> None:
    client = await probe.client()
    evil = "<script>alert(1)</script>\u202e\x1b[31m"
    await client.tool("simple_tool", {"delayMs": evil})
    async with exchange(probe.app, "GET", f"/{'%3Cscript%3E'}", {**LOCAL, "user-agent": "<b>x</b>"}) as answer:
        await answer.body()
    text = await shown(probe)
    checked(text)
    assert "<script>" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


async def test_a_large_log_makes_a_page_of_bounded_size(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "_EXCHANGES", 5)
    monkeypatch.setattr(page_module, "_ENTRIES_OF_EXCHANGE", 3)
    client = await probe.client()
    for _ in range(6):
        await client.tool("simple_tool")
    text = await shown(probe)
    checked(text)
    assert text.count("<details>") == 5
    left_out = int(re.findall(r"(\d+) further exchanges have no room", text)[0])
    assert left_out >= 3
    assert "further entries have no room" in text
    monkeypatch.setattr(page_module, "_CHARACTERS", 1)
    assert (await shown(probe)).count("<details>") == 1


def shown_of(value: object) -> str:
    fact = received({"id": 1, "method": "m", "params": value})
    return card.entry_shown(1, Entry(1, 1.0, 2.0, NO_CONTEXT, fact))["body"]


def test_no_more_is_made_of_a_message_than_is_shown() -> None:
    assert shown_of([1]).splitlines()[1:3] == ['  "id": 1,', '  "method": "m",']
    nested: list[object] = [1] * 5000
    for _ in range(150):
        nested = [nested]
    shown_of([])
    tracemalloc.start()
    try:
        text = shown_of(nested)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(text) < 4100, text.count("\n") > 5, text.endswith(" bytes)")) == (True, True, True)
    # Printed whole it has 2.5 MB.
    assert most < 1_000_000
    # Of a large message the beginning stands there as it came.
    text = shown_of([1] * 100_000)
    assert (len(text) < 4100, text.count("\n"), text.endswith(" bytes)")) == (True, 1, True)


async def test_the_page_comes_in_pieces_of_at_most_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two pieces others can run."""
    made = {card: 0, page_module: 0}
    real = card.entry_shown
    for module in made:

        def counted(seq: int, entry: Entry | None, module: object = module) -> object:
            made[module] += 1  # type: ignore[index]
            return real(seq, entry)

        monkeypatch.setattr(module, "entry_shown", counted)
    async with running(judge=True) as probe:
        client = await probe.client()
        for number in (7, 7, 8, 8):
            async with client.post({"jsonrpc": "2.0", "id": number, "method": "ping"}) as answer:
                await answer.body()
        engine, tally = probe.engine, OverviewTally()
        wire = WireLog(lambda: engine.observer.views)
        for entry in engine.log.since(0, 1000).entries:
            tally.take(entry)
            wire.take(entry)
        assert engine.judging is not None
        report = await engine.judging.report(None)
        session = ShownSession(Extract(), engine.header(), tally.overview(), report, 0.0)
        before = most = 0
        for _ in page_module.page(session, wire, engine.log.entry):
            now = sum(made.values())
            before, most = now, max(most, now - before)
    assert most == 1
    assert min(made.values()) > 1
