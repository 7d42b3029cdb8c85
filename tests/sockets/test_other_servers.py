"""The application is plain ASGI: it runs on hypercorn and on anycorn as they are."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
import trio

from probe.server.listener.calls import Contained, PeerGoneError

from ..support.modern import Modern
from ..support.probe import running
from ..support.websocket import connected
from .peers import PATIENCE_S, Dialer, Http1
from .servers import Server, Start, fallback, stock


@pytest.fixture(params=[stock, fallback], ids=["hypercorn", "anycorn"])
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.param
    return server


def messages(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: {")]


async def post(peer: Http1, message: dict[str, Any]) -> bytes:
    """POST a message; the body of its answer."""
    headers = [(name, value) for name, value in Modern.headers(message).items() if name != "host"]
    answer = await peer.ask("/mcp?tools=all", headers=headers, body=json.dumps(message).encode())
    assert answer.status == 200
    return answer.body


async def test_calls_pages_and_websockets(start: Start, dial: Dialer) -> None:
    async with running(tools="all") as probe:
        port, client = await start(probe.app), probe.modern()
        steps = {"name": "progress", "arguments": {"steps": 3, "step_ms": 10}}
        request = client.request("tools/call", steps, id=1, meta={"progressToken": "t"})
        found = messages(await post(await dial.http1(port), request))
        assert [message.get("id") for message in found] == [None, None, None, 1]
        at_once = client.request("tools/call", {"name": "long_output", "arguments": {"blocks": 1, "chars": 9}}, id=2)
        assert b'"result"' in await post(await dial.http1(port), at_once)
        for path in ("/health", "/api/calls"):
            assert (await (await dial.http1(port)).ask(path)).status == 200
        async with connected(port, "/ws", subprotocols=["mcp"]) as socket:
            with trio.fail_after(PATIENCE_S):
                await socket.send_message(json.dumps(client.request("server/discover", {}, id=3)))
                assert json.loads(await socket.get_message())["id"] == 3


# `Contained`: what one connection does wrong ends there; what stops the program does not.


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ValueError("a defect"), True),
        (PeerGoneError("gone"), False),
        (ExceptionGroup("", [PeerGoneError("gone"), ValueError("a defect")]), True),
        (ExceptionGroup("", [ExceptionGroup("", [PeerGoneError("gone")])]), False),
    ],
    ids=["error", "gone", "both", "nested"],
)
def test_an_error_ends_here_and_only_a_peer_that_left_is_no_news(
    error: Exception, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with Contained("a test"):
        raise error
    assert ("a defect" in caplog.text, "error in a test" in caplog.text) == (logged, logged)


def test_what_stops_the_program_passes_also_beside_an_error(caplog: pytest.LogCaptureFixture) -> None:
    alone, beside = KeyboardInterrupt(), KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as one, Contained("a test"):
        raise alone
    with pytest.raises(BaseExceptionGroup) as several, Contained("a test"):
        raise BaseExceptionGroup("", [beside, ValueError("a defect")])
    assert (one.value, several.value.exceptions) == (alone, (beside,))
    assert "a defect" in caplog.text


def test_what_passes_leaves_nothing_to_the_collector() -> None:
    def passed() -> None:
        with Contained("a test"):
            raise BaseExceptionGroup("", [KeyboardInterrupt(), ValueError("a defect")])

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BaseExceptionGroup):
            passed()
        assert gc.collect() == 0
    finally:
        gc.enable()
