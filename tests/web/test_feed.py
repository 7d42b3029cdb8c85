"""The live feed over its endpoint, in virtual time."""

from __future__ import annotations

import gc
import re
import zlib
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.inbound import HttpHead
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import ClientMisuse, MessageReceived, MessagesDelivered, ServerState
from probe.log.query import EVERYTHING, parse
from probe.views.entry_view import EntryViews
from probe.views.fold import Views
from probe.web.feed import feed_pieces
from probe.web.feed.feed_pieces import FeedFrame, Pieces, Span

from ..support.facts import emitted, received
from ..support.feed import LOCAL, watching
from ..support.http import exchange, http_scope
from ..support.passes import counted_passes
from ..support.probe import Probe, running
from ..support.shown import as_value
from ..wire.event_source import EventSource

TABLES = "tables=tasks,calls,sessions,streams,hosts"


def happen(probe: Probe, count: int, session: str = "s1", size: int = 0) -> int:
    for number in range(count):
        body = b'"%b"' % (b"x" * size)
        probe.engine.log.append(
            MessageReceived(None, "invalid", None, None, body), Context(exchange=number, session=session)
        )
    return probe.engine.log.last


async def refused(probe: Probe, query: str = "", method: str = "GET", **headers: str) -> tuple[int, Any]:
    async with exchange(probe.app, method, f"/dashboard/events?{query}", {**LOCAL, **headers}) as answer:
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.status, await answer.json()


async def test_it_says_hello_and_then_shows_the_newest_entries(probe: Probe, autojump_clock: MockClock) -> None:
    last = happen(probe, 150)
    async with watching(probe) as it:
        assert it.answer.headers["content-type"] == "text/event-stream"
        await it.has(last)
        assert it.source.events[0].type == "hello"
        (hello,) = it.data("hello")
        assert hello == {
            "run": probe.engine.run,
            "version": hello["version"],
            "started_at": probe.engine.started_at,
            "first": 1,
            "last": last,
            "resumed": False,
        }
        assert it.seqs == list(range(last - 99, last + 1))
        assert it.source.events[-1].last_event_id == f"{probe.engine.run}-{last}"
        assert it.data("message")[-1] == as_value(probe.engine.log.since(last - 1, 1).entries[0])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tail=0", []),
        ("tail=3", [199, 200, 201]),
        ("tail=999999", [*range(1, 202)]),
        ("session=s2", [*range(2, 102)]),
        ("session=s2&tail=2", [100, 101]),
        ("session=s2&tail=0", []),
        ("text=s2&tail=2", [100, 101]),
        ("session=s3", []),
    ],
)
async def test_the_tail_counts_what_passes_the_filter(
    query: str, expected: list[int], probe: Probe, autojump_clock: MockClock
) -> None:
    happen(probe, 100, "s2")
    happen(probe, 100)
    async with watching(probe, query) as it:
        await it.next_chunk()
        await trio.sleep(1)
        assert it.seqs == expected
        new = happen(probe, 1, "s1" if "s" not in query else "s2")
        if "s3" not in query:
            await it.has(new)
            assert it.seqs == [*expected, new]


async def test_what_happens_while_it_reads_is_shown_soon_and_together(probe: Probe, autojump_clock: MockClock) -> None:
    async with watching(probe) as it:
        await it.has(1)
        await trio.sleep(3.33)
        start, count = trio.current_time(), len(it.chunks)
        happen(probe, 10)
        await trio.sleep(0.001)
        last = happen(probe, 10)
        await it.has(last)
        assert trio.current_time() - start <= 0.25
        assert len(it.chunks) == count + 1
        assert it.seqs == list(range(1, last + 1))


async def test_filters_apply_to_what_comes(probe: Probe, autojump_clock: MockClock) -> None:
    async with watching(probe, "session=s2&kind=message") as it:
        await it.next_chunk()
        happen(probe, 5)
        probe.engine.log.append(ClientMisuse("x", "y", "z"), Context(session="s2"))
        last = happen(probe, 2, "s2")
        await it.has(last)
        assert it.seqs == [last - 1, last]


