"""Messages that are held back when their connection ends are not begun: nothing of them could be answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer, WireBrokenError
from probe.log.context import Recorder

from ..support.probe import running

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


def said(method: str, params: dict[str, Any] | None = None, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode()


class Stuck:
    """A wire whose peer sends these messages and then breaks the rules, and reads nothing before `reads` is set."""

    closed = None

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = messages
        self.reads = trio.Event()
        self._sent = 0

    def opened(self, recorder: Recorder) -> None:
        """Nothing to tell."""

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._messages:
            return self._messages.pop(0)
        raise WireBrokenError(1003, "a binary frame")

    async def send(self, message: bytes) -> None:
        self._sent += 1
        if self._sent > 1:
            await self.reads.wait()
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("modern", [False, True])
async def test_a_call_that_was_held_back_never_starts(modern: bool, autojump_clock: MockClock) -> None:
    about = {"_meta": META} if modern else {}
    messages = [] if modern else [said("initialize", HELLO, id=0), said("notifications/initialized")]
    messages += [said("tools/list", about, id=number) for number in range(1, 60)]
    messages.append(said("tools/call", {"name": "silent_call", "arguments": {}, **about}, id=99))
    async with running() as probe:
        wire = Stuck(messages)
        peer = Peer(transport="websocket", address="127.0.0.1", origin="", selection="all", client="127.0.0.1:1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_pipe, probe.engine, wire, peer)
            await trio.sleep(0.5)
            wire.reads.set()
        assert probe.events("call.started") == []
        assert not probe.engine.modern.running
