"""`/api/calls`: pages, one call with its evidence, and exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from probe.web.api import responses, tables

from ...support.api import LOCAL, lines, page
from ...support.audit import auditing
from ...support.http import exchange
from ...support.probe import Probe, running
from ...support.rows import each
from ...support.shown import as_value, newest


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


@pytest.mark.parametrize("path", ["/api/calls", "/api/calls.ndjson", "/api/calls.csv"])
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
        # The calls use one id again, which is noted.
        kinds = [event["kind"] for event in detail["evidence"]["events"] if event["kind"] != "client.misuse"]
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
    monkeypatch.setattr(tables, "_PIECE_ROWS", 3)
    monkeypatch.setattr(responses, "_CHUNK_BYTES", 100)
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
    monkeypatch.setattr(tables, "_PIECE_ROWS", 1)
    monkeypatch.setattr(responses, "_CHUNK_BYTES", 1)
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


async def test_with_view_the_evidence_of_a_call_says_what_its_entries_are_part_of(store: Probe) -> None:
    client = await store.client()
    await client.tool("progress", {"steps": 2, "step_ms": 0}, _meta={"progressToken": 1})
    plain = await page(store, "/api/calls/c1")
    answer = await page(store, "/api/calls/c1?view=1")
    events = answer["evidence"]["events"]
    assert [{**event, "view": None} for event in events] == [
        {**event, "view": None} for event in plain["evidence"]["events"]
    ]
    sent = [event for event in events if event["kind"] == "message.emitted"]
    assert all(event["view"]["delivered"] for event in sent)
    (row,) = [row for row in answer["evidence"]["exchanges"] if row["call"] == "c1"]
    assert row["ending"]["text"] == "2 of 2 progress notifications received"
    assert "exchanges" not in plain["evidence"]
