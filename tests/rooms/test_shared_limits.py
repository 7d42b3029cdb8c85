"""What all rooms of a process may hold together, and the turns that they take."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.budgets import SharedBytes
from probe.engine.engine import Engine
from probe.engine.services import ByteLimit
from probe.judge.live import JudgeService, JudgeTurns
from probe.log.context import Recorder
from probe.log.event_log import EventLog, Gap
from probe.log.events import LimitReached, ServerState
from probe.web.api.app import _SHOWN, EnginesInTurn, Shown
from probe.wire.errors import Rejection

from ..limits.strangers import ANN, BEN
from ..support.legacy import HEADERS, RpcError
from .house import REMOTE, Room, house, socket

HOLDER = REMOTE[0]
MIB = 1024 * 1024
WHOLE = {"room_share": 1, "address_share": 0.25}


class Part:
    """A holder of bytes, which gives up `step` at a time."""

    def __init__(self, shared: SharedBytes, step: int = 10) -> None:
        self.shared = shared
        self.size = 0
        self.step = step

    def give_up(self) -> int:
        self.size = max(0, self.size - self.step)
        return self.size

    def add(self, size: int) -> None:
        self.size += size
        self.shared.weigh(self.give_up, self.size)
        self.shared.make_room()


def test_the_largest_of_several_gives_up_what_is_too_much() -> None:
    shared = SharedBytes(100)
    small, large = Part(shared), Part(shared)
    small.add(20)
    large.add(80)
    small.add(15)
    assert (small.size, large.size, shared.bytes) == (35, 60, 95)
    shared.remove(large.give_up)
    shared.remove(large.give_up)
    assert shared.bytes == 35


def test_a_holder_that_has_gone_is_not_kept() -> None:
    shared = SharedBytes(100)
    stays, leaves = Part(shared), Part(shared)
    for part in (stays, leaves, leaves):
        part.add(10)
    shared.remove(leaves.give_up)
    gone = ref(leaves)
    del leaves, part
    gc.collect()
    assert gone() is None


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-30, 90)), max_size=60),
    st.lists(st.integers(1, 40), min_size=5, max_size=5),
)
def test_together_they_hold_no_more_than_the_bound(changes: list[tuple[int, int]], steps: list[int]) -> None:
    shared = SharedBytes(150)
    parts = [Part(shared, step) for step in steps]
    for place, change in changes:
        parts[place].add(max(change, -parts[place].size))
        assert shared.bytes == sum(part.size for part in parts) <= 150


class Compared(int):
    """A size that counts comparisons."""

    count = 0

    def __neg__(self) -> Compared:
        return Compared(-int(self))

    def __lt__(self, other: int) -> bool:
        Compared.count += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Compared.count += 1
        return int(self) > int(other)


def test_of_many_holders_the_largest_is_found_with_few_comparisons() -> None:
    shared = SharedBytes(10_000)
    holders = [lambda: Compared(5) for _ in range(1000)]
    for holder in holders:
        shared.weigh(holder, Compared(10))
    Compared.count = 0
    for holder in holders:
        shared.weigh(holder, Compared(20))
        shared.make_room()
    assert shared.bytes <= 10_000
    assert 0 < Compared.count < 100 * len(holders)


def test_one_large_entry_in_each_of_many_logs_does_not_exceed_their_bound() -> None:
    shared = SharedBytes(MIB)
    logs = [EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=MIB, shared=shared) for _ in range(21)]
    for log in logs:
        log.append(ServerState("x" * (900 * 1024)))
        assert sum(each.bytes for each in logs) == shared.bytes <= MIB
    for log in logs:
        for _ in range(1000):
            log.append(ServerState("x" * 1000))
        assert sum(each.bytes for each in logs) == shared.bytes <= MIB


def test_a_log_that_gave_up_its_newest_entry_goes_on() -> None:
    shared = SharedBytes(10_000)
    one, two = (EventLog(lambda: (0.0, 0.0), max_events=10, max_bytes=MIB, shared=shared) for _ in range(2))
    one.append(ServerState("x" * 6000))
    two.append(ServerState("x" * 5000))
    page = one.since(0, 10)
    assert (len(one), one.bytes, page.gap, page.entries, page.next) == (0, 0, Gap(1, 1), [], 1)
    assert (one.first, one.entry(1), one.until(1, 5), one.tail(5)) == (2, None, [], 1)
    one.append(ServerState("ready"))
    assert [entry.seq for entry in one.since(page.next, 10).entries] == [2]


def filled(room: Room, size: int) -> None:
    """Have so many bytes of facts in the log of a room."""
    before = room.engine.log.bytes
    while room.engine.log.bytes - before < size:
        last = room.engine.log.bytes
        room.engine.log.append(ServerState("x" * 10_000))
        if room.engine.log.bytes <= last:
            return


async def test_the_logs_of_all_rooms_have_the_bytes_of_one_server() -> None:
    async with house(event_log_bytes=MIB, **WHOLE) as here:
        quiet, busy, third = await here.open(), await here.open(), await here.open()
        filled(quiet, MIB // 8)
        first = quiet.engine.log.first
        for _ in range(3):
            filled(busy, MIB)
            filled(third, MIB)
        logs = [room.engine.log for room in (quiet, busy, third)]
        assert sum(log.bytes for log in logs) <= MIB
        # The rooms with the most lose their oldest entries, and a reader gets the gap.
        assert quiet.engine.log.first == first
        assert busy.engine.log.since(0, 1).gap is not None
        assert busy.engine.log.bytes > MIB // 4
        await busy.ask("DELETE", "/api/room")
        await third.ask("DELETE", "/api/room")
        filled(quiet, MIB // 2)
        assert quiet.engine.log.first == first


LIMITS: list[Callable[[Engine], ByteLimit]] = [
    lambda engine: engine.services.arriving,
    lambda engine: engine.services.unsent,
    lambda engine: engine.services.piped,
]


@pytest.mark.parametrize("limit", LIMITS, ids=["arriving", "unsent", "piped"])
async def test_what_comes_and_waits_in_all_rooms_has_one_bound(limit: Callable[[Engine], ByteLimit]) -> None:
    async with house(max_incoming_bytes=32 * MIB, max_unsent_bytes=32 * MIB, **WHOLE) as here:
        one, two = await here.open(), await here.open()
        recorder = Recorder(two.engine.log)
        limit(one.engine).reserve(None, recorder, 28 * MIB)
        with pytest.raises(Rejection) as full:
            limit(two.engine).reserve(None, recorder, MIB)
        assert (full.value.refusal.status, f"is {32 * MIB}" in full.value.message) == (503, True)
        assert reached(here.engine) == reached(two.engine) == [limit(one.engine).name]
        # As in one server, the last eighth is for what is small.
        limit(two.engine).reserve(None, recorder, 1000)
        assert limit(here.engine).held == 28 * MIB + 1000
        limit(one.engine).release(None, 28 * MIB)
        limit(two.engine).reserve(HOLDER, recorder, 8 * MIB)
        with pytest.raises(Rejection) as full:
            limit(one.engine).reserve(HOLDER, recorder, MIB)
        assert (full.value.refusal.status, "address_share" in full.value.message) == (429, True)
        assert limit(two.engine).is_exceeded(HOLDER, 0) is False
        limit(one.engine).take(HOLDER, 8 * MIB)
        assert limit(one.engine).is_exceeded(HOLDER, 0) is True


async def test_a_body_that_is_too_much_for_all_rooms_is_refused_as_in_one_server() -> None:
    async with house(max_incoming_bytes=32 * MIB, **WHOLE) as here:
        one, two = await here.open(), await here.open()
        client = await two.legacy()
        one.engine.services.arriving.take(None, 32 * MIB)
        async with client.post(client.request("tools/list")) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, "max_incoming_bytes" in error["message"]) == (503, True)
        one.engine.services.arriving.release(None, 32 * MIB)
        assert "tools" in await client.call("tools/list")


def initialize() -> bytes:
    """The request that begins a session."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()


