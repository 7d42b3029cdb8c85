"""The other ways in: TLS with HTTP/1.1 and HTTP/2, standard input and output, and the official client."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
import trio
import trustme
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from ..sockets.peers import Dialer
from ..support.hosts import calling
from ..support.lines import MODERN, Stdio, speaking
from ..support.process import serving
from .peers import WITH_HOSTS, HostProcess, Place, host_process, judge, until, visiting

pytestmark = [
    # the SDK leaves the event streams that it has read enough of to the garbage collector
    pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2):ResourceWarning"),
]
Name = Callable[[], str]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect here what the SDK leaves, sockets among it: the test that runs when it is collected is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


# -- TLS


@asynccontextmanager
async def secure(folder: Path, **http: Any) -> AsyncIterator[tuple[Place, HostProcess, trustme.CA]]:
    """A server with a certificate, and a host that trusts whoever issued it."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    chain, key, trusted = folder / "chain.pem", folder / "key.pem", folder / "authority.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    # Over HTTP/2 a response of this HTTP client may wait for what comes next on any other, if only a comment.
    settings = ("--certfile", str(chain), "--keyfile", str(key), "--keep-alive-s", "0.1")
    async with serving(*WITH_HOSTS, *settings) as server:
        at = f"wss://localhost:{server.port}/toolhost"
        async with host_process("demo", at, SSL_CERT_FILE=str(trusted)) as host:
            await host.registered()
            context = httpx2.create_ssl_context()
            authority.configure_trust(context)
            async with visiting(server.url, verify=context, **http) as place:
                yield place, host, authority


async def calls(place: Place, host: HostProcess) -> None:
    """A call of each era: one is answered, the other is cancelled."""
    modern, legacy = place.modern(), await place.legacy()
    async with (
        calling(modern, host.tool(), {"key": "answered", "reports": 3}, token="t") as answered,
        calling(legacy, host.tool(), {"key": "cancelled"}, token="t") as cancelled,
    ):
        for key in ("answered", "cancelled"):
            await host.says("waits", key)
        await legacy.cancel(cancelled.id)
        await host.says("stopped", "cancelled")
        await until(lambda: answered.progress and answered.progress[-1]["progress"] == 3)
        await host.release("answered")
    assert answered.result["structuredContent"] == {"key": "answered"}
    assert cancelled.response is None


async def test_https_and_wss(tmp_path: Path) -> None:
    async with secure(tmp_path) as (place, host, _):
        await calls(place, host)
        async with calling(place.modern(), host.tool(), {"key": "left"}) as left:
            await host.says("waits", "left")
            left.leave()
            await host.says("stopped", "left")
        assert (left.response, place.app.versions) == (None, {"HTTP/1.1"})


async def test_http2(tmp_path: Path) -> None:
    async with secure(tmp_path, http2=True) as (place, host, authority):
        await calls(place, host)
        assert place.app.versions == {"HTTP/2"}
        # That client does not tell the server of a response that it gives up, so this is done by hand.
        context = httpx2.create_ssl_context()
        authority.configure_trust(context)
        context.set_alpn_protocols(["h2"])
        client, dialer = place.modern(), Dialer()
        message = client.request("tools/call", {"name": host.tool(), "arguments": {"key": "reset"}})
        connection = await dialer.http2(place.port, tls=context)
        headers = [(name, value) for name, value in client.headers(message).items() if name != "host"]
        stream = await connection.request("/mcp?tools=hosts", end=False, headers=headers)
        await connection.data(stream, json.dumps(message).encode(), end=True)
        await host.says("waits", "reset")
        await connection.reset(stream)
        await host.says("stopped", "reset")
        await connection.ping()
        await dialer.hang_up()


# -- standard input and output


async def test_beside_standard_input_and_output() -> None:
    async with speaking("--dashboard", "0", *WITH_HOSTS) as client:
        port = int((await client.said()).partition("http://127.0.0.1:")[2].partition("/")[0])
        async with host_process("demo", f"ws://127.0.0.1:{port}/toolhost") as host:
            await host.registered()
            params = {"name": "demo__work", "arguments": {"key": "answered", "reports": 3}}
            id = await client.send("tools/call", params, progressToken="t")
            while (note := await client.read())["params"]["progress"] < 3:
                pass
            assert note["params"] == {"progressToken": "t", "progress": 3, "total": 10, "message": "step 3"}
            await host.release("answered")
            answer = await client.read()
            assert (answer["id"], answer["result"]["structuredContent"]) == (id, {"key": "answered"})
            await cancel(client, host)
            judge(f"http://127.0.0.1:{port}/mcp")
            await client.stdin.aclose()
            messages, _ = await client.ended()
            assert messages == []
            await host.program.said("trying again")


async def cancel(client: Stdio, host: HostProcess) -> None:
    id = await client.send("tools/call", {"name": "demo__work", "arguments": {"key": "cancelled"}})
    await host.says("waits", "cancelled")
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "_meta": MODERN}}
    await client.write(json.dumps(note).encode() + b"\n")
    await host.says("stopped", "cancelled")


# -- the official client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client(place: Place, name: Name, mode: str) -> None:
    heard: list[Any] = []
    seen: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def note(message: Any) -> None:
        heard.append(message)

    transport = streamable_http_client(f"{place.url}?tools=hosts,probe")
    async with Client(transport, mode=mode, message_handler=note) as client:
        async with host_process(name(), place.for_hosts) as host:
            await host.registered()
            if mode == "legacy":
                await until(lambda: any(isinstance(message, types.ToolListChangedNotification) for message in heard))
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert {host.tool("echo"), host.tool("work"), host.tool("work_in_thread")} <= set(listed)
            arguments = {"key": "answered", "reports": 3}
            async with trio.open_nursery() as nursery:
                results: list[types.CallToolResult] = []
                call = partial(client.call_tool, host.tool(), arguments, progress_callback=hear)
                nursery.start_soon(_keep, call, results)
                await until(lambda: seen and seen[-1] == 3)
                await host.release("answered")
            assert results[0].structured_content == {"key": "answered"}
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.call_tool, host.tool(), {"key": "cancelled"})
                    await host.says("waits", "cancelled")
                    scope.cancel()
            await host.says("stopped", "cancelled")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_keep, partial(client.call_tool, host.tool(), {"key": "lost"}), results)
                await host.says("waits", "lost")
                await host.program.killed()
            assert results[1].is_error
            block = results[1].content[0]
            assert isinstance(block, types.TextContent)
            assert "has gone" in block.text
        left = (await client.list_tools()).tools
        assert not [tool for tool in left if tool.name.startswith(f"{host.name}__")]


async def _keep(call: Callable[[], Any], results: list[Any]) -> None:
    results.append(await call())
