"""`kill -9` of a client with calls at every stage: in the modern era and on a WebSocket that stops their work."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ..support.lines import MODERN
from ..support.process import Program, followed
from .peers import PROGRAMS, HostProcess, Place, host_process, until

Name = Callable[[], str]
RUNS = ("sent", "reporting", "answering")


@asynccontextmanager
async def sdk_client(mode: str, place: Place) -> AsyncIterator[Program]:
    """The official client, which has listed the tools."""
    command = [sys.executable, str(PROGRAMS / "sdk_client.py"), mode, f"{place.url}?tools=all"]
    async with followed(command, {}) as program:
        await program.said('"ready"')
        yield program


async def start(client: Program, host: HostProcess, key: str, **arguments: Any) -> None:
    await client.tell(json.dumps(["call", key, host.tool(), {"key": key, **arguments}]))
    await host.says("waits", key)


async def start_all(client: Program, host: HostProcess) -> None:
    """One call at each stage: the last has been given up, and its work has not stopped."""
    await start(client, host, "sent")
    await start(client, host, "reporting", reports=3)
    await start(client, host, "answering", reports=10)
    for key, steps in (("reporting", 3), ("answering", 10)):
        await client.said('"progress"', f'"{key}"', f'"value": {steps}')
    await start(client, host, "cancelled", stubborn=True)
    await client.tell(json.dumps(["cancel", "cancelled"]))
    await client.said('"given up"')
    await host.says("cancelled", "cancelled")


def causes(place: Place) -> list[str]:
    return [event["by"] for event in place.events("dispatch.cancelled")]


async def still_serves(place: Place, host: HostProcess) -> None:
    result = await place.modern().tool(host.tool("echo"), {"word": "another client"})
    assert result["structuredContent"] == {"key": "another client"}


async def test_modern_its_calls_are_cancelled_at_the_host(place: Place, name: Name) -> None:
    async with (
        host_process(name(), place.for_hosts) as host,
        sdk_client_after(host, "auto", place) as client,
    ):
        await start_all(client, host)
        assert causes(place) == ["disconnect"]
        await client.killed()
        for key in RUNS:
            await host.says("cancelled", key)
            await host.says("stopped", key)
        await until(lambda: len(place.events("dispatch.stopped", how="acknowledged")) == 3)
        assert causes(place) == ["disconnect"] * 4
        await still_serves(place, host)
        await host.release("cancelled")
        await until(lambda: len(place.events("dispatch.stopped", how="acknowledged")) == 4)


async def test_legacy_their_work_goes_on(place: Place, name: Name) -> None:
    async with (
        host_process(name(), place.for_hosts) as host,
        sdk_client_after(host, "legacy", place) as client,
    ):
        await start_all(client, host)
        assert causes(place) == ["notification"]
        closed = len(place.events("http.closed", by="client"))
        await client.killed()
        # Each of the three calls, and the GET stream, has lost its reader.
        await until(lambda: len(place.events("http.closed", by="client")) >= closed + 3)
        await still_serves(place, host)
        assert not [key for key in RUNS if host.has_said("cancelled", key)]
        await host.release(*RUNS, "cancelled")
        await until(lambda: len(place.events("dispatch.settled", outcome="completed")) == 4)
        await until(lambda: place.events("dispatch.stopped", how="acknowledged"))
        assert causes(place) == ["notification"]


@asynccontextmanager
async def sdk_client_after(host: HostProcess, mode: str, place: Place) -> AsyncIterator[Program]:
    """The official client of a host that is there already."""
    async with sdk_client(mode, place) as client:
        await host.registered()
        yield client


async def test_websocket_its_calls_are_cancelled_at_the_host(place: Place, name: Name) -> None:
    command = [sys.executable, str(PROGRAMS / "websocket_client.py"), str(place.port)]
    async with host_process(name(), place.for_hosts) as host, followed(command, {}) as client:
        await host.registered()

        async def call(key: str, **arguments: Any) -> None:
            meta = {**MODERN, "progressToken": f"token of {key}"}
            params = {"name": host.tool(), "arguments": {"key": key, **arguments}, "_meta": meta}
            await client.tell(json.dumps({"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params}))
            await host.says("waits", key)

        await call("sent")
        await call("reporting", reports=3)
        await call("answering", reports=10)
        for key, steps in (("reporting", 3), ("answering", 10)):
            await client.said(f"token of {key}", f'"progress":{steps}')
        await call("cancelled", stubborn=True)
        params = {"requestId": "cancelled", "_meta": MODERN}
        await client.tell(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        await host.says("cancelled", "cancelled")
        await client.killed()
        for key in RUNS:
            await host.says("stopped", key)
        await host.release("cancelled")
        await until(lambda: len(place.events("dispatch.stopped", how="acknowledged")) == 4)
        assert causes(place) == ["notification", *["disconnect"] * 3]
        await still_serves(place, host)
