"""The headers that mirror a modern request, as they go over the wire; names in memory are lower case already."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ..support.modern import Modern
from ..support.probe import running
from .peers import Dialer, Http1
from .servers import Start, on_both

SPELLINGS: list[Callable[[str], str]] = [str.lower, str.upper, str.title, str.swapcase]


@on_both
@pytest.mark.proves("2026-07-28/streamable-http/43")
@pytest.mark.parametrize("spelled", SPELLINGS, ids=["lower", "upper", "title", "swapped"])
async def test_header_names_are_compared_without_regard_to_case(
    start: Start, dial: Dialer, spelled: Callable[[str], str]
) -> None:
    async with running() as probe:
        client, port = probe.modern(), await start(probe.app)
        peer = Http1(await dial.wire(port))
        message = client.request("tools/call", {"name": "routed_tool", "arguments": {"priority": 7}})
        for priority, status in (("7", 200), ("8", 400)):
            headers = {**Modern.headers(message), "mcp-param-priority": priority}
            del headers["host"]
            lines = [(spelled(name), value) for name, value in headers.items()]
            answer = await peer.ask("/mcp", headers=lines, body=json.dumps(message).encode())
            assert answer.status == status
            body = json.loads(answer.body)
            if status == 200:
                client.result(body, "tools/call", message["id"])
            else:
                assert body["error"]["code"] == -32020
