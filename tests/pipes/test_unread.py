"""A peer that does not read what it is answered is still heard, and what it asks for waits until it reads."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Closed, Peer
from probe.log.context import Recorder
from probe.wire.jsonrpc import encode
from tests.support.pipes import Pipe, pipe
from tests.support.probe import Probe, running
from tests.support.shown import as_value, newest

LARGE = {"name": "long_output", "arguments": {"blocks": 4, "chars": 65536}}
SLOW = {"name": "simple_tool", "arguments": {"delayMs": 5000}}


class Deaf:
    """A wire whose peer says what it is told to, and takes no message until it `hears`."""

    def __init__(self) -> None:
        self.closed: Closed | None = None
        self.hears = trio.Event()
        self.taken: list[bytes] = []
        self.say, self._said = trio.open_memory_channel[bytes](1000)

    def opened(self, recorder: Recorder) -> None:
        pass

    async def receive(self) -> bytes | None:
        try:
            return await self._said.receive()
        except trio.EndOfChannel:
            self.closed = Closed(None, "client")
            return None

    async def send(self, message: bytes) -> None:
        await self.hears.wait()
        self.taken.append(message)


async def said(wire: Deaf, *messages: dict[str, Any]) -> None:

    for message in messages:
        wire.say.send_nowait(encode(message))
    await wait_all_tasks_blocked()


def requests(era: str) -> Pipe:
    """Makes messages; it is connected to nothing."""
    client = Pipe(trio.StapledStream(*trio.testing.memory_stream_one_way_pair()))
    client.revision = "2025-11-25" if era == "legacy" else client.revision
    return client


async def deaf_session(wire: Deaf, era: str, client: Pipe) -> None:
    if era == "legacy":
        about = {"name": "t", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        await said(wire, client.legacy("initialize", params))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancellation_is_heard_while_an_answer_is_unread(era: str, autojump_clock: MockClock) -> None:
    async with running() as probe, trio.open_nursery() as nursery:
        wire, client = Deaf(), requests(era)
        nursery.start_soon(serve_pipe, probe.engine, wire, Peer("stdio", "stdio", "", "all"))
        await deaf_session(wire, era, client)
        ask = getattr(client, era)
        await said(wire, ask("tools/call", SLOW, id="slow"), ask("tools/call", LARGE, id="large"))
        await said(wire, ask("tools/call", SLOW, id="held"))
        assert [call["request_id"] for call in records(probe)] == ["slow", "large"], "the third waits for a reader"
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await said(wire, {**cancel, "params": {"requestId": "slow"}}, {**cancel, "params": {"requestId": "held"}})
        outcomes = {call["request_id"]: call["outcome"] for call in records(probe)}
        assert outcomes == {"slow": "cancelled", "large": "completed", "held": "cancelled"}
        wire.say.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_was_asked_before_the_end_of_input_is_answered(era: str, autojump_clock: MockClock) -> None:
    async with running() as probe, trio.open_nursery() as nursery:
        wire, client = Deaf(), requests(era)
        nursery.start_soon(serve_pipe, probe.engine, wire, Peer("stdio", "stdio", "", "all"))
        await deaf_session(wire, era, client)
        ask = getattr(client, era)
        await said(wire, *(ask("tools/call", LARGE) for _ in range(5)))
        wire.say.close()
        wire.hears.set()
    assert len([message for message in wire.taken if b"[block 4]" in message]) == 5


async def test_an_id_in_flight_in_one_era_is_refused_in_the_other(autojump_clock: MockClock) -> None:
    async with running() as probe, pipe(probe.engine) as client:
        await client.initialize()
        await client.say(client.modern("tools/call", SLOW, id="x"))
        await client.say(client.legacy("ping", id="x"))
        refused = await client.hear()
        assert (refused["id"], refused["error"]["code"]) == ("x", -32600)
        await client.say(client.legacy("tools/call", SLOW, id="y"))
        await client.say(client.modern("server/discover", id="y"))
        refused = await client.hear()
        assert (refused["id"], refused["error"]["code"]) == ("y", -32600)


async def test_a_hang_up_closes_no_pipe_and_the_call_is_answered(autojump_clock: MockClock) -> None:
    async with running() as probe, pipe(probe.engine) as client:
        await client.initialize()
        result = await client.call(client.legacy("tools/call", {"name": "test_reconnection", "arguments": {}}))
        assert "isError" not in result
        assert await client.call(client.legacy("ping")) == {}


def records(probe: Probe) -> list[dict[str, Any]]:

    return [as_value(record) for record in reversed(newest(probe.engine.records, 100))]
