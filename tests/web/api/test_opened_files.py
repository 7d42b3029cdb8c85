"""A file that is dropped on the dashboard is shown beside the live log; one of a stranger is not read."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from probe.engine.engine import Engine, Randomness
from probe.log.ndjson import OpenedFile
from probe.settings import build
from probe.tools.catalogue import TOOLSETS
from probe.web import opened_files
from probe.web.exports import archive as session_file
from probe.web.exports.archive import LOG
from probe.web.opened_files import FilePages
from probe.web.paths import Paths

from ...support.api import LOCAL, page
from ...support.http import exchange, http_scope
from ...support.probe import Probe, running
from ...support.rows import each

OWN = {**LOCAL, "origin": "http://127.0.0.1:8000"}


def pages_of(opened: OpenedFile) -> FilePages:
    # Only an end that is told ends the wait of a reader, and no comment.
    settings = build({"judge": True, "keep_alive_s": 600})
    engine = Engine(settings, TOOLSETS, epoch=0.0, randomness=Randomness(lambda: "id", bytes), opened=opened)
    paths = Paths(engine)
    return FilePages(engine, paths, paths.wait_idle)


@asynccontextmanager
async def taking(**values: Any) -> AsyncIterator[Probe]:
    """A probe with a story that shows files."""
    async with running(**values) as probe, trio.open_nursery() as nursery:
        probe.app = Paths(probe.engine, show=pages_of)
        assert probe.app.opened is not None
        await nursery.start(probe.app.opened.serve)
        client = await probe.client()
        await client.tool("simple_tool")
        yield probe
        nursery.cancel_scope.cancel()


async def log_of(probe: Probe) -> bytes:
    async with exchange(probe.app, "GET", "/api/export.mcpprobe", LOCAL) as answer:
        return await answer.body()


async def send(
    probe: Probe, body: bytes, headers: Mapping[str, str] = OWN, name: str = "a.mcpprobe"
) -> tuple[int, Any]:
    with trio.fail_after(20):
        async with exchange(probe.app, "POST", f"/opened?name={name}", headers, body) as answer:
            return answer.status, await answer.json()


async def test_a_file_has_pages_of_its_own_and_the_live_log_is_as_it_was() -> None:
    async with taking() as probe:
        body, last = await log_of(probe), probe.engine.log.last
        calls = (await page(probe, "/api/calls"))["calls"]
        assert (await page(probe, "/api/server"))["takes_files"]
        assert await send(probe, body, name="there%2Fmine.mcpprobe") == (201, {"number": 1})
        client = await probe.client()
        await client.tool("simple_tool")
        assert (await page(probe, "/opened/1/api/calls"))["calls"] == calls
        server = await page(probe, "/opened/1/api/server")
        assert (server["file"]["name"], server["log"]["last"], server["mcp"]) == ("mine.mcpprobe", last, None)
        assert len((await page(probe, "/api/calls"))["calls"]) == len(calls) + 1
        assert not [event for event in probe.events("http.request") if "opened" in json.dumps(event)]


STRANGERS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]] = {
    "another machine behind a proxy": ({}, {"x-forwarded-for": "192.0.2.7"}),
    "a proxy that names itself": ({}, {"via": "1.1 proxy"}),
    "a tunnel": ({}, {"cf-connecting-ip": "192.0.2.7"}),
    "a server with a public address": ({"public_url": "http://127.0.0.1:8000"}, {}),
    "a server with a public name": ({"allowed_hosts": "probe.example"}, {}),
    "a server behind a proxy": ({"trusted_proxies": "10.0.0.1"}, {}),
    "a page of another program on this machine": ({}, {"origin": "http://127.0.0.1:5173"}),
    "a server on all addresses of this machine": ({"host": "0.0.0.0"}, {}),
    "a server on one address that others reach": ({"host": "192.0.2.1"}, {}),
    "a page under another name": ({"host": "127.0.0.2"}, {"host": "127.0.0.2:8000", "origin": "http://127.0.0.2:8000"}),
    "no page": ({}, {"origin": ""}),
}


@each("stranger", STRANGERS)
async def test_what_others_may_have_sent_is_refused_and_not_read(stranger: str) -> None:
    settings, headers = STRANGERS[stranger]
    async with taking(**settings) as probe:
        given = {name: value for name, value in {**OWN, **headers}.items() if value}
        status, problem = await send(probe, await log_of(probe), given)
        assert (status, "mcp-probe open FILE" in problem.get("detail", "mcp-probe open FILE")) == (403, True)
        status, _ = await send(probe, b"no file", given)
        assert status == 403


async def test_another_machine_is_refused_and_told_so_before_it_sends() -> None:
    async with taking(host="0.0.0.0") as probe:
        scope = {**http_scope("POST", "/opened?name=a", OWN), "client": ("192.0.2.7", 50000)}
        said: list[Any] = []

        async def receive() -> Any:
            raise AssertionError("it was read")

        async def sent(message: Any) -> None:
            said.append(message)

        await probe.app(scope, receive, sent)
        assert said[0]["status"] == 403
        scope = {**http_scope("GET", "/api/server", LOCAL), "client": ("192.0.2.7", 50000)}
        said.clear()
        await probe.app(scope, trio.sleep_forever, sent)
        assert not json.loads(said[1]["body"])["takes_files"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "line 1"),
        (b"PK\x03\x04 and no more", "cut off"),
        (b"\x89PNG\r\n", "line 1"),
    ],
)
async def test_a_bad_file_is_refused_in_one_line_and_what_is_open_stays(body: bytes, why: str) -> None:
    async with taking() as probe:
        assert (await send(probe, await log_of(probe)))[0] == 201
        status, problem = await send(probe, body, name="b.mcpprobe")
        assert status == 422
        assert problem["detail"].startswith("b.mcpprobe cannot be opened: ")
        assert why in problem["detail"]
        assert "\n" not in problem["detail"]
        assert (await page(probe, "/opened/1/api/server"))["file"]["name"] == "a.mcpprobe"


async def test_a_file_that_is_too_large_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_files, "_MOST_BYTES", 1 << 20)
    async with taking() as probe:
        status, problem = await send(probe, bytes((1 << 20) + 1))
        assert (status, "more than 1 MiB" in problem["detail"]) == (413, True)


@pytest.mark.parametrize("size", [str((128 << 20) + 1), "9" * 30])
async def test_a_file_that_announces_too_much_is_refused_before_it_is_read(size: str) -> None:
    async with taking() as probe:
        said: list[Any] = []

        async def receive() -> Any:
            raise AssertionError("it was read")

        async def sent(message: Any) -> None:
            said.append(message)

        await probe.app(http_scope("POST", "/opened?name=a", {**OWN, "content-length": size}), receive, sent)
        assert said[0]["status"] == 413


async def test_a_third_file_closes_the_first_whose_readers_have_their_end() -> None:
    async with taking() as probe:
        body = await log_of(probe)
        await send(probe, body)
        async with exchange(probe.app, "GET", "/opened/1/dashboard/events", LOCAL) as feed:
            assert [await send(probe, body) for _ in range(2)] == [(201, {"number": 2}), (201, {"number": 3})]
            with trio.fail_after(20):
                assert [event async for event in feed.events()][-1].id is not None
        for number, status in ((1, 404), (2, 200), (3, 200), (4, 404)):
            async with exchange(probe.app, "GET", f"/opened/{number}/api/server", LOCAL) as answer:
                assert answer.status == status
        looking = {**LOCAL, "sec-fetch-mode": "navigate"}
        async with exchange(probe.app, "GET", "/opened/1/dashboard/calls/x", looking) as answer:
            assert (answer.status, answer.headers["location"]) == (302, "../../../../dashboard")


async def test_a_file_is_read_no_further_when_its_sender_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is read at a time, and 20 million blank lines take most of a minute where they are not refused."""
    reading, read_file = trio.Event(), session_file.read_file

    def noted(*arguments: Any) -> OpenedFile:
        trio.from_thread.run_sync(reading.set)
        return read_file(*arguments)

    monkeypatch.setattr(session_file, "_AT_MOST", session_file._AT_MOST._replace(blank_lines=1 << 30))
    monkeypatch.setattr(session_file, "read_file", noted)
    async with taking() as probe:
        body = await log_of(probe)
        with trio.fail_after(20):
            async with exchange(
                probe.app, "POST", "/opened?name=a", OWN, with_blank_lines(body), gone=reading
            ) as answer:
                assert answer.status == 0
            assert await send(probe, body) == (201, {"number": 1})


