"""Sessions: their ids, their end by DELETE or idleness, and the limits of each and of all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.cli.parts import new_id
from probe.engine.legacy.dispatch import Answered

from ..support.http import exchange
from ..support.inside import receive
from ..support.legacy import HEADERS, Legacy, RpcError
from ..support.probe import Probe, running
from ..support.schemas import schema

SLOW = {"name": "simple_tool", "arguments": {"delayMs": 5000}}


async def status(client: Legacy, method: str) -> int:
    """What a request with the client's session id gets; the body is a ping."""
    body = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}' if method == "POST" else b""
    async with exchange(client.app, method, client.target, client.headers, body) as answer:
        return answer.status


# Ids.


@pytest.mark.proves("2025-11-25/transports/27", "2025-11-25/transports/28")
def test_a_session_id_is_visible_ascii_and_unguessable() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(id) >= 43 and all("\x21" <= letter <= "\x7e" for letter in id) for id in ids)


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


async def test_two_sessions_share_nothing(probe: Probe) -> None:
    one, other = await probe.client(), await probe.client()
    task = (await one.tool("pure_task", task={}))["task"]["taskId"]
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        with pytest.raises(RpcError, match="Task not found") as caught:
            await other.call(method, {"taskId": task})
        assert caught.value.code == -32602
    assert (await other.call("tasks/list"))["tasks"] == []
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


async def test_delete_ends_the_streams_and_the_work_of_its_session(probe: Probe) -> None:
    client = await probe.client()
    with trio.fail_after(5):
        async with client.post(client.request("tools/call", SLOW, "it")) as answer, client.get() as standalone:
            assert await client.delete() == 204
            assert await client.read(answer) == []
            assert await client.read(standalone) == []
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("cancelled", "session_end", False)


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


async def test_beyond_the_limit_of_subscriptions_one_is_refused_until_another_has_ended() -> None:
    async with running(max_subscriptions=2) as probe:
        client = await probe.client()
        await client.call("resources/subscribe", {"uri": "test://static-text"})
        await client.call("resources/subscribe", {"uri": "test://static-binary"})
        await client.call("resources/subscribe", {"uri": "test://static-binary"})
        with pytest.raises(RpcError, match="max_subscriptions is 2") as caught:
            await client.call("resources/subscribe", {"uri": "test://watched-resource"})
        assert caught.value.code == -32000
        await client.call("resources/unsubscribe", {"uri": "test://static-text"})
        await client.call("resources/subscribe", {"uri": "test://watched-resource"})


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
            assert isinstance(answer, Answered)
            codes.append(json.loads(answer.messages[0].body).get("error", {}).get("code"))
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
