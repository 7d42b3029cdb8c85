"""`/api/events`: pages in both directions, filters, one entry, and the whole log as lines."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio

from probe import __version__
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import MessagesDelivered
from probe.log.ndjson import End

from ...support.api import LOCAL, get, lines, page, refusal
from ...support.facts import emitted, received
from ...support.http import exchange
from ...support.logs import load
from ...support.passes import counted_passes
from ...support.probe import Probe, running
from ...support.rows import each


def fill(probe: Probe, count: int, *, session: str | None = None, size: int = 0) -> None:
    """So many messages in the log."""
    for number in range(count):
        fact = received({"method": f"m/{number % 3}", "pad": "x" * size})
        probe.engine.log.append(fact, Context(exchange=number + 1, session=session))


async def read_on(probe: Probe, cursor: str, query: str = "", begin: int = 0) -> list[Any]:
    """All pages of one direction, until there is no more."""
    pages, at = [], begin
    while True:
        answer = await page(probe, f"/api/events?{cursor}={at}{query}")
        pages.append(answer)
        if answer["next"] is None or answer["next"] == at:
            return pages
        at = answer["next"]


def seqs(pages: list[Any]) -> list[int]:
    return [event["seq"] for answer in pages for event in answer["events"]]


async def test_events_are_read_page_by_page_from_a_cursor(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    pages = await read_on(probe, "since", "&limit=4")
    assert all(len(answer["events"]) <= 4 and answer["gap"] is None for answer in pages)
    assert all(answer["last"] == probe.engine.log.last and answer["run"] == probe.engine.run for answer in pages)
    assert seqs(pages) == list(range(1, probe.engine.log.last + 1))
    events = [event for answer in pages for event in answer["events"]]
    methods = [event["method"] for event in events if event["kind"] == "message.received"]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]


async def test_events_are_read_newest_first_before_a_cursor(probe: Probe) -> None:
    fill(probe, 250)
    last = probe.engine.log.last
    pages = await read_on(probe, "before", "&limit=60", begin=10**14)
    assert seqs(pages) == list(range(last, 0, -1))
    assert [len(answer["events"]) for answer in pages] == [60, 60, 60, 60, last - 240]
    assert pages[-1]["next"] is None
    assert (await page(probe, "/api/events?before=3"))["events"][0]["seq"] == 2
    assert (await page(probe, "/api/events?before=1"))["events"] == []


async def test_what_was_pushed_out_is_a_gap_and_not_silence() -> None:
    async with running(event_log_events=100) as probe:
        fill(probe, 150)
        last = probe.engine.log.last
        forward = await page(probe, "/api/events?since=7")
        assert forward["gap"] == {"first": 8, "last": last - 100}
        assert forward["events"][0]["seq"] == last - 99
        backward = await page(probe, "/api/events?before=1000")
        assert backward["gap"] == {"first": 1, "last": last - 100}
        assert (backward["events"][-1]["seq"], backward["next"]) == (last - 99, None)
        lost = await page(probe, "/api/events?before=20")
        assert (lost["gap"], lost["events"], lost["next"]) == ({"first": 1, "last": 19}, [], None)


async def test_what_is_pushed_out_while_a_page_is_made_is_for_the_next_page_to_tell() -> None:
    """Else a gap would stand in the middle of a page, where there is no place for one."""
    async with running(event_log_events=100) as probe:
        fill(probe, 100, session="s1")
        first: list[Any] = []

        async def read() -> None:
            first.append(await page(probe, "/api/events?limit=500"))

        await page(probe, "/api")
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                for _ in range(60):
                    await trio.lowlevel.checkpoint()
                fill(probe, 300)
        at = first[0]["next"]
        assert seqs(first) == list(range(seqs(first)[0], at + 1))
        following = await page(probe, f"/api/events?since={at}")
        assert following["gap"]["first"] == at + 1
        assert following["events"][0]["seq"] == following["gap"]["last"] + 1


async def test_a_page_has_at_most_500_events(probe: Probe) -> None:
    fill(probe, 600)
    for target in ("/api/events", "/api/events?limit=99999", "/api/events?before=10000"):
        assert len((await page(probe, target))["events"]) == 500


@pytest.mark.parametrize("cursor", ["since=0", "before=1000"])
async def test_a_page_is_bounded_in_bytes_but_never_empty(cursor: str) -> None:
    async with running(api_page_bytes=64 * 1024) as probe:
        fill(probe, 10, size=30_000)
        fill(probe, 2, size=100_000)
        pages = await read_on(probe, *cursor.split("=")[:1], begin=int(cursor.split("=")[1]))
        assert sorted(seqs(pages)) == list(range(1, probe.engine.log.last + 1))
        sizes = [
            sum(len(event["message"].get("pad", "")) for event in answer["events"] if "message" in event)
            for answer in pages
        ]
        assert max(sizes) == 100_000
        assert all(size <= 64 * 1024 for size in sizes if size != 100_000)


async def test_filters_choose_and_next_goes_on_behind_what_was_looked_at(probe: Probe) -> None:
    fill(probe, 90, session="s7")
    fill(probe, 90)
    found = await page(probe, "/api/events?session=s7&method=m/1&limit=20")
    assert {(event["session"], event["method"]) for event in found["events"]} == {("s7", "m/1")}
    assert (len(found["events"]), found["next"]) == (20, found["events"][-1]["seq"])
    everything = await read_on(probe, "since", "&session=s7&method=m/1&limit=20")
    assert len(seqs(everything)) == 30
    assert everything[-1]["next"] == probe.engine.log.last, "an empty end is not looked at again"
    assert (await page(probe, "/api/events?text=NO%20SUCH"))["events"] == []


@pytest.mark.parametrize(("cursor", "begin"), [("since", 0), ("before", 10**9)])
async def test_a_page_with_filters_looks_at_a_bounded_number_of_entries(cursor: str, begin: int) -> None:
    async with running(api_scan=100) as probe:
        fill(probe, 450)
        fill(probe, 1, session="s9")
        fill(probe, 450)
        pages = await read_on(probe, cursor, "&session=s9", begin)
        assert seqs(pages) == [probe.engine.log.last - 450]
        assert len(pages) >= 9
        steps = [abs(b["next"] - a["next"]) for a, b in pairwise(pages) if b["next"] is not None]
        assert max(steps) == 100


async def test_since_and_before_exclude_each_other(probe: Probe) -> None:
    assert "exclude" in (await refusal(probe, "/api/events?since=1&before=9"))["detail"]


async def test_messages_are_shown_as_they_came(probe: Probe) -> None:
    """Not read and written again: of a page of large ones that would be most of the work."""
    client = await probe.client()
    body = b'{ "jsonrpc":"2.0" ,"id" : 1.0e0, "method": "ping" }'
    async with exchange(probe.app, "POST", "/mcp", client.headers, body):
        pass
    async with exchange(probe.app, "GET", "/api/events", LOCAL) as answer:
        assert b'"message":' + body in await answer.body()


@pytest.mark.parametrize("target", ["/api/events", "/api/events?text=nothing", "/api/events.ndjson", "/api/sessions"])
async def test_others_run_while_an_answer_is_made(target: str, probe: Probe) -> None:
    for _ in range(120):
        await probe.client()
    await page(probe, "/api/events?limit=1")
    async with counted_passes() as passes, exchange(probe.app, "GET", target, LOCAL) as answer:
        await answer.body()
    assert passes.count > 120


class Steps(trio.abc.Instrument):
    """What one task step encodes at most, in bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._now = 0
        self.entries = 0
        encoded = Entry.encoded

        def counted(entry: Entry) -> bytes:
            row = encoded(entry)
            self._now += len(row)
            self.entries += 1
            self.most = max(self.most, self._now)
            return row

        monkeypatch.setattr(Entry, "encoded", counted)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._now = 0