@pytest.mark.parametrize("way", ["header", "query", "both"])
async def test_it_resumes_right_behind_an_entry(way: str, probe: Probe, autojump_clock: MockClock) -> None:
    happen(probe, 300)
    here, other = f"{probe.engine.run}-120", f"{probe.engine.run}-7"
    query = {"header": "", "query": f"since={here}", "both": f"since={other}"}[way]
    async with watching(probe, query, None if way == "query" else here) as it:
        await it.has(301)
        assert it.seqs == list(range(121, 302))
        assert it.data("hello")[0]["resumed"] is True
        assert it.data("gap") == []


async def test_what_was_pushed_out_is_a_gap(autojump_clock: MockClock) -> None:
    async with running(event_log_events=100) as probe:
        last = happen(probe, 300)
        async with watching(probe, "", f"{probe.engine.run}-5") as it:
            await it.has(last)
            assert it.data("gap") == [{"reason": "evicted", "first": 6, "last": last - 100}]
            assert it.seqs == list(range(last - 99, last + 1))
            assert it.source.events[1].last_event_id == f"{probe.engine.run}-{last - 100}"


async def test_a_log_that_grows_too_fast_is_skipped_with_a_word(autojump_clock: MockClock) -> None:
    async with running(feed_events_per_second=100, feed_burst=200) as probe, watching(probe) as it:
        await it.has(1)
        for _ in range(100):
            last = happen(probe, 50)
            await trio.sleep(0.1)
        await trio.sleep(10)
        last = happen(probe, 1)
        await it.has(last)
        gaps = it.data("gap")
        assert {gap["reason"] for gap in gaps} == {"skipped"}
        missing = [seq for gap in gaps for seq in range(gap["first"], gap["last"] + 1)]
        assert sorted(missing + it.seqs) == list(range(1, last + 1))
        assert len(it.seqs) < 200 + 20 * 100 + 200


@pytest.mark.parametrize("id", ["OTHER-5", "5", "RUN-", "RUN-x", "RUN-1000000", "RUN--1", "RUN-5x", "x" * 3000, "-5"])
async def test_an_id_of_another_run_is_a_restart(id: str, probe: Probe, autojump_clock: MockClock) -> None:
    last = happen(probe, 300)
    async with watching(probe, "tail=10", id.replace("RUN", probe.engine.run)) as it:
        await it.has(last)
        assert it.data("gap") == [{"reason": "restarted", "first": None, "last": None}]
        assert it.data("hello")[0]["resumed"] is False
        assert it.source.events[1].type == "gap"
        assert it.source.events[1].last_event_id == f"{probe.engine.run}-{last - 10}"
        assert it.seqs == list(range(last - 9, last + 1))


async def test_a_comment_keeps_it_alive_and_says_where_it_is(autojump_clock: MockClock) -> None:
    """What a filter left out need not be looked through again."""
    async with running(keep_alive_s=15) as probe, watching(probe, "session=s2") as it:
        await it.next_chunk()
        for _ in range(3):
            start = trio.current_time()
            last = happen(probe, 5)
            # Something goes on all the time, but nothing for this reader.
            for _ in range(100):
                await trio.sleep(0.1)
                last = happen(probe, 1)
            await it.next_chunk()
            assert 14.7 <= trio.current_time() - start <= 15.5
            assert it.source.last_event_id == f"{probe.engine.run}-{last}"
        assert it.source.comments == [" keep-alive"] * 3
        assert it.seqs == []


async def test_a_reader_too_many_is_told_so(autojump_clock: MockClock) -> None:
    async with running(max_feed_readers=2) as probe:
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await (await stack.enter_async_context(watching(probe))).next_chunk()
            async with exchange(probe.app, "GET", "/dashboard/events", LOCAL) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (503, "5")
                assert "max_feed_readers" in (await answer.json())["detail"]
            assert probe.events("limit.reached")[-1]["limit"] == "max_feed_readers"
            assert len(probe.app.feed.readers) == 2
        assert probe.app.feed.readers == []
        async with watching(probe) as it:
            await it.next_chunk()