async def begun(room: Room, address: str) -> int:
    """The status of a new session of a client address."""
    return (await room.house.ask("POST", f"/r/{room.id}/mcp", HEADERS, initialize(), (address, 1))).status


def reached(engine: Engine) -> list[str]:
    """The limits in the log of an engine."""
    facts = [entry.fact for entry in engine.log.since(0, 1000).entries]
    return [fact.limit for fact in facts if isinstance(fact, LimitReached)]


async def test_all_rooms_have_a_bound_of_sessions_and_an_address_its_share() -> None:
    async with house(max_rooms=2, max_sessions=5, room_share=1, address_share=0.5) as here:
        one, two = await here.open(), await here.open()
        # Four for each place of `max_rooms`, and half of them for one address.
        assert [await begun(room, ANN) for room in (one, two, one, two, one)] == [200] * 4 + [429]
        assert [await begun(room, BEN) for room in (one, two, one, two)] == [200] * 4
        assert await begun(one, "203.0.113.3") == 503
        both = ["all_rooms:address_share:max_sessions", "all_rooms:max_sessions"]
        assert [reached(each.engine) for each in (one, two, here)] == [both, [], both]
        await two.ask("DELETE", "/api/room")
        assert await begun(one, ANN) == 200


async def test_all_rooms_have_a_bound_of_pages_that_wait_for_a_person(autojump_clock: MockClock) -> None:
    async with house(max_rooms=2, max_interactions=5, room_share=1, address_share=1, request_state_ttl_s=100) as here:
        rooms = [await here.open(), await here.open()]
        clients = [room.modern() for room in rooms]
        for client in clients * 4:
            assert (await client.tool("elicit_url"))["resultType"] == "input_required"
        for client in clients:
            with pytest.raises(RpcError, match=r"All rooms together .*all_rooms:max_interactions is 8") as caught:
                await client.tool("elicit_url")
            assert caught.value.code == 1002
        assert [reached(room.engine) for room in rooms] == [["all_rooms:max_interactions"]] * 2
        # A page gives its place back when its time is over, and with its room.
        await trio.sleep(100)
        for client in clients * 4:
            assert (await client.tool("elicit_url"))["resultType"] == "input_required"
        await rooms[1].ask("DELETE", "/api/room")
        assert (await clients[0].tool("elicit_url"))["resultType"] == "input_required"


