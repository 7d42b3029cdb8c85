"""Memory that floods could take, bounded over all clients: streams that wait to be resumed, bodies on their way."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.budgets import SMALL_BYTES, SharedBytes
from probe.engine.streams.stream import ReplayBudget, Stream
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import LimitReached
from probe.settings import build

from ..support.http import exchange, http_scope
from ..support.legacy import HEADERS, Legacy
from ..support.probe import Probe, running
from .strangers import ANN, BEN, legacy, reached, seen_from

# -- streams that can be resumed


def room_for(most_bytes: int, shared: SharedBytes | None = None) -> tuple[ReplayBudget, EventLog]:
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=10_000_000)
    return ReplayBudget(most_bytes, shared), log


def stream(log: EventLog, id: str, session: str = "s1") -> Stream:
    return Stream(id, "response", Recorder(log).bind(session=session), build({}).limits)


def test_up_to_the_limit_everything_is_kept_and_one_byte_more_costs_who_holds_most() -> None:
    room, log = room_for(100)
    large, small = stream(log, "p1"), stream(log, "p2", "s2")
    room.add(large, "ann")
    room.add(small, "ben")
    large.append(b"x" * 60)
    small.append(b"x" * 40)
    assert (room.bytes, large.replay.first, small.replay.first) == (100, 1, 1)
    small.append(b"x")
    assert (room.bytes, large.replay.bytes, small.replay.bytes) == (41, 0, 41)
    (entry,) = [entry for entry in log.since(0, 1000).entries if entry.fact.kind == "limit.reached"]
    assert (entry.context.session, entry.fact) == ("s1", LimitReached("max_replay_bytes", 100))


def test_of_one_holder_what_has_ended_goes_first_and_of_that_the_oldest() -> None:
    room, log = room_for(100)
    streams = [stream(log, f"p{number}") for number in range(4)]
    for item, size in zip(streams, (50, 10, 20, 10), strict=True):
        room.add(item, "ann")
        item.append(b"x" * size)
    streams[1].end(1.0)
    streams[2].end(2.0)
    streams[3].append(b"x" * 20)
    assert [item.replay.bytes for item in streams] == [50, 0, 20, 30]
    streams[3].append(b"x" * 10)
    assert [item.replay.bytes for item in streams] == [50, 0, 0, 40]
    streams[3].append(b"x" * 60)
    assert [item.replay.bytes for item in streams] == [50, 0, 0, 0], "the largest that goes on, itself if need be"


def test_of_several_engines_the_one_with_the_most_gives_up_a_stream() -> None:
    shared = SharedBytes(100)
    (one, log), (two, other) = room_for(80, shared), room_for(80, shared)
    large, small = stream(log, "p1"), stream(other, "p1")
    one.add(large, "ann")
    two.add(small, "ann")
    large.append(b"x" * 60)
    small.append(b"x" * 40)
    assert (shared.bytes, large.replay.bytes) == (100, 60)
    small.append(b"x")
    assert (shared.bytes, large.replay.bytes, small.replay.bytes) == (41, 0, 41)
    (entry,) = [entry for entry in log.since(0, 1000).entries if entry.fact.kind == "limit.reached"]
    assert entry.fact == LimitReached("all_rooms:max_replay_bytes", 100)
    small.append(b"x" * 50)
    assert (shared.bytes, two.bytes) == (0, 0), "its own bound stands as well"
    two.leave_shared()
    large.append(b"x" * 70)
    assert (shared.bytes, one.bytes) == (70, 70)


def test_the_holder_counts_and_not_the_stream() -> None:
    room, log = room_for(100)
    one, two, largest = stream(log, "p1"), stream(log, "p2"), stream(log, "p3", "s2")
    for item, holder, size in ((one, "ann", 30), (two, "ann", 25), (largest, "ben", 45)):
        room.add(item, holder)
        item.append(b"x" * size)
    largest.append(b"x")
    assert (one.replay.bytes, two.replay.bytes, largest.replay.bytes) == (0, 25, 46)


def test_what_is_not_kept_any_more_does_not_count() -> None:
    room, log = room_for(100)
    for number in range(5):
        item = stream(log, f"p{number}")
        room.add(item, f"holder {number}")
        item.append(b"x" * 90)
        room.remove(item)
        room.remove(item)
        item.append(b"x" * 90)
    assert (room.bytes, room._streams, room._held, room._holders) == (0, {}, {}, {})


BATCHER = "2025-03-26"


def batch(client: Legacy) -> list[dict[str, Any]]:
    """A few bytes that make a stream of two megabytes: of a request that waits, and one that is answered at once."""
    big = {"name": "long_output", "arguments": {"blocks": 30, "chars": 65536}}
    return [
        client.request("tools/call", {"name": "simple_tool", "arguments": {"delayMs": 10}}),
        client.request("tools/call", big),
    ]


async def test_streams_of_all_sessions_are_bounded_together(autojump_clock: MockClock) -> None:
    """Without a bound over all, the sessions of one address could hold 8 GB of what was finished."""
    most = 10_000_000
    async with running(max_replay_bytes=most) as probe:
        honest = await legacy(probe, BEN)
        async with honest.post(honest.request("tools/call", {"name": "simple_tool", "arguments": {}}), {}) as answer:
            await honest.read(answer)
        for _ in range(4):
            hoarder = Legacy(seen_from(probe.app, ANN), "/mcp?tools=all")
            await hoarder.initialize(BATCHER)
            for _ in range(3):
                async with hoarder.post(batch(hoarder)) as answer:
                    assert answer.status == 200
                    await hoarder.read(answer)
        room = probe.engine.sessions.replay
        kept = [item.replay.bytes for session in probe.engine.sessions for item in session._streams.values()]
        assert most / 2 < sum(kept) == room.bytes <= most
        assert set(reached(probe)) == {("max_replay_bytes", most)}
        async with honest.get("p1-0") as answer:
            assert [event.message["id"] for event in await honest.read(answer)] == [2], "who holds little loses nothing"
        async with hoarder.get("p1-0") as answer:
            assert answer.status in (200, 410)
        for session in probe.engine.sessions:
            session.end(*_end())
        await wait_all_tasks_blocked()
        assert (room.bytes, room._streams) == (0, {})


async def test_a_resumption_of_what_made_room_is_refused_like_any_loss(autojump_clock: MockClock) -> None:
    async with running(max_replay_bytes=3_000_000) as probe:
        client = Legacy(seen_from(probe.app, ANN), "/mcp?tools=all")
        await client.initialize(BATCHER)
        for _ in range(2):
            async with client.post(batch(client)) as answer:
                await client.read(answer)
        async with client.get("p1-0") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (410, -32602)
        async with client.get("p2-0") as answer:
            assert len(await client.read(answer)) == 2
        # It is looked for as often as it may be kept.
        await trio.sleep(601)
        assert probe.engine.sessions.replay.bytes == 0, "what is forgotten for its age does not count"
        assert await client.call("ping") == {}


def _end() -> Any:
    from probe.core.call import Cause

    return Cause.SESSION_END, "the test is over"


# -- bodies that are not complete

MIB = 1024 * 1024


class Slow:
    """A request whose body comes as the test says."""

    def __init__(self, probe: Probe, address: str, declared: int | None = None) -> None:
        self._sent = HEADERS if declared is None else {**HEADERS, "content-length": str(declared)}
        self.say, self._receive = trio.open_memory_channel[dict[str, Any]](100)
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self._app = seen_from(probe.app, address)

    def part(self, size: int) -> None:
        self.say.send_nowait({"type": "http.request", "body": b" " * size, "more_body": True})

    def end(self) -> None:
        self.say.send_nowait({"type": "http.request", "body": b"", "more_body": False})

    def leave(self) -> None:
        self.say.send_nowait({"type": "http.disconnect"})

    async def run(self) -> None:
        async def send(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                self.status, self.headers = event["status"], dict(event["headers"])
            else:
                self.body += event["body"]

        await self._app(http_scope("POST", "/mcp", self._sent), self._receive.receive, send)


FREE: dict[str, Any] = {"requests_per_second": 1e9, "request_burst": 10**9, "max_incoming_bytes": 32 * MIB}


async def test_one_body_may_be_larger_than_the_share_of_its_address(autojump_clock: MockClock) -> None:
    async with running(**FREE, max_body_bytes=16 * MIB) as probe, trio.open_nursery() as nursery:
        large, other = Slow(probe, ANN), Slow(probe, ANN)
        nursery.start_soon(large.run)
        nursery.start_soon(other.run)
        for _ in range(3):
            large.part(4 * MIB)
            await wait_all_tasks_blocked()
        other.part(1)
        await wait_all_tasks_blocked()
        assert (large.status, other.status) == (0, 429)
        large.end()
        await wait_all_tasks_blocked()
        assert large.status == 400, "all of it was read, and is no JSON"


@pytest.mark.parametrize(
    ("addresses", "status", "word"),
    [
        ([ANN] * 3, 429, "its share of max_incoming_bytes is 8388608 (address_share)"),
        ([f"203.0.113.{n}" for n in range(8)], 503, "the limit max_incoming_bytes is 33554432"),
    ],
    ids=["one-address", "many"],
)
async def test_bodies_on_their_way_are_bounded(addresses, status, word, autojump_clock: MockClock) -> None:
    async with running(**FREE) as probe, trio.open_nursery() as nursery:
        senders = [Slow(probe, address) for address in addresses]
        for sender in senders:
            nursery.start_soon(sender.run)
            sender.part(4 * MIB)
            await wait_all_tasks_blocked()
        assert [sender.status for sender in senders[:-1]] == [0] * (len(senders) - 1)
        last = senders[-1]
        assert (last.status, last.headers[b"retry-after"]) == (status, b"5")
        assert word in json.loads(last.body)["error"]["message"]
        arriving = probe.app.mcp._arriving
        assert arriving.held == 4 * MIB * (len(senders) - 1)
        other = Slow(probe, BEN)
        nursery.start_soon(other.run)
        # What is small still has room when others have filled the limit.
        other.part(4 * MIB if status == 429 else SMALL_BYTES)
        await wait_all_tasks_blocked()
        assert other.status == 0
        if status == 503:
            large = Slow(probe, BEN, declared=SMALL_BYTES + 1)
            nursery.start_soon(large.run)
            large.part(1)
            await wait_all_tasks_blocked()
            assert large.status == 503, "it has said that it will not be small"
            senders[0].end()
            await wait_all_tasks_blocked()
            assert senders[0].status == 400, "it was complete, and is no JSON: its end takes no room"
            other.part(1)
            await wait_all_tasks_blocked()
            assert other.status == 0, "there is room again"
        for sender in [*senders[:-1], other]:
            sender.leave()
        await wait_all_tasks_blocked()
        assert (arriving.held, len(probe.engine.services.shares)) == (0, 0)


async def test_a_body_that_is_complete_counts_no_more(autojump_clock: MockClock) -> None:
    async with running(**FREE) as probe:
        for _ in range(10):
            async with exchange(seen_from(probe.app, ANN), "POST", "/mcp", HEADERS, b" " * 4 * MIB) as answer:
                assert answer.status == 400
        assert (probe.app.mcp._arriving.held, reached(probe)) == (0, [])


async def test_a_body_is_taken_as_slowly_as_the_rate_says(autojump_clock: MockClock) -> None:
    """So its sender has to wait, where refusing further requests alone would let those go on that have begun."""
    async with running(requests_per_second=1, request_burst=5) as probe, trio.open_nursery() as nursery:
        sender, began = Slow(probe, ANN), trio.current_time()
        nursery.start_soon(sender.run)
        for _ in range(8):
            sender.part(65536)
        await trio.sleep(3.5)
        assert probe.app.mcp._arriving.held == 7 * 65536
        await trio.sleep(1)
        assert probe.app.mcp._arriving.held == 8 * 65536
        sender.leave()
        assert trio.current_time() - began == 4.5


# -- sessions that nobody uses


async def test_a_session_in_which_nothing_follows_initialize_is_ended_soon(autojump_clock: MockClock) -> None:
    async with running(session_first_s=60) as probe:
        client = Legacy(probe.app, "/mcp")
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        async with client.post(client.request("initialize", params)) as answer:
            client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        used = await probe.client()
        await trio.sleep(59)
        assert len(list(probe.engine.sessions)) == 2
        await trio.sleep(2)
        assert [session.label for session in probe.engine.sessions] == ["s2"]
        assert [event["why"] for event in probe.events("session.closed")] == ["idle"]
        assert await used.call("ping") == {}
