"""Sessions: their ids, their end with all that runs in them, and the limits of each and of all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.calls import LEGACY, outcome, slow
from ..support.http import HalfSent, exchange, messages
from ..support.inside import SERVICES, engine_tasks, receive
from ..support.legacy import HEADERS, Legacy, RpcError
from ..support.probe import Probe, running
from ..support.schemas import schema
from ..support.shown import newest

SLOW = {"name": "simple_tool", "arguments": {"delayMs": 5000}}


async def status(client: Legacy, method: str) -> int:
    """What a request with the client's session id gets; the body is a ping."""
    body = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}' if method == "POST" else b""
    async with exchange(client.app, method, client.target, client.headers, body) as answer:
        return answer.status


# Ids.


async def test_only_the_answer_to_initialize_carries_the_session_id(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("ping")) as answer:
        assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_bogus_session_id_is_404_and_allocates_nothing(method: str, probe: Probe) -> None:
    """ "it MUST respond to requests containing that session ID with HTTP 404 Not Found"."""
    client = Legacy(probe.app, "/mcp")
    for bogus in ("nope", "id-0001-0123456789abcdef", "x" * 10_000):
        client.headers = {**HEADERS, "mcp-session-id": bogus}
        assert await status(client, method) == 404
    assert list(probe.engine.sessions) == []
    assert probe.events("session.opened", "stream.opened", "call.started") == []


async def test_an_initialize_with_a_bogus_session_id_is_404_too(probe: Probe) -> None:
    """ "it MUST start a new session by sending a new InitializeRequest without a session ID attached"."""
    client = Legacy(probe.app, "/mcp")
    client.headers["mcp-session-id"] = "nope"
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    async with client.post(client.request("initialize", params)) as answer:
        assert answer.status == 404
    assert list(probe.engine.sessions) == []


async def test_a_second_initialize_in_a_session_is_an_error_and_changes_nothing(probe: Probe) -> None:
    client = await probe.client("2025-06-18")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    with pytest.raises(RpcError, match="initialized already") as caught:
        await client.call("initialize", params)
    assert caught.value.code == -32600
    (session,) = probe.engine.sessions
    assert session.machine.revision == "2025-06-18"


async def test_two_sessions_have_their_own_log_levels(probe: Probe) -> None:
    one, other = await probe.client(), await probe.client()
    await other.call("logging/setLevel", {"level": "error"})
    await one.tool("test_tool_with_logging")
    assert len(one.noted("notifications/message")) == 3


async def test_a_request_before_initialized_is_served_and_noted_except_ping(probe: Probe) -> None:
    """2025-11-25 basic/lifecycle, Initialization: before it, "The client SHOULD NOT send requests other than pings"."""
    client = Legacy(probe.app, "/mcp")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    async with client.post(client.request("initialize", params)) as answer:
        client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    await client.call("ping")
    assert probe.events("client.misuse") == []
    assert (await client.call("tools/list"))["tools"]
    assert [event["what"] for event in probe.events("client.misuse")] == ["request before notifications/initialized"]
    await client.notify("notifications/initialized")
    await client.notify("notifications/initialized")
    await client.call("tools/list")
    assert len(probe.events("client.misuse")) == 1


# The end.


@pytest.mark.proves("2025-11-25/transports/30")
async def test_delete_ends_a_session_for_good_and_no_other(probe: Probe) -> None:
    client, other = await probe.client(), await probe.client()
    async with exchange(probe.app, "DELETE", "/mcp", client.headers) as answer:
        assert (answer.status, await answer.body()) == (204, b"")
        assert "content-length" not in answer.headers, "RFC 9110 section 8.6: MUST NOT"
    assert [await status(client, method) for method in ("POST", "GET", "DELETE")] == [404, 404, 404]
    assert await other.call("ping") == {}
    assert [(event["session"], event["why"]) for event in probe.events("session.closed")] == [("s1", "deleted")]


async def test_a_delete_that_is_not_complete_ends_nothing(autojump_clock: MockClock) -> None:
    async with running(idle_connection_s=5) as probe:
        client, broken, late = await probe.client(), HalfSent([{"type": "http.disconnect"}]), HalfSent()
        broken.more.set()
        await broken.run(probe.app, "DELETE", "/mcp", client.headers)
        await late.run(probe.app, "DELETE", "/mcp", client.headers)
        assert (broken.statuses, late.statuses) == ([], [408])
        assert await client.call("ping") == {}
        whole = HalfSent([{"type": "http.request", "body": b"defghij", "more_body": False}])
        whole.more.set()
        await whole.run(probe.app, "DELETE", "/mcp", client.headers)
        assert whole.statuses == [204]


