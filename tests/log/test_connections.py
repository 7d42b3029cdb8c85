"""What is seen of connections that carry everything, and of streams that outlive them, in real runs."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.pipes import MARK, STREAMS, Pipe, pipe
from ..support.probe import Probe, running
from ..support.shown import as_value, newest
from ..support.views import Evidence

STEPS = {"steps": 3, "step_ms": 1000}
PROGRESS: dict[str, Any] = {"name": "progress", "arguments": STEPS, "_meta": {"progressToken": 0}}


def rows(probe: Probe, table: Any) -> list[dict[str, Any]]:
    probe.engine.observer.catch_up()
    tables = probe.engine.observer.tables
    return [json.loads(row) for row in tables.rows(table, tables.all(table))]


def evidence(probe: Probe, call: str) -> list[dict[str, Any]]:
    probe.engine.observer.catch_up()
    assert Evidence(probe.engine.observer.views).complete(call)
    return [as_value(probe.engine.log.entry(seq)) for seq in Evidence(probe.engine.observer.views).of(call)]


def kinds(entries: list[dict[str, Any]]) -> list[str]:
    return [" ".join(filter(None, (entry["kind"], entry.get("method")))) for entry in entries]


def stream_of(client: Pipe) -> tuple[str, str]:
    """The id of the draft stream that the client heard of first, and its secret."""
    (created, *_) = [one for one in client.heard if one.get("method") == "notifications/stream/create"]
    return created["params"]["stream"]["streamId"], created["params"]["_meta"][MARK]["secret"]


async def declared(client: Pipe) -> None:
    await client.initialize(capabilities=STREAMS)


def stray(probe: Probe, call: str) -> list[dict[str, Any]]:
    """Entries of its evidence that name another tool call, or the request id of one."""
    records = newest(probe.engine.records, 50)
    others = {record.call for record in records if record.call != call}
    ids = {(record.request_id, type(record.request_id)) for record in records if record.call != call}
    return [
        entry
        for entry in evidence(probe, call)
        if entry.get("call") in others or {(id, type(id)) for id in (entry.get("id"), entry.get("about"))} & ids
    ]


async def test_the_transport_of_sessions_clients_and_calls(probe: Probe, autojump_clock: MockClock) -> None:
    await (await probe.client()).tool("fail")
    async with pipe(probe.engine, transport="websocket") as client:
        await client.initialize()
        await client.call(client.legacy("tools/call", {"name": "fail", "arguments": {}}))
    async with pipe(probe.engine) as client:
        await client.call(client.modern("tools/call", {"name": "fail", "arguments": {}}))
    assert [(row["era"], row["transport"]) for row in rows(probe, "sessions")] == [
        ("legacy", "http"), ("legacy", "websocket"), ("modern", "stdio")
    ]  # fmt: skip
    assert [row["transport"] for row in rows(probe, "calls")] == ["http", "websocket", "stdio"]
    labels = [(event["connection"], event["transport"]) for event in probe.events("connection.opened")]
    assert [(label[0], transport) for label, transport in labels] == [("w", "websocket"), ("i", "stdio")]
    assert [event["connection"] for event in probe.events("connection.closed")] == [label for label, _ in labels]
    said = {event["connection"] for event in probe.events("message.received")}
    assert said == {None, *(label for label, _ in labels)}


async def test_a_connection_reads_the_stream_of_its_session(probe: Probe, autojump_clock: MockClock) -> None:
    async with pipe(probe.engine) as first, pipe(probe.engine, transport="websocket", ids=count(100)) as second:
        await first.initialize()
        await second.initialize()
        mine, others = (row for row in rows(probe, "streams") if row["purpose"] == "standalone")
        assert [row["connected"] for row in (mine, others)] == [True, True]
        assert [row["connection"][0] for row in (mine, others)] == ["i", "w"]
        await first.drop()
        await wait_all_tasks_blocked()
        mine, others = (row for row in rows(probe, "streams") if row["purpose"] == "standalone")
        assert [row["connected"] for row in (mine, others)] == [False, True]


async def test_calls_on_one_connection_do_not_mix(probe: Probe, autojump_clock: MockClock) -> None:
    """Messages, deliveries and cancellations each belong to one; the end of the connection to whom it ended."""
    async with pipe(probe.engine) as client:
        await client.initialize()
        for id in (5, "5", 6):
            await client.say(client.legacy("tools/call", PROGRESS, id))
        await client.hear_until(lambda message: message.get("method") == "notifications/progress")
        await client.cancel("5")
        await client.call(client.legacy("ping"))
        await client.result_of(5)
        await client.say(client.legacy("tools/call", {**PROGRESS, "arguments": {"steps": 99, "step_ms": 1000}}, 7))
        await trio.sleep(1.5)
        await client.drop()
        await wait_all_tasks_blocked()
    by_id = {record.request_id: record.call for record in newest(probe.engine.records, 9)}
    for id, call in by_id.items():
        mine = evidence(probe, call)
        assert stray(probe, call) == []
        ids = {(entry["id"], type(entry["id"])) for entry in mine if entry.get("id") is not None}
        assert ids <= {(id, type(id))}
        emitted = {(entry["stream"], entry["position"]) for entry in mine if entry["kind"] == "message.emitted"}
        for entry in mine:
            if entry["kind"] == "message.delivered":
                assert (entry["stream"], entry["first"]) in emitted
        assert ("message.received notifications/cancelled" in kinds(mine)) == (id == "5")
        assert ("connection.closed" in kinds(mine)) == (id == 7)
    assert [row["connected"] for row in rows(probe, "streams")] == [False] * len(rows(probe, "streams"))


async def test_modern_calls_on_one_connection(probe: Probe, autojump_clock: MockClock) -> None:
    async with pipe(probe.engine) as client:
        for id in (1, 2):
            await client.say(client.modern("tools/call", PROGRESS, meta={"progressToken": id}, id=id))
        await trio.sleep(1.5)
        await client.cancel(2)
        await client.result_of(1)
    one, two = (kinds(evidence(probe, call)) for call in ("c1", "c2"))
    assert "message.received notifications/cancelled" in two
    assert "message.received notifications/cancelled" not in one
    assert one.count("message.emitted notifications/progress") == 3
    assert (stray(probe, "c1"), stray(probe, "c2")) == ([], [])


async def test_a_draft_stream_that_is_read_on_by_another_connection(probe: Probe, autojump_clock: MockClock) -> None:
    async with pipe(probe.engine, transport="websocket") as first:
        await declared(first)
        await first.say(first.legacy("tools/call", PROGRESS, 1))
        await first.say(first.legacy("tools/call", PROGRESS, 2))
        await trio.sleep(0.5)
        await first.hear_until(lambda message: message.get("method") == "notifications/stream/create")
        id, secret = stream_of(first)
        await first.drop()
        await wait_all_tasks_blocked()
    (row, *_) = [row for row in rows(probe, "streams") if row["purpose"] == "resumable"]
    assert (row["connected"], row["reader"], row["status"]) == (False, None, "live")
    await trio.sleep(10)
    (row, *_) = [row for row in rows(probe, "streams") if row["purpose"] == "resumable"]
    assert (row["status"], row["waiting"] > 0, row["resumed"]) == ("completed", True, 0)
    proof = {"streamId": id, "_meta": {MARK: {"secret": secret}}}
    async with pipe(probe.engine, transport="websocket", ids=count(100)) as second:
        await declared(second)
        await second.call(second.legacy("stream/poll", proof, "poll"))
        result = await second.call(second.legacy("stream/resume", proof, "resume"))
        assert result["status"] == "completed"
        await wait_all_tasks_blocked()
        (row, other) = [row for row in rows(probe, "streams") if row["purpose"] == "resumable"]
        assert (row["status"], row["waiting"], row["resumed"]) == ("completed", 0, 1)
        assert (row["connected"], row["connection"]) == (False, None)
        assert (other["resumed"], other["waiting"] > 0) == (0, True)
    told = kinds(evidence(probe, "c1"))
    began = [kind for kind in told if kind != "client.misuse"]
    assert began[:3] == ["message.received tools/call", "stream.opened", "message.emitted notifications/stream/create"]
    for kind in (
        *("connection.closed", "message.received stream/poll", "message.received stream/resume", "stream.resumed"),
        "message.emitted notifications/stream/end",
    ):
        assert told.count(kind) == 1, kind
    ended = [(entry["session"], entry["stream"]) for entry in evidence(probe, "c1") if entry["kind"] == "stream.ended"]
    assert ended.count((row["session"], row["stream"])) == 1
    assert told.index("connection.closed") < told.index("stream.resumed")
    assert not {"stream.resumed", "message.received stream/poll"} & {*kinds(evidence(probe, "c2"))}
    assert (stray(probe, "c1"), stray(probe, "c2")) == ([], [])


async def test_a_draft_stream_that_nobody_came_back_for(autojump_clock: MockClock) -> None:
    async with running(stream_max_s=10, stream_min_s=1) as probe:
        async with pipe(probe.engine) as client:
            await declared(client)
            arguments = {"steps": 50, "step_ms": 1000}
            await client.say(client.legacy("tools/call", {**PROGRESS, "arguments": arguments}, 1))
            await trio.sleep(1)
        await trio.sleep(20)
        (row,) = [row for row in rows(probe, "streams") if row["purpose"] == "resumable"]
        assert (row["status"], row["lost"], row["waiting"]) == ("lost", "abandoned", 0)
        told = kinds(evidence(probe, "c1"))
    assert [told.count(kind) for kind in ("connection.closed", "stream.lost", "call.cancelled", "call.settled")] == [
        1, 1, 1, 1
    ]  # fmt: skip


async def test_a_question_of_a_draft_stream_is_paired_on_whatever_connection(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with pipe(probe.engine) as first:
        await declared(first)
        await first.say(first.legacy("tools/call", {"name": "elicit_simple_form", "arguments": {}}, 1))
        (*_, asked) = await first.hear_until(lambda message: message.get("method") == "elicitation/create")
        id, secret = stream_of(first)
    await trio.sleep(6)
    async with pipe(probe.engine, ids=count(100)) as second:
        await declared(second)
        proof = {"streamId": id, "_meta": {MARK: {"secret": secret, "received": 0}}}
        await second.say(second.legacy("stream/resume", proof, "resume"))
        await second.hear_until(lambda message: message.get("method") == "elicitation/create")
        await second.answer(asked["id"], {"action": "decline"})
        await second.result_of("resume")
    (question,) = [event for event in probe.events("message.emitted") if event["method"] == "elicitation/create"]
    (answer,) = [event for event in probe.events("message.received") if event["rpc"] == "response"]
    assert answer["cause"] == question["seq"]
    assert answer["seq"] in [entry["seq"] for entry in evidence(probe, "c1")]