def with_blank_lines(body: bytes) -> bytes:
    """A session file with 20 million blank lines behind its log; some 20 kB."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + (b"\n" * 20_000_000 if name == LOG else b""))
    return changed.getvalue()


async def test_files_end_with_the_server() -> None:
    async with taking() as probe:
        body = await log_of(probe)
        await send(probe, body)
        await probe.engine.drain()
        assert probe.app.opened is not None
        with trio.fail_after(20):
            await probe.app.opened.wait_idle()
        assert (await send(probe, body))[0] == 503


async def test_a_file_that_was_being_sent_when_the_server_ended_is_closed_as_well() -> None:
    async with taking() as probe:
        body, begun, goes_on = await log_of(probe), trio.Event(), trio.Event()
        said: list[Any] = []

        async def receive() -> Any:
            begun.set()
            await goes_on.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def sent(message: Any) -> None:
            said.append(message)

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(probe.app, http_scope("POST", "/opened?name=a", OWN), receive, sent)
                await begun.wait()
                status, problem = await send(probe, body, name="b")
                assert (status, "another file is being read" in problem["detail"]) == (503, True)
                await probe.engine.drain()
                goes_on.set()
            assert said[0]["status"] == 201
            assert probe.app.opened is not None
            await probe.app.opened.wait_idle()
