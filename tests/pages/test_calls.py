"""`/api/calls`: pages, one call with its evidence, exports, and the live tail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.endpoints import call_tail
from probe.endpoints.pages import calls

from ..support.api import LOCAL, lines, page
from ..support.audit import auditing
from ..support.http import Answer, exchange, http_scope
from ..support.probe import Probe, running
from ..support.rows import each
from ..support.shown import as_value, newest


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Probe]:
    """The same answers, wherever calls are kept."""
    if request.param == "memory":
        async with running() as probe:
            yield probe
    else:
        async with auditing(tmp_path / "audit.db") as probe:
            yield probe


async def fill(probe: Probe, count: int, **arguments: Any) -> None:
    client = await probe.client()
    for number in range(count):
        await client.call("tools/call", {"name": "chatty", "arguments": {"lines": 1, **arguments}}, number)


async def test_calls_are_read_page_by_page_newest_first(store: Probe) -> None:
    await fill(store, 7)
    target, pages = "/api/calls?limit=3", []
    while True:
        pages.append(await page(store, target))
        if pages[-1]["next"] is None:
            break
        target = f"/api/calls?limit=3&cursor={pages[-1]['next']}"
    assert [[row["request_id"] for row in answer["calls"]] for answer in pages] == [[6, 5, 4], [3, 2, 1], [0]]
    assert pages[0]["calls"][0] == store.record()
    assert (await page(store, "/api/calls"))["calls"] == [row for answer in pages for row in answer["calls"]]


async def test_filters_choose_calls(store: Probe) -> None:
    await fill(store, 3)
    client = await store.client()
    await client.call("tools/call", {"name": "progress", "arguments": {"steps": 2, "step_ms": 0}}, "p")
    await client.call("tools/call", {"name": "progress", "arguments": {"steps": "two"}}, "bad")
    for query, expected in [
        ("tool=progress", ["bad", "p"]),
        ("tool=progress&outcome=completed", ["p"]),
        ("arguments.steps=2", ["p"]),
        ("arguments.steps=%22two%22", ["bad"]),
        ("result.structuredContent.done=true&era=legacy", ["p"]),
        ("result.content.0.type=text&text=%22STEPS%22", ["bad", "p"]),
        ("session=s2&from=2020-01-01T00:00:00%2B01:00", ["bad", "p"]),
        (f"run={store.engine.run}&outcome=completed,cancelled", ["p"]),
        ("until=5", []),
        ("outcome=running", []),
    ]:
        for target in (f"/api/calls?{query}", f"/api/calls.ndjson?{query}"):
            rows = await lines(store, target) if "ndjson" in target else (await page(store, target))["calls"]
            assert [row["request_id"] for row in rows] == expected, target


@pytest.mark.parametrize("path", ["/api/calls", "/api/calls.ndjson", "/api/calls.csv", "/api/calls/live"])
async def test_a_misspelt_filter_is_refused_with_the_known_ones(path: str, probe: Probe) -> None:
    async with exchange(probe.app, "GET", f"{path}?tol=progress", LOCAL) as answer:
        problem = await answer.json()
        assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    for known in ("tool", "outcome", "text", "arguments.", "result."):
        assert known in problem["detail"]


@each(
    "query",
    [
        *("limit=0", "limit=x", "limit=-1", "cursor=x", "cursor=", "cursor=other-5", "outcome=nope", "era=x", "from=x"),
        *("arguments=5", "arguments.=5", "arguments..a=5", "tool=", "tool=a&tool=b", "transport=pigeon", "until=%00"),
    ],
)
async def test_a_bad_query_is_a_problem(query: str, store: Probe) -> None:
    async with exchange(store.app, "GET", f"/api/calls?{query}", LOCAL) as answer:
        assert answer.status == 400
        assert (await answer.json())["detail"]


async def test_a_page_has_at_most_api_page_rows_and_api_page_bytes() -> None:
    async with running(api_page=5, api_page_bytes=64 * 1024) as probe:
        await fill(probe, 12)
        assert len((await page(probe, "/api/calls"))["calls"]) == 5
        assert len((await page(probe, "/api/calls?limit=999999"))["calls"]) == 5
    async with running(api_page_bytes=64 * 1024) as probe:
        await fill(probe, 12, pad="x" * 15_000)
        answer = await page(probe, "/api/calls")
        assert 4 <= len(answer["calls"]) <= 5
        assert answer["next"] is not None


async def test_one_call_is_given_with_its_evidence(store: Probe) -> None:
    await fill(store, 2)
    for id in ("c2", f"{store.engine.run}.c2"):
        detail = await page(store, f"/api/calls/{id}")
        assert detail["call"] == store.record()
        assert detail["evidence"]["complete"] is True
        kinds = [event["kind"] for event in detail["evidence"]["events"]]
        assert kinds[:3] == ["http.request", "message.received", "call.started"]
        assert {event.get("call") for event in detail["evidence"]["events"]} == {None, "c2"}


@pytest.mark.parametrize("id", ["c9", "x", "other.c1", "1", "c1%00", "%F0%9F", "c" * 500])
async def test_a_call_that_there_is_not_is_404(id: str, store: Probe) -> None:
    await fill(store, 1)
    async with exchange(store.app, "GET", f"/api/calls/{id}", LOCAL) as answer:
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_who_has_a_call_already_gets_304_until_it_changes(store: Probe) -> None:
    client = await store.client()
    request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 9, "step_ms": 5000}}, "it")
    tags = []
    async with client.post(request):
        for _ in range(2):
            async with exchange(store.app, "GET", "/api/calls/c1", LOCAL) as answer:
                tags.append(answer.headers["etag"])
        assert tags[0] == tags[1]
        async with exchange(store.app, "GET", "/api/calls/c1", {**LOCAL, "if-none-match": tags[0]}) as answer:
            assert (answer.status, await answer.body()) == (304, b"")
        await client.cancel("it")
    async with exchange(store.app, "GET", "/api/calls/c1", {**LOCAL, "if-none-match": tags[0]}) as answer:
        assert answer.status == 200
        assert (await answer.json())["call"]["cancelled_by"] == "notification"


async def test_all_calls_are_exported_as_lines_and_as_a_table(store: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_PIECE_ROWS", 3)
    monkeypatch.setattr(calls, "_CHUNK_BYTES", 100)
    await fill(store, 10, note='=1+1\r\n",')
    rows = await lines(store, "/api/calls.ndjson")
    assert rows == [as_value(record) for record in newest(store.engine.records, 20)]
    async with exchange(store.app, "GET", "/api/calls.csv", LOCAL) as answer:
        assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
        assert answer.headers["content-disposition"].startswith('attachment; filename="calls-')
        text = (await answer.body()).decode()
    assert text.count("\r\n") == text.count("\n") == 11
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [json.loads(line["request_id"]) for line in table] == list(range(9, -1, -1))
    assert json.loads(table[0]["arguments"]) == rows[0]["arguments"]
    assert (table[0]["tool"], table[0]["done"], table[0]["task"]) == ("chatty", "false", "")


async def test_an_export_of_nothing_is_empty(store: Probe) -> None:
    assert await lines(store, "/api/calls.ndjson") == []
    async with exchange(store.app, "GET", "/api/calls.csv", LOCAL) as answer:
        assert (await answer.body()).startswith(b"id,run,call,")


async def test_an_export_ends_with_its_reader(store: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_PIECE_ROWS", 1)
    monkeypatch.setattr(calls, "_CHUNK_BYTES", 1)
    await fill(store, 30)
    asked = 0
    page_of = store.engine.audit.calls.page

    async def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked > 5:
            await trio.sleep_forever()
        return await page_of(*arguments)

    store.engine.audit.calls.page = counted  # type: ignore[method-assign]
    async with exchange(store.app, "GET", "/api/calls.ndjson", LOCAL) as answer:
        assert await anext(aiter(answer.parts()))
    assert asked <= 6


async def test_a_file_that_cannot_be_read_is_503(tmp_path: Path) -> None:
    async with auditing(tmp_path / "audit.db", audit_flush_s=60) as probe:
        await fill(probe, 1)
        await trio.Path(tmp_path / "audit.db").unlink()
        async with exchange(probe.app, "GET", "/api/calls", LOCAL) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert "cannot be read now" in (await answer.json())["detail"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/api/calls.ndjson", "/api/calls.csv"])
async def test_an_export_of_a_file_that_cannot_be_read_does_not_begin(path: str, method: str, tmp_path: Path) -> None:
    async with auditing(tmp_path / "audit.db", audit_flush_s=60) as probe:
        await fill(probe, 1)
        await trio.Path(tmp_path / "audit.db").unlink()
        async with exchange(probe.app, method, path, LOCAL) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            await answer.body()


# The live tail.


async def rows_of(answer: Answer, count: int) -> list[Any]:
    return [json.loads(event.data) for event in await answer.first(count)]


async def test_the_tail_gives_calls_as_they_start_and_end(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("chatty")
    async with exchange(probe.app, "GET", "/api/calls/live", LOCAL) as tail:
        assert (tail.status, tail.headers["content-type"]) == (200, "text/event-stream")
        await wait_all_tasks_blocked()
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 2, "step_ms": 5000}}, "it")
        async with client.post(request) as answer:
            (first,) = await rows_of(tail, 1)
            assert (first["call"], first["outcome"], first["steps_done"]) == ("c2", None, 0)
            (second,) = await rows_of(tail, 1)
            assert (second["call"], second["outcome"], second["steps_done"]) == ("c2", None, 1)
            await client.read(answer)
        row = second
        while not row["answer_delivered"]:
            (row,) = await rows_of(tail, 1)
        assert row == probe.record()


async def test_the_tail_filters(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with exchange(probe.app, "GET", "/api/calls/live?outcome=tool_error&arguments.steps=%22x%22", LOCAL) as tail:
        await wait_all_tasks_blocked()
        await client.tool("chatty")
        for steps in ("y", "x"):
            await client.tool("progress", {"steps": steps})
        (row,) = await rows_of(tail, 1)
        assert row["arguments"] == {"steps": "x"}


async def test_the_tail_tells_of_a_call_that_ended_before_the_tables_knew_of_it(autojump_clock: MockClock) -> None:
    """The log already had it when the reader looked, so nothing new would have woken it."""
    async with running(keep_alive_s=15) as probe:
        client, answers = await probe.client(), list[bytes]()
        told = trio.Event()

        async def send(message: Any) -> None:
            answers.append(message.get("body", b""))
            if answers[-1].startswith(b": calls from here"):
                await client.tool("chatty")
            if b"completed" in answers[-1]:
                told.set()

        async def receive() -> Any:
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(probe.app, http_scope("GET", "/api/calls/live", LOCAL), receive, send)
            with trio.fail_after(5):
                await told.wait()
            nursery.cancel_scope.cancel()


async def test_two_ids_to_resume_from_are_refused(probe: Probe) -> None:
    headers = [*LOCAL.items(), ("last-event-id", "a-1"), ("last-event-id", "a-2")]
    async with exchange(probe.app, "GET", "/api/calls/live", headers) as answer:
        detail = "Invalid Request: 2 different last-event-id headers"
        assert (answer.status, (await answer.json())["detail"]) == (400, detail)


async def test_the_tail_resumes_behind_an_id_without_loss(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    seen: dict[str, Any] = {}
    last = ""
    for round_ in range(12):
        headers = {**LOCAL, "last-event-id": last} if last else LOCAL
        async with exchange(probe.app, "GET", "/api/calls/live", headers) as tail:
            await wait_all_tasks_blocked()
            for _ in range(3):
                await client.tool("chatty")
            # One of those that are new: the others are for the next connection.
            for event in await tail.first(1 + round_ % 3):
                row = json.loads(event.data)
                seen[row["call"]] = row
                last = event.id or ""
    async with exchange(probe.app, "GET", "/api/calls/live", {**LOCAL, "last-event-id": last}) as tail:
        while len(seen) < 36:
            (event,) = await tail.first(1)
            row = json.loads(event.data)
            seen[row["call"]] = row
    assert {call: row["outcome"] for call, row in seen.items()} == {f"c{n}": "completed" for n in range(1, 37)}


@pytest.mark.parametrize("id", ["other-5", "5", "x", "00000001-999999", "00000001--1", "00000001-x"])
async def test_an_id_of_another_run_is_a_gap(id: str, probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("chatty")
    async with exchange(probe.app, "GET", "/api/calls/live", {**LOCAL, "last-event-id": id}) as tail:
        (gap,) = await tail.first(1)
        assert json.loads(gap.data) == {"reason": "restarted", "first": None, "last": None}
        await client.tool("chatty")
        (row,) = await rows_of(tail, 1)
        assert row["call"] == "c2"


async def test_a_reader_that_is_too_far_behind_is_told(autojump_clock: MockClock) -> None:
    async with running(call_records=50) as probe:
        client = await probe.client()
        await client.tool("chatty")
        probe.engine.observer.catch_up()
        behind = f"{probe.engine.run}-1"
        for _ in range(80):
            await client.tool("chatty")
        async with exchange(probe.app, "GET", "/api/calls/live", {**LOCAL, "last-event-id": behind}) as tail:
            gap, *rows = await tail.first(51)
            assert json.loads(gap.data)["reason"] == "skipped"
            assert [json.loads(row.data)["call"] for row in rows] == [f"c{number}" for number in range(32, 82)]


async def test_a_tail_that_gets_little_at_once_gets_all(
    probe: Probe, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_tail, "_MOST_ROWS", 2)
    client = await probe.client()
    async with exchange(probe.app, "GET", "/api/calls/live", LOCAL) as tail:
        await wait_all_tasks_blocked()
        for _ in range(20):
            await client.tool("chatty")
        assert [row["call"] for row in await rows_of(tail, 20)] == [f"c{number}" for number in range(1, 21)]


async def test_a_quiet_tail_is_kept_alive(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=5) as probe, exchange(probe.app, "GET", "/api/calls/live", LOCAL) as tail:
        with trio.move_on_after(32):
            await tail.next_event()
        kept = [comment for comment in tail.comments if comment == "keep-alive"]
        assert 4 <= len(kept) <= 6


async def test_readers_of_the_tail_and_of_the_feed_share_their_limit() -> None:
    async with running(max_feed_readers=2) as probe:
        async with (
            exchange(probe.app, "GET", "/api/calls/live", LOCAL) as one,
            exchange(probe.app, "GET", "/dashboard/events", LOCAL) as two,
        ):
            assert (one.status, two.status) == (200, 200)
            for target in ("/api/calls/live", "/dashboard/events"):
                async with exchange(probe.app, "GET", target, LOCAL) as third:
                    assert third.status == 503
                    assert "retry-after" in third.headers
            assert [event["limit"] for event in probe.events("limit.reached")] == ["max_feed_readers"] * 2
        async with exchange(probe.app, "GET", "/api/calls/live", LOCAL) as again:
            assert again.status == 200


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        *(("POST", LOCAL, 405), ("DELETE", LOCAL, 405), ("HEAD", LOCAL, 200)),
        *(("GET", {**LOCAL, "accept": "text/html"}, 406), ("GET", {**LOCAL, "accept": "*/*"}, 200)),
    ],
)
async def test_the_tail_takes_what_it_can_answer(
    method: str, headers: dict[str, str], status: int, probe: Probe
) -> None:
    async with exchange(probe.app, method, "/api/calls/live", headers) as answer:
        assert answer.status == status


async def test_a_foreign_page_does_not_get_the_tail(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/api/calls/live", {"host": "evil.example"}) as answer:
        assert answer.status == 403
