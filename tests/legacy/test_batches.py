"""JSON-RPC batches: revision 2025-03-26 has them, the later ones do not."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.legacy import Legacy
from ..support.probe import Probe, running
from ..support.schemas import schema
from ..support.shown import newest

REVISION = "2025-03-26"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ROOTS_CHANGED = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}


def slow(client: Legacy, id: Any, seconds: int = 3) -> dict[str, Any]:
    arguments = {"steps": seconds, "step_ms": 1000}
    return client.request(
        "tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": id}}, id
    )


async def refused(client: Legacy, batch: list[Any], part: str, *, status: int = 400, code: int = -32600) -> None:
    async with client.post(batch) as answer:
        message = await answer.json()
        assert (answer.status, message["error"]["code"]) == (status, code)
    schema(client.revision).check_message(message)
    assert part in message["error"]["message"]
    assert await client.call("ping") == {}


async def test_the_answers_of_a_batch_are_an_array_in_the_order_of_the_requests(probe: Probe) -> None:
    """ "An array batching one or more requests and/or notifications"."""
    client = await probe.client(REVISION)
    batch = [
        client.request("ping", id="a"),
        ROOTS_CHANGED,
        client.request("tools/list", id=2),
        client.request("no", id=3),
    ]
    async with client.post(batch) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        messages = await answer.json()
    schema(REVISION).check(messages, "JSONRPCBatchResponse")
    assert [message["id"] for message in messages] == ["a", 2, 3]
    assert client.result(messages[1])["tools"]
    assert messages[2]["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("methods", "delivered"),
    [
        (["ping", "ping"], [(1, 2, None)]),
        (["ping", "ping", "tools/call", "ping"], [(1, 2, None), (3, 3, "c1"), (4, 4, None)]),
        (["tools/call", "tools/call"], [(1, 1, "c1"), (2, 2, "c2")]),
    ],
)
async def test_the_delivery_of_a_batch_is_one_entry_for_each_call_in_turn(
    methods: list[str], delivered: list[tuple[int, int, str | None]], probe: Probe
) -> None:
    client = await probe.client(REVISION)
    before = len(probe.events("message.delivered"))
    params = {"ping": None, "tools/call": {"name": "no such tool"}}
    async with client.post([client.request(name, params[name], id) for id, name in enumerate(methods)]) as answer:
        assert len(await answer.json()) == len(methods)
    facts = probe.events("message.delivered")[before:]
    assert [(fact["first"], fact["last"], fact["call"]) for fact in facts] == delivered


async def test_a_batch_of_one_request_is_answered_by_an_array_of_one(probe: Probe) -> None:
    client = await probe.client(REVISION)
    async with client.post([client.request("ping", id=1)]) as answer:
        assert await answer.json() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize(
    "batch",
    [
        [INITIALIZED, ROOTS_CHANGED],
        [{"jsonrpc": "2.0", "id": 7, "result": {}}, {"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": ""}}],
    ],
)
async def test_a_batch_without_requests_is_accepted(batch: list[Any], probe: Probe) -> None:
    """ "If the input consists solely of (any number of) JSON-RPC responses or notifications": 202 and no body."""
    client = await probe.client(REVISION)
    async with client.post(batch) as answer:
        assert (answer.status, await answer.body()) == (202, b"")


async def test_a_batch_with_a_call_that_takes_time_gets_a_stream_with_every_response(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """ "The SSE stream SHOULD eventually include one JSON-RPC response per each JSON-RPC request"."""
    client = await probe.client(REVISION)
    with trio.fail_after(30):
        async with client.post(
            [slow(client, "long", 5), client.request("ping", id="now"), slow(client, "short")]
        ) as answer:
            assert answer.headers["content-type"] == "text/event-stream"
            messages = [event.message for event in await client.read(answer)]
    responses = [message["id"] for message in messages if "method" not in message]
    assert responses == ["now", "short", "long"]
    assert messages[-1]["id"] == "long", "the stream ends with the last of them"
    tokens = [note["progressToken"] for note in client.noted("notifications/progress")]
    assert (tokens.count("long"), tokens.count("short")) == (5, 3)


async def test_one_request_of_a_batch_can_be_cancelled_and_the_others_are_answered(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client(REVISION)
    with trio.fail_after(30):
        async with client.post([slow(client, "stop", 9), slow(client, "go", 5)]) as answer:
            await trio.sleep(2.5)
            await client.cancel("stop")
            messages = [event.message for event in await client.read(answer)]
    assert [message["id"] for message in messages if "method" not in message] == ["go"]


async def test_a_batch_can_cancel_what_the_same_batch_asks_for(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(REVISION)
    cancellation = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "it"}}
    with trio.fail_after(30):
        async with client.post([slow(client, "it"), cancellation]) as answer:
            assert await client.read(answer) == []
    assert probe.record()["outcome"] == "cancelled"


async def test_a_batch_on_a_stream_can_be_resumed(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client(REVISION)
    async with client.post([slow(client, "a", 2), slow(client, "b", 4)]) as answer:
        (primed,) = await answer.first(1)
    async with client.get(last_event_id=primed.id) as answer:
        messages = [event.message for event in await client.read(answer)]
    assert [message["id"] for message in messages if "method" not in message] == ["a", "b"]


@pytest.mark.proves("2025-11-25/transports/9")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_the_later_revisions_refuse_every_batch(revision: str, probe: Probe) -> None:
    client = await probe.client(revision)
    for batch in ([], [ROOTS_CHANGED], [client.request("ping")], [client.request("ping"), client.request("ping")]):
        await refused(client, batch, f"revision {revision} has no batches")


async def test_a_batch_needs_a_session(probe: Probe) -> None:
    client = Legacy(probe.app, "/mcp")
    async with client.post([client.request("ping")]) as answer:
        assert answer.status == 400


@pytest.mark.parametrize("alone", [True, False])
async def test_initialize_must_not_be_part_of_a_batch(alone: bool, probe: Probe) -> None:
    """2025-03-26 basic/lifecycle: "The initialize request MUST NOT be part of a JSON-RPC batch"."""
    params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    client = await probe.client(REVISION)
    more = [] if alone else [client.request("ping")]
    await refused(client, [*more, client.request("initialize", params)], "initialize must not be part of a batch")
    stranger = Legacy(probe.app, "/mcp")
    async with stranger.post([stranger.request("initialize", params), *more]) as answer:
        assert answer.status == 400
    assert len(list(probe.engine.sessions)) == 1


@pytest.mark.parametrize("item", [5, None, [], {}, {"jsonrpc": "2.0", "id": None, "method": "ping"}])
async def test_a_batch_with_an_item_that_is_no_message_is_refused_whole(item: Any, probe: Probe) -> None:
    client = await probe.client(REVISION)
    await refused(client, [client.request("tools/call", {"name": "simple_tool"}), item], "Invalid Request")
    assert newest(probe.engine.records, 1) == [], "nothing of it has run"


async def test_an_empty_batch_is_refused(probe: Probe) -> None:
    """JSON-RPC 2.0, section 6: "an Array with at least one value"."""
    await refused(await probe.client(REVISION), [], "an empty batch")


async def test_a_batch_may_have_50_messages_and_not_more(probe: Probe) -> None:
    client = await probe.client(REVISION)
    async with client.post([client.request("ping") for _ in range(50)]) as answer:
        assert len(await answer.json()) == 50
    await refused(client, [client.request("ping") for _ in range(51)], "more than 50 messages (max_batch)")


async def test_an_id_twice_in_a_batch_is_refused_and_leaves_no_id_taken(probe: Probe) -> None:
    client = await probe.client(REVISION)
    await refused(
        client,
        [client.request("ping", id=1), client.request("ping", id="1"), client.request("ping", id=1)],
        "in flight",
    )
    async with client.post([client.request("ping", id=1), client.request("ping", id="1")]) as answer:
        assert [message["id"] for message in await answer.json()] == [1, "1"]


async def test_a_batch_counts_whole_against_the_requests_in_flight() -> None:
    async with running(max_in_flight=3) as probe:
        client = await probe.client(REVISION)
        await refused(client, [slow(client, id) for id in range(4)], "3 requests in flight", status=429, code=-32000)
        assert newest(probe.engine.records, 1) == [], "nothing of it has run"
        async with client.post([client.request("ping", id=id) for id in range(3)]) as answer:
            assert answer.status == 200


async def test_what_a_batch_is_answered_at_once_fits_the_log_or_is_refused(autojump_clock: MockClock) -> None:
    """Nobody reads the stream before all of it stands there, so what was pushed out would be lost."""
    async with running(replay_bytes=64 * 1024) as probe:
        client = await probe.client(REVISION)
        large = {"name": "long_output", "arguments": {"blocks": 1, "chars": 20_000}}
        huge = {"name": "long_output", "arguments": {"blocks": 2, "chars": 65_536}}
        batch = [
            client.request("tools/call", huge, "huge"),
            *(client.request("tools/call", large, f"large {number}") for number in range(40)),
            client.request("ping", id="ping"),
            slow(client, "slow"),
        ]
        with trio.fail_after(30):
            async with client.post(batch) as answer:
                messages = [event.message for event in await client.read(answer)]
        answers = {message["id"]: message for message in messages if "method" not in message}
        assert answers.keys() == {item["id"] for item in batch}, "every request is answered"
        refused = {id for id, message in answers.items() if message.get("error", {}).get("code") == -32000}
        assert refused == {"huge", *(f"large {number}" for number in range(1, 40))}
        assert "replay_bytes" in answers["huge"]["error"]["message"]
        assert {event["limit"] for event in probe.events("limit.reached")} == {"replay_bytes"}


async def test_without_a_request_that_waits_a_batch_needs_no_log(probe: Probe) -> None:
    client = await probe.client(REVISION)
    call = {"name": "long_output", "arguments": {"blocks": 50, "chars": 65_536}}
    async with client.post([client.request("tools/call", call) for _ in range(3)]) as answer:
        assert ["result" in message for message in await answer.json()] == [True] * 3