@pytest.mark.parametrize("revision", LEGACY)
async def test_delete_cancels_every_request_of_the_session(
    revision: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client, other = await probe.client(revision), await probe.client(revision)
    async with (
        client.post(slow(client)) as answer,
        client.get() as standalone,
        other.post(slow(other, "other")) as kept,
    ):
        await trio.sleep(2.5)
        assert await client.delete() == 204
        assert [message.get("id") for message in messages(await client.read(answer))] == [None, None]
        assert messages(await client.read(standalone)) == []
        assert len(messages(await other.read(kept))) == 11
    assert outcome(probe) == ("cancelled", "session_end", 2, False)
    assert outcome(probe, "other") == ("completed", None, 10, True)
    assert [event["why"] for event in probe.events("session.closed")] == ["deleted"]
    async with client.post(client.request("ping")) as answer:
        assert answer.status == 404


async def test_delete_cancels_every_task_of_the_session(probe: Probe, autojump_clock: MockClock) -> None:
    client, other = await probe.client(), await probe.client()
    mine = (await client.tool("cancellable_task", task={}))["task"]["taskId"]
    kept = (await other.tool("cancellable_task", task={}))["task"]["taskId"]
    async with client.get() as standalone:
        await trio.sleep(2.5)
        await client.delete()
        told = messages(await client.read(standalone))
    assert [message["params"]["status"] for message in told if "status" in message["params"]][-1] == "cancelled"
    assert [task.id for task in probe.engine.tasks.everyone()] == [kept]
    statuses = [(event["status"], event["message"]) for event in probe.events("task.changed") if event["task"] == mine]
    assert statuses[-1] == ("cancelled", "The task was cancelled: deleted")
    assert [(event["task"], event["why"]) for event in probe.events("task.removed")] == [(mine, "deleted")]
    (record,) = [record for record in newest(probe.engine.records, 5) if record.task == mine]
    assert (record.outcome, record.cancelled_by, record.steps_done) == ("cancelled", "session_end", 2)


async def test_delete_ends_the_waiting_for_a_task_without_an_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    named = {"taskId": (await client.tool("cancellable_task", task={}))["task"]["taskId"]}
    async with client.post(client.request("tasks/result", named, "waiting")) as answer:
        await trio.sleep(0.5)
        await client.delete()
        events = messages(await client.read(answer))
    assert [event for event in events if "id" in event] == []


async def test_a_deleted_session_leaves_nothing_behind(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(capabilities={"elicitation": {}, "sampling": {}})
    await client.tool("pausable_task", task={})
    await client.tool("pure_task", task={})
    await client.call("resources/subscribe", {"uri": "test://watched-resource"})
    async with client.post(slow(client)), client.get(), trio.open_nursery() as nursery:
        nursery.start_soon(client.call, "tools/call", {"name": "simple_tool"})
        await trio.sleep(2.5)
        await client.delete()
        await wait_all_tasks_blocked()
        assert engine_tasks() == SERVICES
    assert probe.engine.tasks.everyone() == []
    assert list(probe.engine.sessions) == []


async def test_an_idle_session_ends_and_its_tasks_with_it(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=20.5) as probe:
        client = await probe.client()
        await client.tool("cancellable_task", task={})
        await trio.sleep(20.4)
        assert len(list(probe.engine.sessions)) == 1
        await trio.sleep(0.2)
        assert [event["why"] for event in probe.events("session.closed")] == ["idle"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["cancel_reason"]) == (
            "cancelled",
            "session_end",
            "The task was cancelled: idle",
        )
        assert record["steps_done"] == 20
        assert engine_tasks() == SERVICES
        async with client.post(client.request("ping")) as answer:
            assert answer.status == 404


@pytest.mark.proves("2025-11-25/transports/30")
async def test_an_idle_session_ends_and_a_used_one_does_not(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=60) as probe:
        client = await probe.client()
        for _ in range(3):
            await trio.sleep(59)
            assert await client.call("ping") == {}
        await trio.sleep(61)
        assert await status(client, "POST") == 404
        assert [event["why"] for event in probe.events("session.closed")] == ["idle"]
        assert list(probe.engine.sessions) == []


async def test_a_refused_message_does_not_keep_a_session_alive(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=60) as probe:
        client = await probe.client()
        await trio.sleep(40)
        async with client.post({"jsonrpc": "2.0", "id": None, "method": "ping"}) as answer:
            assert answer.status == 400
        await trio.sleep(21)
        assert await status(client, "POST") == 404


async def test_an_open_stream_keeps_a_session_alive(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=60) as probe:
        client = await probe.client()
        async with client.get() as answer:
            await trio.sleep(500)
            assert await client.call("ping") == {}
            await trio.sleep(500)
            await answer.first(1)
        await trio.sleep(59)
        assert await status(client, "POST") == 200, "the time counts from the end of the stream"
        await trio.sleep(61)
        assert await status(client, "POST") == 404


async def test_a_running_call_keeps_a_session_alive_without_any_connection(autojump_clock: MockClock) -> None:
    async with running(session_idle_s=3) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", SLOW, "it")) as answer:
            await answer.first(1)
        await trio.sleep(4)
        async with client.get(last_event_id="p1-0") as answer:
            (event,) = await client.read(answer)
        assert client.result(event.message)["structuredContent"] == {"message": "Completed after 5000ms"}
        await trio.sleep(4)
        assert await status(client, "POST") == 404


# Limits.


async def initialize(probe: Probe, id: Any = "first") -> tuple[int, dict[str, str], dict[str, Any]]:
    client = Legacy(probe.app, "/mcp")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    async with client.post(client.request("initialize", params, id)) as answer:
        message = await answer.json()
        schema("2025-11-25").check_message(message)
        return answer.status, answer.headers, message


async def test_beyond_the_limit_of_sessions_initialize_is_503_until_one_has_ended() -> None:
    async with running(max_sessions=2) as probe:
        clients = [await probe.client(), await probe.client()]
        status, headers, message = await initialize(probe)
        assert (status, headers["retry-after"], message["id"], message["error"]["code"]) == (503, "60", "first", -32000)
        assert "mcp-session-id" not in headers
        assert [event["limit"] for event in probe.events("limit.reached")] == ["max_sessions"]
        assert await clients[0].call("ping") == {}
        await clients[0].delete()
        await wait_all_tasks_blocked()
        assert (await initialize(probe))[0] == 200


async def test_beyond_the_requests_in_flight_a_session_gets_429_until_one_is_over(autojump_clock: MockClock) -> None:
    async with running(max_in_flight=2) as probe:
        client, other = await probe.client(), await probe.client()
        async with (
            client.post(client.request("tools/call", SLOW)) as one,
            client.post(client.request("tools/call", SLOW)),
        ):
            async with client.post(client.request("ping", id="third")) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (429, "1")
                message = await answer.json()
            schema("2025-11-25").check_message(message)
            assert (message["id"], message["error"]["code"]) == ("third", -32000)
            assert [event["limit"] for event in probe.events("limit.reached")] == ["max_in_flight"]
            await client.notify("notifications/roots/list_changed")
            assert await other.call("ping") == {}
            await client.read(one)
        assert await client.call("ping", id="third") == {}


async def test_toggling_a_subscription_faster_than_its_ticker_ends_is_refused_and_loses_nothing(
    autojump_clock: MockClock,
) -> None:
    """All of it in one turn of the scheduler, through the session's one inbox; the call still finds room there."""
    async with running(max_subscriptions=5, max_in_flight=2) as probe:
        client = await probe.client("2025-03-26")
        (session,) = probe.engine.sessions
        methods = ["resources/subscribe", "resources/unsubscribe"] * 20
        codes = []
        for method in [*methods, "resources/subscribe"]:
            request = client.request(method, {"uri": "test://watched-resource"})
            answer = receive(probe.engine, request)
            assert answer is not None, "it does not wait"
            codes.append(json.loads(answer[0].body).get("error", {}).get("code"))
        assert codes[::2] == [None] * 5 + [-32000] * 16
        assert codes[1::2] == [None] * 20
        assert session.subscriptions == {}
        assert (await client.tool("simple_tool", {"delayMs": 50}))["content"]
        assert (session.machine.in_flight, session.tickers) == (set(), 0)
        await client.call("resources/subscribe", {"uri": "test://watched-resource"})
        await trio.sleep(10)
        assert len(probe.events("message.dropped")) in (3, 4), "it ticks for a client that never listened"


async def test_sessions_that_come_and_go_leave_nothing_behind() -> None:
    async with running(max_sessions=3) as probe:
        for _ in range(50):
            client = await probe.client()
            async with client.get() as standalone, client.post(client.request("tools/call", SLOW)):
                await standalone.first(1)
                await client.delete()
            await wait_all_tasks_blocked()
        assert list(probe.engine.sessions) == []
        assert probe.engine.sessions._sessions == {}