@pytest.mark.parametrize(
    "target", ["/api/events.ndjson?text=nothing", "/api/events?text=nothing", "/dashboard/events?text=nothing"]
)
async def test_large_entries_are_searched_one_by_one(
    target: str, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(probe, 60, size=300_000)
    await page(probe, "/api")
    steps = Steps(monkeypatch)
    trio.lowlevel.add_instrument(steps)
    async with exchange(probe.app, "GET", target, LOCAL) as answer:
        await anext(aiter(answer.parts()))
    trio.lowlevel.remove_instrument(steps)
    assert steps.most < 400_000


@pytest.mark.parametrize("target", ["/api/events.ndjson?text=pad", "/api/events?text=pad"])
async def test_what_is_found_is_encoded_once(target: str, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(probe, 50)
    await page(probe, "/api")
    steps = Steps(monkeypatch)
    async with exchange(probe.app, "GET", target, LOCAL) as answer:
        await answer.body()
    assert steps.entries == probe.engine.log.last


@pytest.mark.parametrize("target", ["/api/events", "/api/events.ndjson", "/api/sessions", "/api/streams", "/api/tasks"])
async def test_no_session_id_can_be_read_from_the_api(target: str, probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    async with exchange(probe.app, "GET", target, LOCAL) as answer:
        assert client.headers["mcp-session-id"].encode() not in await answer.body()


@each("name, low", [("since", 0), ("before", 0), ("limit", 1)])
@each("value", ["-1", "1.5", "x", "", "+1", "%201", "1e3", "0x1", "9" * 16, "%D9%A3", "%00"])
async def test_a_query_that_is_no_number_is_a_problem_that_says_so(
    name: str, low: int, value: str, probe: Probe
) -> None:
    problem = await refusal(probe, f"/api/events?{name}={value}")
    assert problem["detail"].startswith(f"{name} must be a whole number from {low}")


async def test_a_page_of_none_is_refused(probe: Probe) -> None:
    """It would give its own cursor again, for ever."""
    await refusal(probe, "/api/events?limit=0")


# --- one entry ---


async def test_one_entry_is_the_one_in_the_page(probe: Probe) -> None:
    await probe.client()
    for entry in (await page(probe, "/api/events"))["events"]:
        assert await page(probe, f"/api/events/{entry['seq']}") == entry


async def test_an_entry_that_is_not_there_says_whether_it_was_or_may_be() -> None:
    async with running(event_log_events=100) as probe:
        fill(probe, 150)
        last = probe.engine.log.last
        assert f"the oldest is {last - 99}" in (await refusal(probe, f"/api/events/{last - 100}", 404))["detail"]
        assert f"the newest is {last}" in (await refusal(probe, f"/api/events/{last + 1}", 404))["detail"]
        for name in ("0", "-1", "x", "1.0", "%D9%A3", "%00", "9" * 400):
            assert "counts from 1" in (await refusal(probe, f"/api/events/{name}", 404))["detail"]


async def test_an_entry_is_not_sent_again_to_who_has_it(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/api/events/1", LOCAL) as answer:
        tag = answer.headers["etag"]
        assert answer.headers["cache-control"] == "no-cache"
        assert await answer.json()
    assert probe.engine.run in tag, "another run has another entry 1"
    for have in (tag, f'W/{tag}, "other"', "*"):
        async with exchange(probe.app, "GET", "/api/events/1", {**LOCAL, "if-none-match": have}) as answer:
            assert (answer.status, answer.headers["etag"], await answer.body()) == (304, tag, b"")
            assert "content-type" not in answer.headers
    async with exchange(probe.app, "GET", "/api/events/1", {**LOCAL, "if-none-match": '"other"'}) as answer:
        assert answer.status == 200


# --- lines ---


async def test_the_whole_log_comes_as_lines_that_can_be_read_back(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("progress", {"steps": 3, "step_ms": 0})
    fill(probe, 300, size=2000)
    async with exchange(probe.app, "GET", "/api/events.ndjson", LOCAL) as answer:
        assert answer.headers["content-disposition"] == f'attachment; filename="events-{probe.engine.run}.ndjson"'
        parts = [part async for part in answer.parts()]
    assert len(parts) > 5
    assert max(map(len, parts)) < 100_000, "in bounded pieces"
    saved = load(b"".join(parts).splitlines())
    assert saved.header.run == probe.engine.run
    assert saved.entries == probe.engine.log.since(0, 10_000).entries
    assert saved.gaps == []
    assert saved.end == End(probe.engine.log.last, "complete")
    head = saved.header
    assert (head.program, head.started_at, head.catalogue) == (__version__, probe.engine.started_at, None)
    assert head.settings["keep_alive_s"] == probe.engine.settings.keep_alive_s


async def test_lines_are_filtered_and_begin_behind_since(probe: Probe) -> None:
    fill(probe, 30, session="s7")
    head, *rows, end = await lines(probe, "/api/events.ndjson?session=s7&since=11")
    assert (head["kind"], head["version"], head["run"]) == ("log", 2, probe.engine.run)
    assert end == {"kind": "end", "last": probe.engine.log.last, "why": "filtered"}
    assert [row["seq"] for row in rows] == list(range(12, 32))


async def test_lines_say_what_was_pushed_out_before_and_while_they_are_read() -> None:
    async with running(event_log_events=1000) as probe:
        fill(probe, 1500, size=3000)
        asked_at = probe.engine.log.last
        await page(probe, "/api")
        async with exchange(probe.app, "GET", "/api/events.ndjson", LOCAL) as answer:
            parts = answer.parts()
            write = [await anext(aiter(parts))]
            fill(probe, 5000)
            write += [part async for part in parts]
        saved = load(b"".join(write).splitlines())
        assert [gap.first for gap in saved.gaps] == [1, saved.gaps[1].first]
        told = [seq for gap in saved.gaps for seq in range(gap.first, gap.last + 1)]
        told += [entry.seq for entry in saved.entries]
        assert sorted(told) == list(range(1, max(told) + 1))
        assert saved.end is not None
        assert saved.end.last == max(told) >= asked_at


async def test_a_client_that_goes_ends_its_lines() -> None:
    """The response is over, and nothing of it runs on."""
    async with running(event_log_events=20_000) as probe:
        fill(probe, 15_000)
        await page(probe, "/api")
        before = trio.lowlevel.current_statistics().tasks_living
        with trio.fail_after(10):
            async with exchange(probe.app, "GET", "/api/events.ndjson", LOCAL) as answer:
                await anext(aiter(answer.parts()))
                answer.hang_up()
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_text_of_two_alphabets_is_found_in_either_case(probe: Probe) -> None:
    probe.engine.log.append(received({"method": "x", "params": {"word": "Grüße"}}))
    assert len((await page(probe, "/api/events?text=GR%C3%9C%C3%9FE"))["events"]) == 1


async def test_reading_writes_no_events(probe: Probe) -> None:
    before = probe.engine.log.last
    for target in ("/api/events", "/api/events/1", "/api/events.ndjson", "/api/server", "/api/nope"):
        async with exchange(probe.app, "GET", target, LOCAL) as answer:
            await answer.body()
    assert probe.engine.log.last == before
    assert (await get(probe, "/api/events"))[2]["last"] == before


async def test_with_view_entries_say_what_they_are_part_of_and_their_exchanges_have_rows(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    plain, viewed = [await page(probe, f"/api/events?before=10000{query}") for query in ("", "&view=1")]
    assert [{**event, "view": None} for event in viewed["events"]] == [
        {**event, "view": None} for event in plain["events"]
    ]
    assert "exchanges" not in plain
    assert {event["view"]["exchange"] for event in viewed["events"] if event["view"]["on_wire"]} == {
        row["exchange"] for row in viewed["exchanges"] if row["on_wire"]
    }
    *_, answer = [event for event in viewed["events"][::-1] if event["kind"] == "message.emitted"]
    assert answer["view"]["method"] == "tools/call"
    assert await page(probe, f"/api/events/{answer['seq']}?view=1") == answer
    found = await page(probe, "/api/search?filter=tool:simple_tool&view=1")
    assert [row["ending"]["state"] for row in found["exchanges"]] == ["completed"]
    assert answer in found["events"]


async def test_the_tag_of_an_entry_with_its_view_changes_when_it_is_delivered(probe: Probe) -> None:
    log, place = probe.engine.log, Context(exchange=7)
    asked = log.append(received({"id": 1, "method": "ping"}), place)
    answer = log.append(emitted({"id": 1, "result": {}}), place, asked)
    target = f"/api/events/{answer}?view=1"
    async with exchange(probe.app, "GET", target, LOCAL) as first:
        known = {**LOCAL, "if-none-match": first.headers["etag"]}
    log.append(MessagesDelivered(1, 1), place, answer)
    for status in (200, 304):
        async with exchange(probe.app, "GET", target, known) as again:
            assert again.status == status
            known["if-none-match"] = again.headers["etag"]
