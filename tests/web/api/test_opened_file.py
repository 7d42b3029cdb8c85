"""A file in the place of a server's log: each page says of it what it said of the server, and nothing changes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from probe.cli.program import main
from probe.log.context import Context
from probe.log.event_log import Entry, Gap
from probe.log.ndjson import End, Header, OpenedFile, ReadLog, SavedLog
from probe.web.exports.archive import open_file

from ...support.api import LOCAL, get, page, refusal
from ...support.facts import received
from ...support.http import exchange
from ...support.legacy import Legacy
from ...support.logs import load
from ...support.probe import Probe, running

FAR = 10**12
PAGES = ("/api/sessions", "/api/tasks", "/api/streams", "/api/hosts", "/api/refusals", "/api/calls")


async def said(probe: Probe, path: str) -> Any:
    value = await page(probe, path)
    return {name: item for name, item in value.items() if name != "next"}


async def saved(probe: Probe, folder: Path, query: str = "") -> OpenedFile:
    async with exchange(probe.app, "GET", f"/api/export.mcpprobe{query}", LOCAL) as answer:
        (folder / "saved.mcpprobe").write_bytes(await answer.body())
    return open_file(folder / "saved.mcpprobe")


async def story(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("progress", {"steps": 3, "step_ms": 0})
    await client.tool("simple_tool", {"delayMs": -1})
    named = Legacy(probe.app, "/mcp?tools=all&client=nightly")
    await named.initialize("2025-11-25", None)
    await named.tool("simple_tool")


async def test_each_page_says_of_a_whole_log_what_the_server_said(tmp_path: Path) -> None:
    async with running(judge=True) as probe:
        await story(probe)
        before = {path: await said(probe, path) for path in (*PAGES, "/api/events", "/api/judge", "/api/counts")}
        call = probe.record()["id"]
        detail = await page(probe, f"/api/calls/{call}")
        file = await saved(probe, tmp_path)
    async with running(judge=True, opened=file) as shown:
        for path, value in before.items():
            now = await said(shown, path)
            for report in (value, now) if path == "/api/judge" else ():
                assert report.pop("logs")[0]["whole"]
            assert now == value, path
        assert await page(shown, f"/api/calls/{call}") == detail
        server = await page(shown, "/api/server")
        assert (server["run"], server["mcp"]) == (detail["call"]["run"], None)
        assert server["file"] == {
            "name": "saved.mcpprobe",
            "saved_at": file.saved_at,
            "program": file.log.header.program,
            "client": None,
            "call": None,
            "filtered": False,
            "cut_off": False,
            "gaps": [],
        }


async def test_an_entry_of_an_unknown_kind_is_shown_and_changes_no_other_answer(tmp_path: Path) -> None:
    async with running() as probe:
        await story(probe)
        async with exchange(probe.app, "GET", "/api/events.ndjson", LOCAL) as answer:
            *lines, end = (await answer.body()).splitlines(keepends=True)
    last = json.loads(lines[-1])
    unknown = {**place_of(last), "seq": last["seq"] + 1, "kind": "moon.risen", "cause": last["seq"], "phase": 0.5}
    changed = end.replace(b'"last":%d' % last["seq"], b'"last":%d' % unknown["seq"])
    shown: list[dict[str, Any]] = []
    for name, text in (
        ("as-it-was", [*lines, end]),
        ("newer", [*lines, json.dumps(unknown).encode() + b"\n", changed]),
    ):
        path = tmp_path / f"{name}.ndjson"
        path.write_bytes(b"".join(text))
        async with running(judge=True, opened=open_file(path)) as reader:
            shown.append({way: await said(reader, way) for way in (*PAGES, "/api/judge")})
            for way in ("/api/events.ndjson", "/api/export.html"):
                async with exchange(reader.app, "GET", way, LOCAL) as answer:
                    shown[-1][way] = await answer.body()
    before, after = (each.pop("/api/events.ndjson").splitlines()[1:-1] for each in shown)
    assert b"moon.risen" in shown[1].pop("/api/export.html")
    assert b"moon.risen" not in shown[0].pop("/api/export.html")
    for report in (each["/api/judge"] for each in shown):
        report.pop("logs")
    for path, value in shown[0].items():
        now = shown[1][path]
        assert now.pop("seq", 0) in (value.pop("seq", 0), unknown["seq"]), path
        assert now == value, path
    assert [*map(json.loads, after)] == [*map(json.loads, before), unknown]


def place_of(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("at", "mono", *Context.__struct_fields__)}


async def test_no_request_changes_a_file_and_none_is_answered_as_mcp(tmp_path: Path) -> None:
    async with running() as probe:
        await story(probe)
        file = await saved(probe, tmp_path)
    entries = [*file.log.entries]
    async with running(opened=file) as shown:
        for path in ("/mcp", "/ws"):
            status, _, problem = await get(shown, path, method="POST")
            assert (status, "shows a file" in json.dumps(problem)) == (404, True)
        await get(shown, "/nowhere")
        assert (await page(shown, "/api/events?since=0"))["last"] == entries[-1].seq
        assert shown.engine.log.since(0, 10_000).entries == entries
        await shown.engine.drain()
        assert shown.engine.stopped == entries[-1].seq


async def test_of_a_part_the_report_is_what_the_server_said_that_had_all(tmp_path: Path) -> None:
    async with running(judge=True) as probe:
        await story(probe)
        report = await page(probe, "/api/judge/nightly")
        file = await saved(probe, tmp_path, "?client=nightly")
    async with running(judge=True, opened=file) as shown:
        assert await page(shown, "/api/judge") == report
        only = await page(shown, "/api/judge/nightly?verdict=PASS")
        assert {rule["verdict"] for rule in only["subjects"][0]["verdicts"]} == {"PASS"}
        assert "no client 's1'" in (await refusal(shown, "/api/judge/s1", 404))["detail"]
        assert "JSON only" in (await refusal(shown, "/api/judge/nightly/card", 404))["detail"]
        (session,) = [row for row in (await page(shown, "/api/sessions"))["sessions"] if row["id"] != "unattributed"]
        assert session["label"] == "nightly"
        async with exchange(shown.app, "GET", "/api/export.html", LOCAL) as answer:
            text = (await answer.body()).decode()
        assert "The report on this part of a log is in the session file" in text
        assert "did not judge" not in text
        again = await saved(shown, tmp_path)
        assert (again.log.items, again.log.end, again.report) == (file.log.items, file.log.end, file.report)


@pytest.mark.parametrize(
    ("first", "again", "whole"),
    [
        ("?client=nightly", "", True),
        ("?client=nightly", "?client=nightly", True),
        ("?client=s1", "?client=s1", True),
        ("", "?client=nightly", True),
        ("?client=nightly", "?call=c3", False),
        ("?call=c3", "?client=nightly", False),
        ("?call=c3", "", False),
    ],
)
async def test_a_part_that_is_saved_again_is_judged_as_before(
    first: str, again: str, whole: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running() as probe:
        await story(probe)
        file = await saved(probe, tmp_path, first)
    async with running(opened=file) as shown:
        other = await saved(shown, tmp_path, again)
        assert other.log.entries == file.log.entries or first == "" or not whole
    status = await trio.to_thread.run_sync(
        main, ["judge", "--require", "none", "--log", str(tmp_path / "saved.mcpprobe")]
    )
    out, err = capfd.readouterr()
    assert status == (0 if whole else 2), out
    said = " lacks entries: it is a part of a log, and what was left out may be about its client\n"
    assert (said in err) is not whole
    if whole and first:
        assert file.manifest is not None
        named = (other.manifest or {}).get("client"), (other.manifest or {}).get("ended_at")
        assert named == (file.manifest["client"], file.manifest["ended_at"])


async def test_a_part_of_a_log_is_read_in_both_directions_without_its_missing_numbers(tmp_path: Path) -> None:
    """Numbers far apart cost nothing: a hostile file cannot make a reader count through them."""
    seqs = [7, 8, 300, FAR, FAR + 1]
    items = [Gap(1, 5), *(Entry(seq, 1.0, 2.0, Context(exchange=1), received({"n": seq})) for seq in seqs)]
    file = OpenedFile("far", SavedLog(Header("r1", "1", 0.0), items, End(FAR + 5, "filtered")))
    with trio.fail_after(20):
        async with running(opened=file) as shown:
            for limit in (1, 2, 500):
                forth, at = [], 0
                while (answer := await page(shown, f"/api/events?since={at}&limit={limit}"))["events"]:
                    assert answer["gap"] == ({"first": 1, "last": 5} if at == 0 else None)
                    forth += [event["seq"] for event in answer["events"]]
                    at = answer["next"]
                back, before = [], FAR * 2
                while before is not None:
                    answer = await page(shown, f"/api/events?before={before}&limit={limit}")
                    back += [event["seq"] for event in answer["events"]]
                    before = answer["next"]
                assert (forth, back[::-1]) == (seqs, seqs)
                assert answer["gap"] == {"first": 1, "last": 5}
            assert (await page(shown, "/api/counts"))["counts"][0]["entries"] == 5
            async with exchange(shown.app, "GET", "/api/events.ndjson", LOCAL) as answered:
                read = load((await answered.body()).splitlines(keepends=True))
            assert [entry.seq for entry in read.entries] == seqs
            for query, first in (("tail=2", FAR), ("tail=100", 7), ("tail=3&kind=message", 300)):
                async with exchange(shown.app, "GET", f"/dashboard/events?{query}", LOCAL) as feed:
                    events = await feed.first(6 - seqs.index(first))
                assert [event.message["seq"] for event in events[1:]] == seqs[seqs.index(first) :]


def test_a_read_log_keeps_what_a_log_promises() -> None:
    items = [Entry(seq, 1.0, 2.0, Context(), received({})) for seq in (3, 4, 9)]
    log = ReadLog(SavedLog(Header("r1", "1", 0.0), items, None))
    assert (log.first, log.last, len(log), log.bytes > 0) == (1, 9, 3, True)
    assert [log.entry(seq) is not None for seq in range(11)] == [seq in (3, 4, 9) for seq in range(11)]
    assert [(len(log.since(seq, 2).entries), log.since(seq, 2).next) for seq in (0, 2, 4, 9)] == [
        (0, 2),
        (2, 8),
        (0, 8),
        (0, 9),
    ]
    assert [entry.seq for entry in log.until(8, 5)] == [3, 4]
    assert [log.tail(count) for count in (0, 1, 2, 3, 9)] == [9, 8, 3, 0, 0]
    assert log.append(items[0].fact) == 9
    empty = ReadLog(SavedLog(Header("r1", "1", 0.0), [], None))
    assert (empty.first, empty.last, len(empty), empty.since(0, 5).entries, empty.tail(5)) == (1, 0, 0, [], 0)


@pytest.mark.parametrize("cut", [False, True])
async def test_a_file_that_was_cut_off_says_so(cut: bool, tmp_path: Path) -> None:
    async with running() as probe:
        await story(probe)
        async with exchange(probe.app, "GET", "/api/events.ndjson", LOCAL) as answer:
            body = await answer.body()
    path = tmp_path / "log.ndjson"
    path.write_bytes(body[:-30] if cut else body)
    async with running(judge=True, opened=open_file(path)) as shown:
        file = (await page(shown, "/api/server"))["file"]
        assert (file["cut_off"], file["saved_at"], file["filtered"]) == (cut, None, False)
        assert (await page(shown, "/api/judge"))["logs"][0]["cut_off"] is cut
