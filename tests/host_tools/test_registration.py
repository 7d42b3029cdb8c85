"""A host gives its name and its tools, changes them, comes back, and goes: whose the name is at each moment."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.host_tools.connection import HostConnection
from probe.log.context import Recorder
from probe.wire.jsonrpc import encode

from ..support.hosts import ECHO, PLAIN, SECRET, Host, calling, connected, hosting
from ..support.probe import Probe, running

OTHER = "instance-of-another-host"


async def names(probe: Probe) -> list[str]:
    return [tool["name"] for tool in (await probe.modern(tools="hosts").call("tools/list"))["tools"]]


async def test_a_registration_is_answered_with_the_names_and_the_limits(
    probe: Probe, autojump_clock: MockClock
) -> None:
    async with connected(probe.app) as host:
        assert await names(probe) == []
        params = {**host.registration(), "version": "1.4.0", "library": "by-hand/1", "unknown": "member"}
        answer = await host.ask("host.register", params)
        assert answer["result"] == {
            "protocol": "1.1",
            "host": "demo",
            "tools": ["demo__echo", "demo__plain"],
            "limits": {"dispatches": 25, "messageBytes": 4 * 1024 * 1024, "tools": 100},
        }
        assert await names(probe) == ["demo__echo", "demo__plain"]
    (event,) = probe.events("host.registered")
    facts = {name: event[name] for name in ("host", "version", "library", "tools", "replaced")}
    assert facts == {
        "host": "demo",
        "version": "1.4.0",
        "library": "by-hand/1",
        "tools": ["demo__echo", "demo__plain"],
        "replaced": None,
    }
    assert await names(probe) == [], "with the host its tools have gone"


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": None}, "params.name"),
    "an empty name": ({"name": ""}, "params.name"),
    "a name that begins with a hyphen": ({"name": "-demo"}, "params.name"),
    "a name with the separator": ({"name": "a__b"}, "params.name"),
    "a name with other letters": ({"name": "dämon"}, "params.name"),
    "a name on two lines": ({"name": "demo\n"}, "params.name"),
    "a long name": ({"name": "x" * 33}, "params.name"),
    "no instance": ({"instance": None}, "params.instance"),
    "a short instance": ({"instance": "x" * 15}, "params.instance"),
    "a long instance": ({"instance": "x" * 129}, "params.instance"),
    "no tools": ({"tools": None}, "params.tools"),
    "tools by name": ({"tools": {"echo": ECHO}}, "params.tools"),
    "a tool that is none": ({"tools": [ECHO, 5]}, "params.tools.1"),
    "a tool without schema": ({"tools": [{"name": "echo"}]}, "params.tools.0.inputSchema"),
    "a tool with a bad name": ({"tools": [{**ECHO, "name": "ec ho"}]}, "params.tools.0.name"),
    "a tool without a name": ({"tools": [{**ECHO, "name": ""}]}, "params.tools.0.name"),
    "a tool with a long name": ({"tools": [{**ECHO, "name": "x" * 91}]}, "params.tools.0.name"),
    "a short deadline": ({"tools": [{**ECHO, "idleMs": 99}]}, "params.tools.0.idleMs"),
    "a long deadline": ({"tools": [{**ECHO, "ceilingMs": 3_600_001}]}, "params.tools.0.ceilingMs"),
    "a deadline of text": ({"tools": [{**ECHO, "idleMs": "100"}]}, "params.tools.0.idleMs"),
    "a hint of text": ({"tools": [{**ECHO, "annotations": {"readOnlyHint": "yes"}}]}, "readOnlyHint"),
    "another major version": ({"protocol": "2.0"}, "params.protocol"),
    "no minor version": ({"protocol": "1"}, "params.protocol"),
    "a version that is a number": ({"protocol": 1.1}, "params.protocol"),
    "a tool twice": ({"tools": [ECHO, PLAIN, ECHO]}, "the tool echo stands twice"),
}


@pytest.mark.parametrize("name", INVALID)
async def test_a_registration_is_refused_whole_and_may_be_tried_again(
    probe: Probe, name: str, autojump_clock: MockClock
) -> None:
    replaced, said = INVALID[name]
    async with connected(probe.app) as host:
        code, message = await host.refused("host.register", {**host.registration(), **replaced})
        assert code == -32602
        assert said in message
        assert await names(probe) == []
        assert [event["what"] for event in probe.events("host.misuse")] == ["host.register refused"]
        await host.register()
        assert await names(probe) == ["demo__echo", "demo__plain"]


async def test_the_edges_of_names_and_deadlines_are_within(probe: Probe, autojump_clock: MockClock) -> None:
    async with connected(probe.app, "x" * 16) as host, connected(probe.app, "y" * 128) as other:
        edge = {**ECHO, "name": "x" * 90, "idleMs": 100, "ceilingMs": 3_600_000}
        await host.register("h" * 32, [edge, {**PLAIN, "name": "a.B_c-9"}])
        await other.register("0")
        assert await names(probe) == ["0__echo", "0__plain", "h" * 32 + "__" + "x" * 90, "h" * 32 + "__a.B_c-9"]


async def test_a_host_of_a_newer_minor_version_is_understood(probe: Probe, autojump_clock: MockClock) -> None:
    async with connected(probe.app) as host:
        icon = {"src": "https://example.org/a.png", "shape": "round"}
        newer = {**ECHO, "icons": [icon], "colour": "red", "annotations": {"readOnlyHint": True, "weight": 7}}
        params = {**host.registration(tools=[newer]), "protocol": "1.12", "mood": {"level": 9}}
        answer = await host.ask("host.register", params)
        assert answer["result"]["protocol"] == "1.1"
        (shown,) = (await probe.modern(tools="hosts").call("tools/list"))["tools"]
        assert shown["icons"] == [{"src": "https://example.org/a.png"}]
        assert shown["annotations"] == {"readOnlyHint": True}
        assert "colour" not in shown


async def test_a_host_may_have_no_tools_yet(probe: Probe, autojump_clock: MockClock) -> None:
    async with connected(probe.app) as host:
        assert (await host.register(tools=[]))["tools"] == []
        assert (await host.update(PLAIN))["tools"] == ["demo__plain"]
        assert await names(probe) == ["demo__plain"]


async def test_whoever_asks_out_of_turn_is_told_so(probe: Probe, autojump_clock: MockClock) -> None:
    async with connected(probe.app) as host:
        assert (await host.refused("host.update", {"tools": []}))[0] == 12
        assert (await host.ask("ping"))["result"] == {}
        await host.register()
        code, message = await host.refused("host.register", {**host.registration("other"), "instance": OTHER})
        assert (code, message) == (12, "host.register: this connection has registered already")
        assert await names(probe) == ["demo__echo", "demo__plain"]
        await host.update(ECHO)


async def test_an_update_replaces_all_tools_or_nothing(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    result = await host.update({**PLAIN, "name": "other"}, ECHO)
    assert result["tools"] == ["demo__other", "demo__echo"]
    assert await names(probe) == ["demo__other", "demo__echo"]
    bad = {"name": "bad", "inputSchema": {"type": "array"}}
    code, message = await host.refused("host.update", {"tools": [PLAIN, bad]})
    assert (code, "the inputSchema of bad" in message) == (-32602, True)
    assert await names(probe) == ["demo__other", "demo__echo"]
    assert [event["tools"] for event in probe.events("host.updated")] == [["demo__other", "demo__echo"]]


async def test_a_call_of_a_tool_that_is_no_more_goes_on(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    client = probe.modern(tools="hosts")
    async with calling(client, "demo__echo", {"word": "a"}) as call:
        dispatch, _ = await host.dispatched()
        await host.update({**ECHO, "outputSchema": {"type": "object", "maxProperties": 0}})
        await host.answer(dispatch, output={"word": "a"})
    assert call.result["structuredContent"] == {"word": "a"}, "judged by the schema that it was called with"
    async with calling(client, "demo__echo", {"word": "a"}) as call:
        await host.answer((await host.dispatched())[0], output={"word": "a"})
    assert call.failure["code"] == "invalid_output"


@pytest.mark.parametrize("before", [False, True])
async def test_who_does_not_register_in_time_is_cut_off(before: bool, autojump_clock: MockClock) -> None:
    async with running(toolhost_secret=SECRET, toolhost_register_s=2.5) as probe, connected(probe.app) as host:
        if before:
            await host.refused("host.register", {})
        await trio.sleep(2.4)
        assert await host.hear_all() == []
        assert host.closed is None
        await trio.sleep(0.2)
        assert await host.hear_close() == (1008, "not registered within 2.5 s")
    (closed,) = probe.events("host.closed")
    assert (closed["host"], closed["code"], closed["by"]) == (None, 1008, "not registered within 2.5 s")


async def test_who_has_registered_may_be_silent_for_ever(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    await trio.sleep(10_000)
    assert (await host.ask("ping"))["result"] == {}


async def test_two_hosts_are_two(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app, OTHER) as other:
        await other.register("another", [PLAIN])
        assert await names(probe) == ["another__plain", "demo__echo", "demo__plain"]
        client = probe.modern(tools="hosts")
        async with calling(client, "another__plain") as one, calling(client, "demo__plain") as two:
            # Each connection counts its own dispatches.
            assert (await other.dispatched())[0] == (await host.dispatched())[0] == "d1"
            await other.answer("d1", text="another")
            await host.answer("d1", text="demo")
        assert [call.result["content"][0]["text"] for call in (one, two)] == ["another", "demo"]
        await other.go()
        await wait_all_tasks_blocked()
        assert await names(probe) == ["demo__echo", "demo__plain"]


async def test_a_name_that_is_taken_is_refused_and_its_owner_untouched(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app, OTHER) as other:
        async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
            dispatch, _ = await host.dispatched()
            code, message = await other.refused("host.register", other.registration(tools=[PLAIN]))
            assert (code, message) == (10, "The name demo is taken by another host that is connected")
            assert await names(probe) == ["demo__echo", "demo__plain"]
            # The name is one of its own, as upper and lower case differ.
            await other.register("Demo", [PLAIN])
            await host.answer(dispatch, text="done")
        assert call.result["content"][0]["text"] == "done"
        assert await names(probe) == ["Demo__plain", "demo__echo", "demo__plain"]
        assert host.closed is None


async def test_a_name_is_free_when_its_host_has_gone(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app, OTHER) as other:
        await host.go()
        await wait_all_tasks_blocked()
        await other.register("demo", [PLAIN])
        assert await names(probe) == ["demo__plain"]


async def test_a_host_that_comes_back_takes_over_from_its_older_connection(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app) as again:
        client = probe.modern(tools="hosts")
        async with calling(client, "demo__plain", token="t") as call:
            began = trio.current_time()
            dispatch, _ = await host.dispatched()
            await host.progress(dispatch, 3, total=9)
            await wait_all_tasks_blocked()
            await again.register("demo", [PLAIN])
        assert trio.current_time() == began
        assert call.failure == {
            "message": "The tool host demo has gone (replaced by a newer connection of this host); "
            "the call was not finished",
            "code": "host_gone",
            "retryable": True,
            "progress": 3,
            "total": 9,
            "host": "demo",
            "dispatch": dispatch,
        }
        assert await host.hear_close() == (1008, "replaced by a newer connection of this host")
        assert await names(probe) == ["demo__plain"]
        async with calling(client, "demo__plain"):
            await again.answer((await again.dispatched())[0], text="done")
        (closed,) = probe.events("host.closed")
        first, second = probe.events("host.registered")
        assert (second["replaced"], closed["connection"]) == (first["connection"], first["connection"])
        assert (closed["code"], closed["failed"]) == (1008, 1)
        await again.go()
        await wait_all_tasks_blocked()
        assert await names(probe) == []


class Wire:
    """A wire whose messages are read in the very step in which they come."""

    def __init__(self) -> None:
        self.said, self._read = trio.open_memory_channel[dict[str, Any]](10)
        self.heard: list[dict[str, Any]] = []

    async def receive(self) -> bytes | None:
        async for message in self._read:
            return encode({"jsonrpc": "2.0", **message})
        return None

    async def send(self, message: bytes) -> None:
        self.heard.append(json.loads(message))


SAID: dict[str, tuple[dict[str, Any], set[str | None]]] = {
    # what the older connection says of its dispatch, and what the call may come to
    "progress": ({"method": "tool.progress", "params": {"dispatch": "d1", "progress": 1}}, {"host_gone"}),
    "an answer": ({"id": "d1", "result": {"text": "done"}}, {"host_gone", None}),
    "garbage": ({"id": "d1", "result": 5}, {"host_gone", "invalid_output"}),
    "an update": ({"id": 2, "method": "host.update", "params": {"tools": []}}, {"host_gone"}),
}


@pytest.mark.parametrize("name", SAID)
async def test_what_the_older_connection_says_in_that_moment_is_for_nobody(
    probe: Probe, name: str, autojump_clock: MockClock
) -> None:
    said, expected = SAID[name]
    register = {"id": 1, "method": "host.register", "params": {"name": "demo", "instance": OTHER, "tools": [PLAIN]}}
    outcomes: set[str | None] = set()
    # Which of the two is heard first is chance.
    for _ in range(20):
        older, newer = Wire(), Wire()
        recorder = Recorder(probe.engine.log)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(HostConnection(probe.engine, recorder.bind(exchange=1), "older").serve, older)
            await older.said.send(register)
            await wait_all_tasks_blocked()
            async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
                await wait_all_tasks_blocked()
                nursery.start_soon(HostConnection(probe.engine, recorder.bind(exchange=2), "newer").serve, newer)
                await wait_all_tasks_blocked()
                older.said.send_nowait(said)
                newer.said.send_nowait(register)
            outcomes.add(call.failure["code"] if call.result.get("isError") else None)
            await wait_all_tasks_blocked()
            assert newer.heard[0]["result"]["host"] == "demo"
            assert await names(probe) == ["demo__plain"]
            newer.said.close()
    assert outcomes == expected


@pytest.mark.parametrize("code", [1000, 1001, 1006])
async def test_with_the_host_its_calls_fail_at_once(code: int, autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host):
        client, legacy = probe.modern(tools="hosts"), await probe.client(tools="hosts")
        async with calling(client, "demo__plain") as one, calling(legacy, "demo__echo", token="t") as two:
            began = trio.current_time()
            await host.dispatched()
            await host.dispatched()
            await host.go(code)
        assert trio.current_time() == began
        for call in (one, two):
            assert call.failure["message"].startswith("The tool host demo has gone (its connection ended)")
            assert (call.failure["code"], call.failure["retryable"]) == ("host_gone", True)
        (closed,) = probe.events("host.closed")
        facts = {name: closed[name] for name in ("host", "code", "by", "failed", "late")}
        assert facts == {"host": "demo", "code": code, "by": "client", "failed": 2, "late": 0}
        assert probe.events("dispatch.cancelled", "dispatch.stopped") == []
        result = await legacy.call("tools/list")
        assert result["tools"] == []


async def test_what_was_cancelled_and_still_runs_ends_with_its_host(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host):
        async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
            await host.dispatched()
            call.leave()
            await host.cancelled()
        await trio.sleep(3)
        await host.go()
        await wait_all_tasks_blocked()
        stopped = [(event["how"], event["after_ms"]) for event in probe.events("dispatch.stopped")]
        assert stopped == [("host_gone", 3000)]
        assert probe.events("host.closed")[0]["failed"] == 0


async def test_a_binary_frame_ends_the_connection(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host):
        async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
            await host.dispatched()
            await host.to_server.send({"type": "websocket.receive", "text": None, "bytes": b"{}"})
        assert call.failure["code"] == "host_gone"
        assert await host.hear_close() == (1003, "a binary frame; messages are text")
        (closed,) = probe.events("host.closed")
        assert (closed["code"], closed["by"]) == (1003, "a binary frame; messages are text")


async def test_more_tools_than_may_be_are_refused_whole(autojump_clock: MockClock) -> None:
    async with hosting(max_host_tools=3) as (probe, host):
        many = [{**PLAIN, "name": f"tool{number}"} for number in range(4)]
        refused = await host.refused("host.update", {"tools": many})
        assert refused == (11, "4 tools, at most 3 are allowed (max_host_tools)")
        assert await names(probe) == ["demo__echo", "demo__plain"]
        (limit,) = probe.events("limit.reached")
        assert (limit["limit"], limit["value"]) == ("max_host_tools", 3)
        assert len((await host.update(*many[:3]))["tools"]) == 3
