"""`/api/export…`: what is about one client or one call, and nothing else, as a file."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import trio

from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import HttpResponse, ServerState
from probe.log.ndjson import OpenedFile
from probe.web.exports.archive import AUDIT, LOG, MANIFEST, REPORT, open_file
from probe.web.exports.extract import OverviewTally

from ...support.api import LOCAL, page, refusal
from ...support.facts import received
from ...support.http import exchange
from ...support.legacy import Legacy
from ...support.passes import counted_passes
from ...support.probe import Probe, running


async def download(probe: Probe, query: str = "") -> tuple[str, bytes]:
    """The name and the bytes of the file."""
    async with exchange(probe.app, "GET", f"/api/export.mcpprobe{query}", LOCAL) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
        return answer.headers["content-disposition"], await answer.body()


def opened(body: bytes, folder: Path) -> OpenedFile:
    path = folder / "s.mcpprobe"
    path.write_bytes(body)
    return open_file(path)


def member(body: bytes, name: str) -> Any:
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        return json.loads(file.read(name))


async def two_clients(probe: Probe) -> tuple[str, str]:
    """A legacy client and a named one call a tool each; their labels."""
    legacy = await probe.client()
    await legacy.tool("simple_tool")
    named = Legacy(probe.app, "/mcp?tools=all&client=nightly")
    await named.initialize("2025-11-25", None)
    await named.tool("progress", {"steps": 2, "step_ms": 0})
    return "s1", "nightly"


async def test_the_whole_log_comes_back_entry_by_entry(probe: Probe, tmp_path: Path) -> None:
    await two_clients(probe)
    last = probe.engine.log.last
    name, body = await download(probe)
    found = opened(body, tmp_path)
    assert name == f'attachment; filename="mcp-probe-{probe.engine.run}.mcpprobe"'
    assert found.log.entries == probe.engine.log.since(0, 10_000).entries[:last]
    assert found.log.header == probe.engine.header()
    assert found.log.end is not None
    assert (found.log.end.why, found.log.end.last) == ("complete", last)
    assert [call["tool"] for call in member(body, AUDIT)["calls"]] == ["simple_tool", "progress"]


async def test_an_export_of_a_client_has_its_exchanges_and_nothing_of_others(probe: Probe, tmp_path: Path) -> None:
    one, other = await two_clients(probe)
    parts = {}
    for client in (one, other):
        _, body = await download(probe, f"?client={client}")
        parts[client] = opened(body, tmp_path).log.entries
        assert member(body, MANIFEST)["client"] == client
        assert len(member(body, AUDIT)["calls"]) == 1
    # The heads of its requests, before anybody knew whose they were, are among them.
    for entries in parts.values():
        kinds = {entry.fact.kind for entry in entries}
        assert {"http.request", "http.response", "message.received", "session.opened", "call.settled"} <= kinds
    shared = {entry.seq for entry in parts[one]} & {entry.seq for entry in parts[other]}
    assert all(isinstance(probe.engine.log.entry(seq).fact, ServerState) for seq in shared)  # type: ignore[union-attr]
    everything = {entry.seq for entries in parts.values() for entry in entries}
    assert everything == {entry.seq for entry in probe.engine.log.since(0, 10_000).entries}
    assert {entry.context.session for entry in parts[one]} == {None, "s1"}


async def test_a_request_refused_before_its_session_was_found_is_in_the_export_of_the_session(
    probe: Probe, tmp_path: Path
) -> None:
    client = await probe.client()
    headers = {**client.headers, "content-type": "text/plain"}
    async with exchange(probe.app, "POST", "/mcp", headers, b"{}") as answer:
        assert answer.status == 415
    _, body = await download(probe, "?client=s1")
    facts = [entry.fact for entry in opened(body, tmp_path).log.entries]
    assert [fact.status for fact in facts if isinstance(fact, HttpResponse)][-1] == 415


async def test_an_export_of_a_call_has_its_evidence(probe: Probe, tmp_path: Path) -> None:
    await two_clients(probe)
    call = probe.record()
    for id in (call["call"], call["id"]):
        name, body = await download(probe, f"?call={id}")
        assert name.endswith(f'-{call["call"]}.mcpprobe"')
        evidence = (await page(probe, f"/api/calls/{call['id']}"))["evidence"]["events"]
        assert [entry.seq for entry in opened(body, tmp_path).log.entries] == [event["seq"] for event in evidence]
        assert [row["id"] for row in member(body, AUDIT)["calls"]] == [call["id"]]


async def test_what_will_be_in_the_file_is_told_before_with_what_is_hidden(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool", {"delayMs": 0, "token": "x"})
    told = await page(probe, "/api/export?client=s1")
    _, body = await download(probe, "?client=s1")
    assert told["contains"] == member(body, MANIFEST)["contains"]
    assert told["contains"]["hidden"]["token"] >= 1
    assert (told["judged"], told["contains"]["gaps"], told["contains"]["calls"]) == (False, [], 1)
    assert b"[redacted]" in zipfile.ZipFile(io.BytesIO(body)).read(LOG)


async def test_the_report_is_in_the_file_where_the_server_judges() -> None:
    async with running(judge=True) as probe:
        one, _ = await two_clients(probe)
        _, body = await download(probe, f"?client={one}")
        report = member(body, REPORT)
        assert [subject["label"] for subject in report["subjects"]] == [one]
        assert report == await page(probe, f"/api/judge/{one}")
        assert (await page(probe, "/api/export"))["judged"] is True


async def test_what_was_pushed_out_of_the_log_is_a_gap_in_the_file(tmp_path: Path) -> None:
    async with running(event_log_events=100) as probe:
        client = await probe.client()
        for _ in range(12):
            await client.tool("progress", {"steps": 5, "step_ms": 0})
        for query in ("", "?client=s1"):
            first = probe.engine.log.first
            assert first > 1
            _, body = await download(probe, query)
            assert opened(body, tmp_path).log.gaps[0].last == first - 1
            assert member(body, MANIFEST)["contains"]["gaps"] == [{"first": 1, "last": first - 1}]


async def test_who_asks_for_what_is_not_there_is_told(probe: Probe) -> None:
    await two_clients(probe)
    for path in ("/api/export", "/api/export.mcpprobe"):
        assert "no client 'nobody'" in (await refusal(probe, f"{path}?client=nobody", 404))["detail"]
        assert "no call 'c99'" in (await refusal(probe, f"{path}?call=c99", 404))["detail"]
        assert "no call 'beef.c1'" in (await refusal(probe, f"{path}?call=beef.c1", 404))["detail"]
        assert "exclude" in (await refusal(probe, f"{path}?call=c1&client=s1"))["detail"]
        assert "empty" in (await refusal(probe, f"{path}?client="))["detail"]


async def test_the_name_of_the_file_holds_no_character_of_a_client_that_means_something(probe: Probe) -> None:
    client = Legacy(probe.app, "/mcp?tools=all&client=a.b-c_d")
    await client.initialize("2025-11-25", None)
    assert "-a.b-c_d.mcpprobe" in (await download(probe, "?client=a.b-c_d"))[0]


async def test_however_many_exports_are_made_one_works_at_a_time(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of them would make every call wait for one piece more."""
    await two_clients(probe)
    for _ in range(2000):
        probe.engine.log.append(received({"pad": "x" * 40}), Context(session="s1", exchange=1))
    await page(probe, "/api")
    taken = OverviewTally.take

    async def at_most(exports: int) -> int:
        """The most entries that were looked at in one pass of the scheduler."""
        async with counted_passes() as passes:

            def take(tally: OverviewTally, entry: Entry) -> None:
                passes.note()
                taken(tally, entry)

            monkeypatch.setattr(OverviewTally, "take", take)
            async with trio.open_nursery() as asking:
                for _ in range(exports):
                    asking.start_soon(page, probe, "/api/export?client=s1")
        return passes.most

    assert await at_most(12) <= 4 * await at_most(1)