async def test_a_tick_is_always_a_later_moment(autojump_clock: MockClock) -> None:
    """0.8 // 0.1 is 7: whoever sleeps until 8 * 0.1 then would not sleep at all."""
    async with running(feed_tick_s=0.1) as probe:
        for _ in range(100):
            before = trio.current_time()
            await probe.app.feed._ticks.next()
            assert before < trio.current_time() <= before + 0.1001


async def test_how_far_readers_are_behind(probe: Probe, autojump_clock: MockClock) -> None:
    async with watching(probe) as it:
        await it.has(1)
        last = happen(probe, 5)
        (reader,) = probe.app.feed.readers
        assert (reader.position, reader.behind, reader.since) == (1, 5, probe.engine.started_at)
        await it.has(last)
        assert probe.app.feed.readers[0].behind == 0


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("sesion=s1", "there is no parameter 'sesion'; known are session, .*, since, tail, tables"),
        ("kind=nope", "there is no kind 'nope'"),
        ("exchange=x", "exchange must be"),
        ("tables=calls,nope", "there is no table 'nope'; known are tasks, calls, sessions, streams, hosts"),
        ("tables=", "there is no table ''"),
        ("tail=-1", "tail must be a whole number from 0, got '-1'"),
        ("tail=" + "9" * 5000, "tail must be"),
        ("tail=1&tail=2", "tail stands twice"),
        ("session=a&session=b", "session stands twice"),
    ],
)
async def test_what_there_is_not_is_refused(query: str, why: str, probe: Probe) -> None:
    status, problem = await refused(probe, query)
    assert (status, problem["status"], problem["title"]) == (400, 400, "Bad Request")
    assert re.search(why, problem["detail"])


async def test_other_types_are_refused(probe: Probe) -> None:
    assert (await refused(probe, accept="application/json"))[0] == 406
    for accept in ("*/*", "text/*", "text/event-stream;q=0.5"):
        async with exchange(probe.app, "HEAD", "/dashboard/events", {**LOCAL, "accept": accept}) as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
            assert await answer.body() == b""
    assert probe.app.feed.readers == []


async def test_reading_writes_no_entries(probe: Probe, autojump_clock: MockClock) -> None:
    before = probe.engine.log.last
    async with watching(probe, TABLES) as it:
        await it.next_chunk()
        await trio.sleep(60)
    assert probe.engine.log.last == before


