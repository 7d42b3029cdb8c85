"""`mcp-probe stdio --forward`: what the collector shows is what happened, and the process never waits for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from probe.cli.program import main
from probe.log.context import Context
from probe.log.events import AuditState, SessionClosed
from probe.server.forwarding.forwarder import Collector, CollectorError, forwarding

from ...support.lines import Stdio, speaking
from ...support.probe import running
from .collectors import PATIENCE_S, SECRET, collecting

HELLO = "MCP Probe speaks on standard input and output (toolsets: probe,streaming,features,dispatch,hosts)"
FAILING = "the log cannot be forwarded to {url} now: "
AGAIN = "the log is forwarded again to {url}"


@asynccontextmanager
async def forwarder(url: str, *more: str) -> AsyncIterator[Stdio]:
    async with speaking("--forward", url, "--forward-secret", SECRET, *more) as process:
        yield process


async def test_calls_of_several_processes_are_in_one_log_as_those_of_different_clients() -> None:
    async with collecting() as server:
        async with forwarder(server.url, "--client", "one") as one, forwarder(f"{server.url}/forward") as two:
            for process in (one, two):
                await process.ask("tools/call", {"name": "progress", "arguments": {"steps": 2, "step_ms": 0}})
                await server.entry("call.settled", 1 + (process is two))
            for process in (one, two):
                await process.stdin.aclose()
                assert await process.ended() == ([], f"{HELLO}\n")
        await server.entry("forwarding.ended", 2)
        started, settled = server.entries("call.started"), server.entries("call.settled")
        assert [entry["tool"] for entry in started] == ["progress", "progress"]
        assert [entry["label"] for entry in started] == ["one", None]
        assert [entry["outcome"] for entry in settled] == ["completed", "completed"]
        for name in ("call", "session", "connection", "exchange"):
            assert len({entry[name] for entry in started}) == 2, name
        assert [entry["cause"] for entry in settled] == [entry["seq"] for entry in started]
        begun, ended = server.entries("forwarding.begun"), server.entries("forwarding.ended")
        assert sorted(entry["pid"] for entry in begun) == sorted(each.process.pid for each in (one, two))
        assert [entry["by"] for entry in ended] == ["process", "process"]
        assert server.entries("forwarding.missed") == []
        records = list(server.engine.records.newest_first())
        assert {(record.tool, record.transport, record.outcome) for record in records} == {
            ("progress", "stdio", "completed")
        }
        exits = [entry for entry in server.entries("stdio.changed") if entry["what"] == "exit"]
        assert {entry["connection"] for entry in exits} == {entry["connection"] for entry in begun}


async def test_nothing_of_a_process_that_was_killed_stays_open() -> None:
    async with collecting() as server:
        async with forwarder(server.url) as process:
            asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
            initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
            await process.write(json.dumps(initialize).encode() + b"\n")
            assert "result" in await process.read()
            await server.entry("message.delivered")
            process.process.kill()
            await server.entry("forwarding.ended")
        assert [row["closed"] for row in server.rows("sessions")] == ["its process sends no more"]
        (opened,), (closed,) = server.entries("connection.opened"), server.entries("connection.closed")
        assert (closed["cause"], closed["connection"], closed["by"], closed["messages"]) == (
            opened["seq"],
            opened["connection"],
            "its process sends no more",
            1,
        )


async def test_a_collector_that_is_gone_or_refuses_costs_the_client_nothing() -> None:
    async with collecting() as server:
        pass
    async with forwarder(server.url) as process:
        # Two tasks say one line each, in any order.
        (why,) = {await process.said(), await process.said()} - {HELLO}
        assert (why.startswith(FAILING.format(url=server.url)), "refused" in why) == (True, True)
        assert "result" in await process.ask("tools/call", {"name": "simple_tool", "arguments": {}})
        await process.stdin.aclose()
        written, said = await process.ended()
        assert written == []
        assert said.endswith(f" entries of the log were not forwarded to {server.url}\n")
    async with collecting(forward_secret="another-secret-than-that") as server, forwarder(server.url) as process:
        refused = (
            f"the log is not forwarded: {server.url}: it answers with status 401: its --forward-secret is another one"
        )
        assert {HELLO, refused} == {await process.said(), await process.said()}
        assert "result" in await process.ask("tools/call", {"name": "simple_tool", "arguments": {}})


async def test_a_collector_that_never_reads_costs_the_client_nothing() -> None:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, _never_reads, listeners)
        async with forwarder(f"http://127.0.0.1:{port}") as process:
            # More than a socket takes.
            for _ in range(3):
                await process.tool("long_output", blocks=50, chars=65536)
            await process.stdin.aclose()
            assert (await process.ended())[1].endswith(f"not forwarded to http://127.0.0.1:{port}\n")
        nursery.cancel_scope.cancel()


async def _never_reads(_stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


class Telling:
    """What a forwarder says."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._told = trio.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self._told.set()

    async def wait(self, beginning: str) -> None:
        while not any(line.startswith(beginning) for line in self.lines):
            self._told = trio.Event()
            await self._told.wait()


async def test_a_collector_that_starts_anew_gets_what_is_kept_and_counts_what_is_not() -> None:
    told, over = Telling(), trio.Event()
    with trio.fail_after(PATIENCE_S):
        async with running(event_log_events=100) as own, trio.open_nursery() as nursery:
            log = own.engine.log
            async with collecting() as first:
                collector, port = Collector.at(first.url, SECRET), first.port
                nursery.start_soon(_forward_until, own.engine, collector, told, over)
                await first.entry("forwarding.begun")
            await told.wait(FAILING.format(url=first.url))
            for _ in range(300):
                log.append(AuditState("ok", None, 0))
            async with collecting(port=port) as second:
                assert (await second.entry("forwarding.missed"))["entries"] == log.first - 1
                await told.wait(AGAIN.format(url=first.url))
                over.set()
                ended = await second.entry("forwarding.ended")
                assert (ended["by"], ended["taken"]) == ("process", log.last)
    assert len(told.lines) == 2


async def test_an_entry_that_is_too_large_is_missing_and_nothing_else() -> None:
    over = trio.Event()
    async with (
        running(event_log_events=100) as own,
        collecting(max_body_bytes=4096) as server,
        trio.open_nursery() as nursery,
    ):
        own.engine.log.append(SessionClosed("x" * 10_000), Context(session="s1"))
        own.engine.log.append(SessionClosed("short"), Context(session="s1"))
        nursery.start_soon(_forward_until, own.engine, Collector.at(server.url, SECRET), print, over)
        assert (await server.entry("session.closed"))["why"] == "short"
        assert [entry["entries"] for entry in server.entries("forwarding.missed")] == [1]
        over.set()


async def _forward_until(engine: Any, collector: Collector, told: Any, over: trio.Event) -> None:
    async with forwarding(engine, collector, None, told):
        await over.wait()


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://host", "http://", "http://host?x=1", "http://[::1", "http://a:b"]
)
def test_an_address_that_is_none_is_refused_in_a_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CollectorError):
        Collector.at(url, SECRET)
    assert main(["stdio", "--forward", url, "--forward-secret", SECRET]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"error: --forward {url!r} is no address")


@pytest.mark.parametrize("path", ["", "/", "/forward", "/mcp", "/dashboard/"])
def test_any_address_that_the_server_prints_leads_to_its_collector(path: str) -> None:
    assert Collector.at(f"http://host/below{path}", SECRET).resource == "/below/forward"


def test_a_secret_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stdio", "--forward", "http://127.0.0.1:8000"]) == 2
    assert "--forward needs the secret of that server (--forward-secret)" in capsys.readouterr().err
