"""A room of a real process: over sockets, with its WebSocket and a tool host."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from typing import Any

import trio
from trio_websocket import open_websocket_url

from probe.toolhost import Host, tool

from ..support.process import PATIENCE_S, served

ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "ada", "version": "1"}}


@tool
async def echo(word: str) -> str:
    return word


def sent(method: str, url: str, value: Any = None, headers: dict[str, str] = ACCEPT) -> tuple[int, dict[str, str], str]:
    """The status, the headers and the body of a whole answer."""
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read().decode()


async def ask(method: str, url: str, value: Any = None, headers: dict[str, str] = ACCEPT) -> tuple[int, Any, str]:
    """The same, in a thread."""
    return await trio.to_thread.run_sync(partial(sent, method, url, value, headers))


async def test_a_real_client_a_web_socket_and_a_tool_host_use_a_room() -> None:
    with served("--rooms", "on") as mcp:
        base = mcp.removesuffix("/mcp")
        with trio.fail_after(3 * PATIENCE_S):
            status, _, body = await ask("POST", f"{base}/api/rooms")
            made = json.loads(body)
            assert status == 201
            status, headers, _ = await ask("POST", made["mcp"], request("initialize", ABOUT))
            session = {**ACCEPT, "mcp-session-id": headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
            assert status == 200
            # The session is of this room, and the server beside it does not know it.
            assert (await ask("POST", made["mcp"], request("tools/list"), session))[0] == 200
            assert (await ask("POST", mcp, request("tools/list"), session))[0] == 404
            async with trio.open_nursery() as nursery:
                await nursery.start(Host("demo", [echo]).serve, made["toolhost"], made["secret"])
                async with open_websocket_url(made["websocket"], subprotocols=["mcp"]) as socket:
                    await socket.send_message(json.dumps(request("initialize", ABOUT)))
                    await socket.get_message()
                    await socket.send_message(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                    call = request("tools/call", {"name": "demo__echo", "arguments": {"word": "hello"}}, 2)
                    await socket.send_message(json.dumps(call))
                    while (answer := json.loads(await socket.get_message())).get("id") != 2:
                        pass
                    assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]
                nursery.cancel_scope.cancel()
            sessions = json.loads((await ask("GET", f"{made['read_only']['api']}/sessions"))[2])["sessions"]
            assert {row["client_name"] for row in sessions if row["era"]} == {"ada"}
            beside = json.loads((await ask("GET", f"{base}/api/sessions"))[2])["sessions"]
            assert not [row for row in beside if row["era"]]
            assert (await ask("DELETE", f"{made['api']}/room"))[0] == 204
            assert (await ask("POST", made["mcp"], request("tools/list"), session))[0] == 404


def request(method: str, params: Any = None, id: int = 1) -> dict[str, Any]:
    """A request of the protocol."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