async def test_rows_come_whole_at_the_start_and_then_as_they_change(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    async with watching(probe, f"{TABLES}&session=nobody") as it:
        await it.next_chunk()
        assert [row["tool"] for row in it.rows("calls")] == ["simple_tool"]
        assert [row["id"] for row in it.rows("sessions")] == ["s1"]
        assert [row["ended_at"] is None for row in it.rows("streams")] == [False]
        assert it.rows("tasks") == []
        await client.tool("chatty")
        await it.next_chunk()
        assert [row["tool"] for row in it.rows("calls")] == ["simple_tool", "chatty"], "only what has changed"
        assert it.rows("calls")[-1]["outcome"] == "completed"
        assert it.seqs == [], "the filter is for entries alone"
        await client.tool("pure_task", task={})
        await trio.sleep(60)
        await it.until(lambda: bool(it.rows("tasks")) and it.rows("tasks")[-1]["status"] == "completed")


async def test_only_the_tables_that_were_asked_for(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    async with watching(probe, "tables=calls,calls") as it:
        await it.next_chunk()
        assert {event["table"] for event in it.data("rows")} == {"calls"}
        assert len(it.rows("calls")) == 1
    async with watching(probe) as it:
        await it.next_chunk()
        assert it.data("rows") == []


async def test_a_row_that_changes_often_is_sent_once_a_tick(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with watching(probe, "tables=sessions&tail=0") as it:
        await it.next_chunk()
        before = len(it.rows("sessions"))
        for _ in range(20):
            await client.call("ping")
        await it.next_chunk()
        assert len(it.rows("sessions")) == before + 1
        assert it.rows("sessions")[-1]["requests"] == 21


async def test_a_reader_that_looks_before_the_tables_do_does_not_sleep(autojump_clock: MockClock) -> None:
    async with running(feed_tick_s=0.25, keep_alive_s=15) as probe:

        async def send(_: Any) -> None:
            await trio.lowlevel.checkpoint()

        client = await probe.client()
        app = probe.app.feed
        it = app._admit(HttpHead("GET", []), None, "tables=calls&tail=0", send)
        # Another reader has asked where this tick ends.
        await trio.sleep(0.25)
        assert app._ticks.end == probe.engine.log.last
        await client.tool("chatty")
        await it._begin()
        await it._send_new()
        assert it._tables[0].version == probe.engine.observer.tables.last
        assert not it._unsent_rows(), "the first rows were as far as the log"
        await client.tool("chatty")
        assert it._unsent_rows()


async def test_of_calls_only_the_newest(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    for _ in range(60):
        await client.tool("chatty")
    async with watching(probe, "tables=calls&tail=0") as it:
        await it.next_chunk()
        assert [row["call"] for row in it.rows("calls")] == [f"c{number}" for number in range(11, 61)]
        for _ in range(60):
            await client.tool("chatty")
        await it.until(lambda: it.rows("calls")[-1]["call"] == "c120")
        assert len(it.rows("calls")) == 50 + 50


async def test_many_rows_take_several_ticks_and_none_is_left_out(
    probe: Probe, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_pieces, "_ROWS", 3)
    clients = [await probe.client() for _ in range(10)]
    async with watching(probe, "tables=sessions&tail=0") as it:
        await it.next_chunk()
        assert len(it.rows("sessions")) == 10, "all of them at the start"
        for client in clients:
            await client.call("ping")
        start = trio.current_time()
        await it.until(lambda: len(it.rows("sessions")) == 20)
        assert 0.75 <= trio.current_time() - start <= 2
        assert {row["id"] for row in it.rows("sessions")[10:]} == {f"s{number}" for number in range(1, 11)}


async def test_readers_in_step_cost_hardly_more_than_one(
    probe: Probe, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: Counter[int] = Counter()
    original = Entry.encoded

    def counting(entry: Entry) -> bytes:
        encoded[entry.seq] += 1
        return original(entry)

    monkeypatch.setattr(Entry, "encoded", counting)
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(watching(probe, "tail=0")) for _ in range(20)]
        for reader in readers:
            await reader.next_chunk()
        for _ in range(30):
            last = happen(probe, 50)
            await trio.sleep(0.1)
        for reader in readers:
            await reader.has(last)
            assert reader.seqs == list(range(2, last + 1))
    assert set(encoded) == set(range(2, last + 1))
    assert set(encoded.values()) == {1}


async def test_others_run_between_the_pieces(probe: Probe) -> None:
    happen(probe, 2000)
    async with counted_passes() as passes, watching(probe, "tail=2000") as it:
        await it.has(2001)
    assert passes.count >= 2000 / 64


async def test_a_reader_that_does_not_read_holds_one_chunk_and_nobody_else(
    probe: Probe, autojump_clock: MockClock
) -> None:
    held = []

    async def send(event: Any) -> None:
        if event["type"] == "http.response.body":
            held.append(len(event["body"]))
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        scope = http_scope("GET", "/dashboard/events", LOCAL)
        nursery.start_soon(probe.app, scope, trio.sleep_forever, send)
        await wait_all_tasks_blocked()
        async with watching(probe) as it:
            for _ in range(50):
                last = happen(probe, 20, size=5000)
                await it.has(last)
        assert len(held) == 1
        stuck = probe.app.feed.readers[0]
        assert stuck.behind == last - stuck.position > 900
        nursery.cancel_scope.cancel()


async def test_a_reader_that_does_not_read_holds_nothing_that_its_chunk_was_made_of(
    probe: Probe, autojump_clock: MockClock
) -> None:
    begun: list[int] = []

    async def send(event: Any) -> None:
        begun.append(len(event.get("body", b"")))
        if event["type"] == "http.response.body":
            await trio.sleep_forever()

    last = happen(probe, 20, size=5000)
    frames_before = _feed_frames()
    async with trio.open_nursery() as nursery:
        scope = http_scope("GET", f"/dashboard/events?tail={last}", {**LOCAL, "accept-encoding": "gzip"})
        nursery.start_soon(probe.app, scope, trio.sleep_forever, send)
        await wait_all_tasks_blocked()
        assert begun[-1]
        pieces = probe.app.feed._pieces
        pieces._kept.clear()
        assert _feed_frames() == frames_before
        nursery.cancel_scope.cancel()


def _feed_frames() -> int:
    return sum(isinstance(each, FeedFrame) for each in gc.get_objects())


async def test_a_chunk_is_bounded(probe: Probe, autojump_clock: MockClock) -> None:
    async with watching(probe, "tail=0") as it:
        await it.next_chunk()
        last = happen(probe, 200, size=10_000)
        await it.has(last)
        assert it.seqs == list(range(2, last + 1))
        assert max(map(len, it.chunks)) < 2 * 64 * 1024 + 11_000


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP;q=0.8", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("identity", False),
        ("x-gzip", False),
        ("", False),
    ],
)
async def test_who_takes_gzip_gets_the_same_in_fewer_bytes(
    accept: str, packed: bool, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    last = happen(probe, 300)
    headers = {**LOCAL, "accept-encoding": accept}
    unpack = zlib.decompressobj(wbits=31)
    async with (
        watching(probe, f"{TABLES}&tail=999") as plain,
        exchange(probe.app, "GET", f"/dashboard/events?{TABLES}&tail=999", headers) as answer,
    ):
        assert answer.headers.get("content-encoding") == ("gzip" if packed else None)
        assert answer.headers["vary"] == "accept-encoding"
        await plain.has(last)
        await client.tool("chatty")
        last = happen(probe, 1, size=300_000)
        await plain.has(last)
        await trio.sleep(20)
        source, size = EventSource(), 0
        while source.comments == []:
            part = await anext(answer.parts())
            size += len(part)
            source.feed(unpack.decompress(part) if packed else part)
        await plain.until(lambda: bool(plain.source.comments))
        assert source.events == plain.source.events
        assert source.comments == plain.source.comments
        assert (size < 0.9 * sum(map(len, plain.chunks))) == packed


def test_what_is_kept_of_pieces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with running() as probe:
            happen(probe, 1000, size=1000)
            pieces = Pieces("r", probe.engine.log, probe.engine.observer.tables, EntryViews(probe.engine.log, Views))
            monkeypatch.setattr(feed_pieces, "_KEPT_BYTES", 300_000)
            for after in range(0, 900, 64):
                assert pieces.entries(Span(after, after + 64), EVERYTHING).reached > after
            kept = [len(piece.text) for piece in pieces._kept.values()]
            assert 200_000 < sum(kept) == pieces._kept_bytes <= 300_000
            monkeypatch.setattr(feed_pieces, "_KEPT", 5)
            for after in range(900):
                pieces.entries(Span(after, after + 1), parse([("session", "s9")]))
            assert len(pieces._kept) == 5

    trio.run(run)


async def test_while_the_server_drains_its_readers_see_it(autojump_clock: MockClock) -> None:
    async with running(grace_s=5) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery, watching(probe, "kind=server") as it:
            nursery.start_soon(client.tool, "sync_with_progress")
            await it.next_chunk()
            await trio.sleep(0.5)
            nursery.start_soon(probe.engine.drain)
            await it.until(lambda: it.data("message")[-1]["state"] == ServerState("stopped").state)
            await probe.app.mcp.wait_idle()
            nursery.cancel_scope.cancel()


async def test_with_view_each_entry_says_what_it_is_part_of_and_its_exchange_has_a_row(probe: Probe) -> None:
    client = await probe.client()
    async with watching(probe, "view=1") as it:
        await client.tool("simple_tool")
        await it.has(probe.engine.log.last)
        *_, answer = [entry for entry in it.data("message") if entry["kind"] == "message.emitted"]
        *_, taken = [entry for entry in it.data("message") if entry["kind"] == "message.delivered"]
        assert (answer["view"]["method"], answer["view"]["exchange"]) == ("tools/call", answer["exchange"])
        assert (answer["view"]["delivered"]["seq"], taken["view"]["delivers"]) == (taken["seq"], [answer["seq"]])
        *_, row = [row for row in it.rows("exchanges") if row["exchange"] == answer["exchange"]]
        assert (row["answer"], row["delivered"]["seq"]) == (answer["seq"], taken["seq"])
        assert (row["ending"]["state"], row["tool"]) == ("completed", "simple_tool")


async def test_with_view_a_delivery_that_comes_later_brings_its_messages_and_the_row_again(
    probe: Probe, autojump_clock: MockClock
) -> None:
    log, place = probe.engine.log, Context(exchange=7, session="s1")
    asked = log.append(received({"id": 1, "method": "ping"}), place)
    answer = log.append(emitted({"id": 1, "result": {}}), place, asked)
    async with watching(probe, "view=1&kind=message") as it:
        await it.has(answer)
        assert it.data("message")[-1]["view"]["delivered"] is None
        assert it.rows("exchanges")[-1]["delivered"] is None
        taken = log.append(MessagesDelivered(1, 1), place, answer)
        await it.has(taken)
        assert it.data("message")[-1]["view"]["delivers"] == [answer]
        assert it.rows("exchanges")[-1]["delivered"]["seq"] == taken


async def test_a_feed_of_one_session_has_no_rows_of_the_exchanges_of_others(
    probe: Probe, autojump_clock: MockClock
) -> None:
    happen(probe, 2, session="s2")
    last = probe.engine.log.append(received({"id": 1, "method": "ping"}), Context(exchange=9, session="s1"))
    async with watching(probe, "view=1&session=s1") as it:
        await it.has(last)
        assert {row["session"] for row in it.rows("exchanges")} == {"s1"}


async def test_without_view_an_entry_is_as_the_file_of_the_log_has_it(probe: Probe, autojump_clock: MockClock) -> None:
    last = happen(probe, 1)
    async with watching(probe, "view=0") as it:
        await it.has(last)
        assert it.data("message")[-1] == as_value(probe.engine.log.since(last - 1, 1).entries[0])
        assert it.rows("exchanges") == []
    assert (await refused(probe, "view=yes"))[0] == 400


async def test_with_passes_entries_and_exchanges_say_whether_they_pass_a_line(
    probe: Probe, autojump_clock: MockClock
) -> None:
    log = probe.engine.log

    def asked(exchange: int, *methods: str) -> int:
        for method in methods:
            log.append(received({"id": 1, "method": method}), Context(exchange=exchange, session="s1"))
        return log.last

    first = asked(7, "ping", "tools/list")
    async with watching(probe, "view=1&passes=method:ping,tools/list+-method:tools/call") as it:
        await it.has(asked(8, "ping"))
        assert it.seqs == list(range(1, log.last + 1)), "nothing is left out"
        await it.has(asked(8, "tools/call"))
        passes = {entry["seq"]: entry["view"]["passes"] for entry in it.data("message")}
        assert [passes[seq] for seq in range(first - 1, first + 3)] == [True, True, True, False]
        rows = [(row["exchange"], row["passes"]) for row in it.rows("exchanges")]
        assert rows == [(7, True), (8, True), (8, False)], "an exchange that has more entries may no longer pass"
    assert (await refused(probe, "passes=ping"))[0] == 400
    assert (await refused(probe, "view=1&passes=colour:red"))[0] == 400
