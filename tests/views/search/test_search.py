"""The search finds in a log what the words of a line ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import trio
from msgspec import structs

from probe.log.context import NO_CONTEXT
from probe.log.event_log import Entry, EventLog
from probe.log.events import StreamResumed
from probe.log.ndjson import read_entry
from probe.views.fold import Views
from probe.views.search.conditions import LoggedExchanges
from probe.views.search.search import _COST, _PIECE, By, Search, SearchRequest, SearchResult
from probe.views.search.words import read

from ...support.api import page, refusal
from ...support.facts import emitted, received
from ...support.passes import counted_passes
from ...support.probe import Probe, running

TABLE = json.loads((Path(__file__).parent / "lines.json").read_text())
CASES: list[dict[str, Any]] = TABLE["find"]
ENTRIES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "log.json").read_text())


def saved() -> EventLog:
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=1 << 20)
    for entry in (read_entry(json.dumps(entry).encode()) for entry in ENTRIES):
        assert log.append(entry.fact, entry.context, entry.cause) == entry.seq
    return log


def seen(log: EventLog) -> Views:
    views = Views()
    for entry in log.since(0, 1000).entries:
        views.take(entry)
    return views


async def find(line: str, by: By, before: int = 1000, limit: int = 1000) -> SearchResult:
    async def done(size: int) -> None:
        await trio.lowlevel.checkpoint()

    log = saved()
    views = seen(log)
    return await Search(log, lambda: views, SearchRequest(read(line), by, before, limit), done).run()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"])
async def test_a_line_finds_exchanges_and_entries(case: dict[str, Any]) -> None:
    exchanges = await find(case["line"], "exchange")
    assert [part[0].context.exchange for part in exchanges.parts][::-1] == case["exchanges"]
    assert (exchanges.matched, exchanges.total) == (len(case["exchanges"]), 11)
    entries = await find(case["line"], "entry")
    assert [part[0].seq for part in entries.parts][::-1] == case["entries"]
    assert (entries.matched, entries.total) == (len(case["entries"]), len(ENTRIES))


async def test_pages_lead_to_all_that_was_found_once() -> None:
    asked: list[tuple[By, int]] = [("exchange", 20), ("exchange", 1), ("entry", 7)]
    for by, limit in asked:
        whole = await find("direction:in", by)
        before: int | None = 1000
        pages: list[Any] = []
        while before is not None:
            found = await find("direction:in", by, before, limit)
            assert found.matched == whole.matched
            pages += found.parts
            before = found.next
        assert pages == list(whole.parts)


async def test_an_exchange_that_is_about_two_clients_is_one_of_both(probe: Probe) -> None:
    log, whose = probe.engine.log, structs.replace(NO_CONTEXT, exchange=1)
    log.append(received({"jsonrpc": "2.0", "id": 1, "method": "stream/resume"}), structs.replace(whose, session="s2"))
    resumed = log.append(StreamResumed(3, 1), structs.replace(whose, session="s1", stream="p1"))
    found = await page(probe, "/api/search?filter=client:s1+kind:stream&by=entry")
    assert [event["seq"] for event in found["events"]] == [resumed]


async def test_the_page_gives_counts_of_the_whole_log_and_the_newest_entries(probe: Probe) -> None:
    log = probe.engine.log
    for number in range(3):
        log.append(received({"jsonrpc": "2.0", "id": number, "method": "ping"}))
    log.append(emitted({"jsonrpc": "2.0", "id": 9, "result": {}}))
    found = await page(probe, "/api/search?filter=method:ping&limit=2")
    assert (found["matched"], found["total"], found["last"], found["left_out"]) == (3, 4, log.last, 0)
    assert [event["id"] for event in found["events"]] == [2, 1]
    rest = await page(probe, f"/api/search?filter=method:ping&before={found['next']}")
    assert ([event["id"] for event in rest["events"]], rest["next"]) == ([0], None)
    assert (await page(probe, "/api/search?filter=ping&by=entry&limit=0"))["events"] == []


async def test_one_answer_may_have_more_entries_than_other_pages_where_that_is_asked_for() -> None:
    async with running(api_page=2) as probe:
        for number in range(5):
            probe.engine.log.append(received({"jsonrpc": "2.0", "id": number, "method": "ping"}))
        for query, count in (("", 2), ("&limit=4", 4), ("&limit=9000", 5)):
            assert len((await page(probe, f"/api/search?filter=method:ping{query}"))["events"]) == count


@pytest.mark.parametrize("by", get_args(By))
async def test_the_entries_of_a_large_exchange_are_looked_at_in_pieces(by: By) -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=1 << 20)
    for number in range(300):
        log.append(received({"id": number, "method": "ping"}), structs.replace(NO_CONTEXT, exchange=1))
    size = sum(len(entry.encoded()) for entry in log.since(0, 300).entries)
    pieces: list[int] = []

    async def done(size: int) -> None:
        pieces.append(size)
        await trio.lowlevel.checkpoint()

    looked_at = 2 * 300 * _COST
    lines = {"method:none": looked_at, "-kind:message": looked_at, "one two": size, "-one -two -three": 3 * size}
    for line, least in lines.items():
        pieces.clear()
        await Search(log, Views, SearchRequest(read(line), by, 1000, 1000), done).run()
        assert sum(pieces) >= least, line
        assert max(pieces) <= _PIECE * _COST, line


async def test_however_many_searches_there_are_one_works_at_a_time(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3000):
        probe.engine.log.append(received({"id": number, "method": "ping"}))
    key = LoggedExchanges.key

    async def at_most(searches: int) -> int:
        """The most entries that were looked at in one pass of the scheduler."""
        async with counted_passes() as passes:

            def counted(exchanges: LoggedExchanges, entry: Entry) -> int:
                passes.note()
                return key(exchanges, entry)

            monkeypatch.setattr(LoggedExchanges, "key", counted)
            async with trio.open_nursery() as asking:
                for _ in range(searches):
                    asking.start_soon(page, probe, "/api/search?filter=method:none")
        return passes.most

    await page(probe, "/api")
    assert await at_most(12) <= 4 * await at_most(1)


async def test_an_exchange_larger_than_an_answer_says_how_much_of_it_is_left_out() -> None:
    async with running(api_page_bytes=64 * 1024) as probe:
        text = "x" * 40_000
        for _ in range(3):
            message = received({"jsonrpc": "2.0", "id": 1, "method": text})
            probe.engine.log.append(message, structs.replace(NO_CONTEXT, exchange=7))
        found = await page(probe, "/api/search?filter=exchange:7")
        assert (len(found["events"]), found["left_out"], found["next"]) == (1, 2, None)


@pytest.mark.parametrize(
    ("query", "detail"),
    [("filter=clint:x", "clint: is no word"), ("by=both", "by must be exchange or"), ("kind=http", "no parameter")],
)
async def test_what_is_not_understood_is_refused(probe: Probe, query: str, detail: str) -> None:
    assert detail in (await refusal(probe, f"/api/search?{query}"))["detail"]