async def test_a_room_that_ends_gives_back_what_nothing_released() -> None:
    async with house() as here:
        room = await here.open()
        bounds = here.rooms._shared.counts
        for limit in room.engine.services.shares._counted:
            limit.take(HOLDER, 2)
            limit.take(None, 3)
        assert {bound.held for bound in bounds.values()} == {5}
        await room.ask("DELETE", "/api/room")
        assert {bound.held for bound in bounds.values()} == {0}
        assert {len(bound._shares) for bound in bounds.values()} == {0}


async def test_what_a_room_keeps_beside_its_log_goes_with_its_entries(autojump_clock: MockClock) -> None:
    async with house(event_log_bytes=MIB, room_share=1, judge=True) as here:
        room = await here.open()
        client = await room.legacy()
        for number in range(3):
            await client.tool("simple_tool", {"text": f"{number}" * 1000})
        calls, judge = room.engine.observer.records, room.engine.judging._judge._views  # type: ignore[union-attr]
        await room.engine.judging.report()  # type: ignore[union-attr]
        assert (len(calls.listed), len(judge.messages) > 6) == (3, True)
        for _ in range(400):
            room.engine.log.append(ServerState("x" * 10_000))
        await room.engine.judging.report()  # type: ignore[union-attr]
        assert len(room.engine.observer.records.listed) == 0
        assert len(judge.messages) == 0


