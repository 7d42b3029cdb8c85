"""What one connection may ask for, send, and leave unread; how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.engine import Engine

from ..support.calls import misuses, outcome
from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import RpcError
from ..support.listening import ACKNOWLEDGED
from ..support.probe import Probe, running
from .talks import Talk, settle, slow_pipe, talking

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])
LONG_S = 200
KIB = 1024


def held(engine: Engine) -> int:
    """Bytes that were made for clients and not taken yet."""
    page = engine.log.since(0, 1_000_000)
    emitted = [len(entry.fact.message) for entry in page.entries if entry.fact.kind == "message.emitted"]
    delivered = sum(entry.fact.kind == "message.delivered" for entry in page.entries)
    return sum(emitted[delivered:])


# -- who writes and does not read


@both_eras
async def test_a_thousand_requests_are_answered_when_their_client_reads(era: str, probe: Probe) -> None:
    """What the server has made in advance is bounded: the rest of the requests waits, unread."""
    async with talking(probe, era) as talk:
        asked = [f"n{number}" for number in range(1000)]
        for id in asked:
            await talk.client.say(talk.trifle(id))
        await settle()
        assert len(probe.events("message.received")) < 300, "of a thousand"
        assert held(probe.engine) < 64 * KIB + KIB, "what may wait, and one answer more"
        with trio.fail_after(60):
            heard = [(await talk.client.hear())["id"] for _ in asked]
        assert heard == asked
        await talk.answered(talk.trifle())


@both_eras
async def test_calls_that_run_are_all_answered_also_to_a_client_that_reads_late(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as talk:
        for number in range(100):
            await talk.client.say(talk.steps(count=20, ms=10, id=f"n{number}", token=f"t{number}"))
        await trio.sleep(100)
        heard = await talk.hear_for(LONG_S)
        for number in range(100):
            params = [one["params"] for one in heard if "method" in one]
            own = [one["progress"] for one in params if one["progressToken"] == f"t{number}"]
            assert own == [*range(1, 21)], "each of its own, in order"
        responses = [one["id"] for one in heard if "method" not in one]
        assert sorted(responses) == sorted(f"n{number}" for number in range(100))


@both_eras
async def test_a_client_that_leaves_too_much_unread_is_given_up(era: str, autojump_clock: MockClock) -> None:
    async with running(max_pipe_bytes=64 * KIB) as probe:
        async with talking(probe, era) as talk:
            for number in range(10):
                await talk.client.say(talk.steps(count=100, ms=10, id=f"n{number}", token=f"token {number}"))
            with trio.fail_after(10):
                await talk.client.gone.wait()
            assert talk.client.ending is not None
            assert (talk.client.ending.code, talk.client.ending.why) == (1008, "the client reads too slowly")
        (reached,) = probe.events("limit.reached")
        assert (reached["limit"], reached["value"]) == ("max_pipe_bytes", 64 * KIB)
        assert {outcome(probe, f"n{number}")[0] for number in range(10)} == {"disconnected"}


@both_eras
async def test_one_that_leaves_less_unread_is_not(era: str, autojump_clock: MockClock) -> None:
    async with running(max_pipe_bytes=64 * KIB) as probe, talking(probe, era) as talk:
        for number in range(4):
            await talk.client.say(talk.steps(count=100, ms=10, id=f"n{number}", token=f"token {number}"))
        await trio.sleep(100)
        assert held(probe.engine) > 32 * KIB
        heard = await talk.hear_for(LONG_S)
        assert len([one for one in heard if "method" not in one]) == 4
        assert probe.events("limit.reached") == []


@both_eras
async def test_one_answer_alone_is_never_too_much(era: str, autojump_clock: MockClock) -> None:
    async with running(max_pipe_bytes=64 * KIB) as probe, talking(probe, era) as talk:
        await talk.client.say(talk.request("tools/list", id="it"))
        (answer,) = [one for one in await talk.hear_for(LONG_S) if one.get("id") == "it"]
        assert len(str(answer)) > 32 * KIB
        assert probe.events("limit.reached") == []


@both_eras
async def test_one_in_flight_too_many_is_refused_and_nothing_else_happens(era: str, autojump_clock: MockClock) -> None:
    async with running(max_in_flight=3) as probe, talking(probe, era) as talk:
        for number in range(3):
            await talk.client.say(talk.call("simple_tool", {"delayMs": 1000 * (number + 1)}, id=f"n{number}"))
        await talk.client.say(talk.trifle("more"))
        refusal = await talk.client.hear()
        assert (refusal["id"], refusal["error"]["code"]) == ("more", -32000 if era == "legacy" else 1002)
        assert (await talk.client.hear())["id"] == "n0"
        await settle()
        assert "result" in (await talk.answered(talk.trifle("more")))["more"]
        assert [one["id"] for one in await talk.hear_for(LONG_S)] == ["n1", "n2"]
        (reached,) = probe.events("limit.reached")
        assert (reached["limit"], reached["value"]) == ("max_in_flight", 3)


# -- what is no message


@both_eras
async def test_the_size_of_a_message_is_exact(era: str) -> None:
    async with running(max_body_bytes=2000) as probe, talking(probe, era) as talk:
        request = talk.request("tools/call", {"name": "chatty", "arguments": {"x": ""}}, id="it")
        room = 2000 - len(json.dumps(request))
        request["params"]["arguments"]["x"] = "x" * room
        assert len(json.dumps(request)) == 2000
        assert "x" in str((await talk.answered(request))["it"])
        request["params"]["arguments"]["x"] += "x"
        await talk.client.say(request)
        refusal = await talk.client.hear()
        assert ("id" in refusal, refusal["error"]["code"]) == (False, -32600)
        assert "2000 bytes" in refusal["error"]["message"]
        await talk.answered(talk.trifle())


@both_eras
@pytest.mark.parametrize("id", ["", "x" * 256, 0, -1, 2**53 + 1, 10**255, "\U0001f989 é\u2028\n"])
async def test_any_other_id_comes_back_as_it_is(era: str, id: Any, probe: Probe) -> None:
    async with talking(probe, era) as talk:
        ((back, message),) = (await talk.answered(talk.trifle(id))).items()
        assert (back, type(back), "result" in message) == (id, type(id), True)


@both_eras
@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r\n\n\n"])
async def test_empty_lines_say_nothing(era: str, line: bytes, probe: Probe) -> None:
    async with talking(probe, era) as talk:
        await talk.client.send_bytes(line)
        await talk.client.send_bytes(json.dumps(talk.trifle()).encode() + b"\r\n")
        assert "result" in await talk.client.hear()
        assert misuses(probe) == []


# -- batches


async def test_a_batch_is_answered_where_the_revision_has_batches(probe: Probe, autojump_clock: MockClock) -> None:
    """Each request by a message of its own, the waiting ones when they are done."""
    async with slow_pipe(probe) as client:
        await client.initialize("2025-03-26", {})
        talk = Talk(client, "legacy")
        note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        batch = [talk.trifle("a"), talk.steps(count=2, id="b"), note, talk.steps(count=9, id="c", token="c")]
        await client.say(batch)
        heard = await talk.hear_for(2.5)
        assert [one["id"] for one in heard if "method" not in one] == ["a", "b"]
        await client.cancel("c")
        assert await talk.hear_for(LONG_S) == []
        assert outcome(probe, "c") == ("cancelled", "notification", 2, False)
        await talk.answered(talk.trifle())


async def test_a_batch_is_answered_with_half_of_what_may_wait_and_no_more(autojump_clock: MockClock) -> None:
    async with running(max_pipe_bytes=64 * KIB) as probe, slow_pipe(probe) as client:
        await client.initialize("2025-03-26", {})
        talk = Talk(client, "legacy")
        await client.say([talk.request("tools/list", id=id) for id in ("a", "b", "c")])
        heard = await talk.hear_for(2.5)
        assert [(one["id"], "result" in one) for one in heard] == [("a", True), ("b", False), ("c", False)]
        assert [one["error"]["code"] for one in heard[1:]] == [-32000, -32000]
        assert "half of max_pipe_bytes" in heard[1]["error"]["message"]
        await talk.answered(talk.trifle())


async def test_a_batch_of_which_one_has_no_room_starts_nothing(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=2) as probe, slow_pipe(probe) as client:
        await client.initialize("2025-03-26", {})
        talk = Talk(client, "legacy")
        await client.say([talk.steps(id=id, token=id) for id in ("a", "b", "c")])
        heard = await talk.hear_for(LONG_S)
        assert [(one["id"], one["error"]["code"]) for one in heard] == [("c", -32000)]
        assert probe.events("call.started") == []


# -- silence


@pytest.mark.parametrize(("transport", "ends"), [("websocket", True), ("stdio", False)])
async def test_a_client_that_never_says_anything(
    transport: str, ends: bool, probe: Probe, autojump_clock: MockClock
) -> None:
    async with slow_pipe(probe, transport=transport) as client:
        began = trio.current_time()
        with trio.move_on_after(10_000):
            await client.gone.wait()
        assert (client.ending is not None) == ends
        if client.ending is not None:
            assert (client.ending.code, client.ending.why) == (1001, "idle")
            assert trio.current_time() - began == pytest.approx(60)


@both_eras
async def test_a_websocket_that_was_heard_is_kept_longer(era: str, probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, era, transport="websocket") as talk:
        await talk.answered(talk.trifle())
        heard = trio.current_time()
        await talk.hear_for(1799)
        await talk.answered(talk.trifle("again"))
        with trio.move_on_after(5000):
            await talk.client.rest()
        assert talk.client.ending is not None
        assert talk.client.ending.why == "idle"
        assert trio.current_time() - heard == pytest.approx(1799 + 1800)


@both_eras
async def test_a_websocket_that_waits_for_an_answer_is_not_idle(era: str, autojump_clock: MockClock) -> None:
    async with running(session_idle_s=10) as probe, talking(probe, era, transport="websocket") as talk:
        answer = (await talk.answered(talk.steps(count=10, ms=5000, token=None)))["it"]
        assert answer["result"]["structuredContent"]["done"] is True
        began = trio.current_time()
        await talk.client.rest()
        assert trio.current_time() - began <= 10.1


async def test_a_subscription_keeps_a_websocket(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=10) as probe, talking(probe, "modern", transport="websocket") as talk:
        asked = {"notifications": {"toolsListChanged": True}}
        await talk.client.say(talk.request("subscriptions/listen", asked, id="ear"))
        assert [one["method"] for one in await talk.hear_for(1000)] == [ACKNOWLEDGED]
        assert talk.client.ending is None


# -- before `initialize`


async def test_initialize_that_fails_may_be_tried_again(probe: Probe) -> None:
    async with slow_pipe(probe) as client:
        with pytest.raises(RpcError) as caught:
            await client.call(client.legacy("initialize", {"protocolVersion": "2025-11-25"}))
        assert caught.value.code == -32602
        await client.initialize()
        assert len(probe.events("session.opened")) == 1


async def test_notifications_before_initialize_are_recorded_and_not_answered(probe: Probe) -> None:
    async with slow_pipe(probe) as client:
        for method in ("notifications/initialized", "notifications/cancelled", "notifications/no_such_thing"):
            await client.notify(method, {})
        await client.say({"jsonrpc": "2.0", "id": 5, "result": {}})
        await client.initialize()
        assert [one["id"] for one in client.heard] == [1]
        assert misuses(probe) == [
            "initialized before initialize",
            "malformed cancellation",
            "unknown notification",
            "answer without a question",
        ]


# -- the server ends


@both_eras
async def test_a_server_that_stops_finishes_what_runs_and_refuses_what_comes(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as talk, trio.open_nursery() as nursery:
        await talk.client.say(talk.steps(count=3))
        await talk.hear_for(1.5)
        nursery.start_soon(probe.engine.drain)
        await settle()
        await talk.client.say(talk.trifle())
        refusal = await talk.client.hear()
        assert (refusal["id"], refusal["error"]["code"]) == ("trifle", -32000 if era == "legacy" else 1002)
        assert [one.get("id") for one in await talk.client.rest()] == [None, None, "it"]
        assert talk.client.ending is not None
        assert (talk.client.ending.code, talk.client.ending.why) == (1001, "the server is shutting down")
    assert outcome(probe)[0] == "completed"
    assert engine_tasks() == SERVICES


@both_eras
async def test_what_takes_longer_than_the_grace_period_is_told_why(era: str, autojump_clock: MockClock) -> None:
    async with running(grace_s=5) as probe, talking(probe, era) as talk:
        await talk.client.say(talk.steps(count=100))
        await talk.hear_for(1.5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(probe.engine.drain)
            heard = await talk.client.rest()
        assert "shutting down" in heard[-1]["error"]["message"]
        assert heard[-1]["id"] == "it"
        assert outcome(probe)[:2] == ("cancelled", "shutdown")


async def test_initialize_is_refused_while_the_server_stops(probe: Probe, autojump_clock: MockClock) -> None:
    async with talking(probe, "modern") as busy, slow_pipe(probe) as client, trio.open_nursery() as nursery:
        await busy.client.say(busy.steps(count=2))
        await busy.hear_for(0.5)
        nursery.start_soon(probe.engine.drain)
        await settle()
        await client.say(client.legacy("initialize", {}, id=1))
        answer = await client.hear()
        assert (answer["id"], answer["error"]["code"]) == (1, -32000)
        await busy.client.rest()


@both_eras
async def test_a_client_that_reads_nothing_does_not_keep_a_server_that_stops(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with talking(probe, era) as talk:
        await talk.client.say(talk.request("tools/list", id="it"))
        await settle()
        await probe.engine.drain()
        with trio.fail_after(2.5):
            await talk.client.gone.wait()


@both_eras
async def test_an_engine_that_is_torn_down_takes_its_connections_with_it(era: str, autojump_clock: MockClock) -> None:
    async with running() as probe, trio.open_nursery() as nursery:

        async def converse() -> None:
            async with talking(probe, era, selection="all") as talk:
                await talk.client.say(talk.steps())
                await talk.hear_for(LONG_S)

        nursery.start_soon(converse)
        await trio.sleep(1.5)
        nursery.cancel_scope.cancel()
    (closed,) = probe.events("connection.closed")
    assert closed["by"] == "the server stopped"