async def test_a_quiet_room_lets_go_of_what_its_log_gives_up_for_other_rooms(autojump_clock: MockClock) -> None:
    async with house(event_log_bytes=MIB, room_share=1, judge=True) as here:
        quiet, *others = [await here.open() for _ in range(4)]
        client = await quiet.legacy()
        for _ in range(100):
            await client.tool("simple_tool", {"text": "x" * 500})
        await trio.sleep(1000)
        log, views = quiet.engine.log, (quiet.engine.observer._views, quiet.engine.judging._judge._views)  # type: ignore[union-attr]
        entries, last, kept = len(log), log.last, [len(each.exchanges) for each in views]
        for room in others:
            filled(room, MIB)
        assert (log.last, len(log) < entries // 2) == (last, True)
        # Nobody asks, and no entry comes.
        await trio.sleep(1000)
        assert all(len(each.exchanges) < 0.7 * before for each, before in zip(views, kept, strict=True))


async def test_a_room_that_ends_gives_all_back() -> None:
    async with house() as here:
        room = await here.open()
        client = await room.legacy()
        async with client.get(), client.post(client.request("tools/call", {"name": "silent_call", "arguments": {}})):
            assert (await room.ask("DELETE", "/api/room")).status == 204
        services = here.engine.services
        assert (services.arriving.held, services.unsent.held, services.piped.held) == (0, 0, 0)
        shared = here.rooms._shared
        assert [bound.bytes for bound in (shared.log, shared.replay, shared.draft_streams) if bound] == [0, 0, 0]


async def test_messages_on_the_sockets_of_one_address_have_one_rate_over_all_rooms(autojump_clock: MockClock) -> None:
    async with house(request_burst=20, requests_per_second=1) as here:
        one, two = await here.open(), await here.open()
        async with socket(one, REMOTE) as first, socket(two, REMOTE) as second:
            for number in range(30):
                await first.say({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
            await first.ask("ping", {}, 99)
            began = trio.current_time()
            await second.ask("ping", {}, 5)
            assert trio.current_time() - began > 0.5


async def test_messages_on_all_sockets_of_a_room_have_the_rate_of_one_address(autojump_clock: MockClock) -> None:
    async with house(request_burst=20, requests_per_second=1) as here:
        room = await here.open()
        async with socket(room, REMOTE) as first, socket(room, ("203.0.113.9", 1)) as second:
            for number in range(30):
                await first.say({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
            await first.ask("ping", {}, 99)
            began = trio.current_time()
            await second.ask("ping", {}, 5)
            assert trio.current_time() - began > 0.5


class Ticking:
    """A clock that goes on by what is said to take time."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def takes(self, seconds: float) -> None:
        self._now += seconds


class Reader:
    """In place of a judge: it counts the entries. Each takes 1 ms; asking the rules before it forgets `forgets_s`."""

    def __init__(self, clock: Ticking, forgets_s: float = 0) -> None:
        self.read = 0
        self._clock = clock
        self._forgets_s = forgets_s

    def take(self, _entry: object) -> None:
        self.read += 1
        self._clock.takes(0.001)

    def forget_before(self, _first: int, _at: float) -> None:
        self._clock.takes(self._forgets_s)


async def test_the_judges_of_all_rooms_take_the_time_of_one(autojump_clock: MockClock) -> None:
    turns = JudgeTurns()
    clocks: list[Any] = [Ticking() for _ in range(3)]
    readers: list[Any] = [Reader(clock) for clock in clocks]
    async with trio.open_nursery() as nursery:
        for clock, reader in zip(clocks, readers, strict=True):
            log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=MIB)
            for _ in range(500):
                log.append(ServerState("ready"))
            service = JudgeService(log, clock, reader, turns=turns)
            nursery.start_soon(service.serve)
        # Each piece of 100 entries takes 0.1 s, and then 7.9 s pass: in turn, and not for all at once.
        await trio.sleep(22.2)
        counts = [reader.read for reader in readers]
        assert (max(counts) - min(counts) <= 100, sum(counts) <= 600) == (True, True)
        await trio.sleep(100)
        assert [reader.read for reader in readers] == [500] * 3
        nursery.cancel_scope.cancel()


async def test_the_time_in_which_a_judge_forgets_counts_too(autojump_clock: MockClock) -> None:
    clock: Any = Ticking()
    reader: Any = Reader(clock, forgets_s=0.4)
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=MIB, shared=SharedBytes(MIB))
    for _ in range(500):
        log.append(ServerState("ready"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JudgeService(log, clock, reader).serve)
        # Each piece takes 0.5 s, and then 39.5 s pass.
        for pieces in range(1, 6):
            await trio.sleep(39)
            assert reader.read == 100 * pieces
            await trio.sleep(0.5)
        nursery.cancel_scope.cancel()


async def test_rooms_take_turns_with_searches_however_many_each_has() -> None:
    async with house() as here:
        one, two = await here.open(), await here.open()
        lock, order, goes_on = EnginesInTurn(), list[str](), trio.Event()

        async def search(name: str, room: Room) -> None:
            _SHOWN.set(Shown(room.engine, None))
            async with lock:
                order.append(name)
                await goes_on.wait()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(search, "one", one)
            await wait_all_tasks_blocked()
            nursery.start_soon(search, "two", two)
            await wait_all_tasks_blocked()
            goes_on.set()
        assert order == ["one", "two", "one", "one", "one", "one"]
