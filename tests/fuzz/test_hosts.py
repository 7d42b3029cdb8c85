"""A tool host that knows the secret and nothing of manners, beside one that has them, and their clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from ..support.hosts import ECHO, INSTANCE, PLAIN, SECRET, Host, connected
from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.probe import running
from . import fuzzed, tell
from .grammar import almost
from .messages import note, request
from .oracles import check_nothing_left, check_served, quiet

REGISTER = {"name": "wild", "instance": INSTANCE + "-wild", "version": "1", "library": "x", "tools": [ECHO, PLAIN]}
DISPATCH = "DISPATCH"
"""Becomes the id of the latest dispatch, where there is one."""
VALID: list[Any] = [
    request("host.register", REGISTER),
    request("host.register", {**REGISTER, "tools": []}),
    request("host.update", {"tools": [PLAIN]}),
    request("host.update", {"tools": [{**ECHO, "idleMs": 1000, "ceilingMs": 5000, "annotations": {"title": "x"}}]}),
    request("ping"),
    note("tool.progress", {"dispatch": DISPATCH, "progress": 1, "total": 3, "message": "one"}),
    note("tool.progress", {"dispatch": DISPATCH, "progress": 2.5}),
    {"jsonrpc": "2.0", "id": DISPATCH, "result": {"output": {"word": "x"}}},
    {"jsonrpc": "2.0", "id": DISPATCH, "result": {"text": "done"}},
    {"jsonrpc": "2.0", "id": DISPATCH, "error": {"code": 1, "message": "no", "data": {"code": "x", "retryable": True}}},
    {"jsonrpc": "2.0", "id": DISPATCH, "error": {"code": 2, "message": "stopped"}},
]
STEPS = st.lists(st.none() | almost(VALID) | almost(VALID) | st.binary(max_size=20), min_size=8, max_size=24)


@fuzzed(25)
@given(steps=STEPS, registers=st.booleans())
def test_messages_of_a_tool_host(steps: list[bytes | None], registers: bool) -> None:
    tell(host_a_while, steps, registers)


async def host_a_while(steps: Sequence[bytes | None], registers: bool) -> None:
    """None: a client calls the tool. Each call of it ends, and so does each of a good host meanwhile."""
    with quiet():
        async with running(toolhost_secret=SECRET, toolhost_linger_s=5) as probe:
            services = engine_tasks()
            witness, modern = await probe.client(), probe.modern()
            async with trio.open_nursery() as nursery, connected(probe.app) as good:
                await good.register("good")
                nursery.start_soon(answer_all, good)
                async with connected(probe.app) as wild, trio.open_nursery() as calls:
                    dispatches: list[str] = []
                    calls.start_soon(hear, wild, dispatches)
                    if registers:
                        await wild.say(VALID[0])
                    for step in steps:
                        await take(wild, step, dispatches, witness, calls)
                    await check_served(witness, modern)
                    assert (await witness.tool("good__plain"))["content"] == [{"type": "text", "text": "fine"}]
                    await wild.go()
                nursery.cancel_scope.cancel()
            await check_nothing_left(probe, services)


async def take(wild: Host, step: bytes | None, dispatches: list[str], client: Legacy, calls: trio.Nursery) -> None:
    if step is None:
        calls.start_soon(call, client)
        return
    latest = dispatches[-1] if dispatches else "none"
    await wild.say_text(step.decode("utf-8", "replace").replace(DISPATCH, latest))


async def call(client: Legacy) -> None:
    """One call of a tool that may be there or not: it has an answer, sooner or later."""
    message = client.request("tools/call", {"name": "wild__echo", "arguments": {"word": "x"}})
    with trio.fail_after(400):
        async with client.post(message) as answer:
            assert answer.status == 200
            if answer.headers["content-type"] == "application/json":
                ended = [await answer.json()]
            else:
                ended = [event.message for event in await client.read(answer)]
            client.check(ended[-1])
            assert ended[-1]["id"] == message["id"]


async def hear(wild: Host, dispatches: list[str]) -> None:
    """What the server says to it fits the protocol, as far as it was asked something that can be read."""
    while True:
        event = await wild.for_host.receive()
        if event["type"] == "websocket.close":
            return
        message = json.loads(event["text"])
        assert message["jsonrpc"] == "2.0"
        assert ("method" in message) + ("result" in message) + ("error" in message) == 1, message
        if message.get("method") == "tool.dispatch":
            dispatches.append(message["id"])


async def answer_all(good: Host) -> None:
    """What a good host does."""
    while True:
        dispatch, _ = await good.dispatched()
        await good.answer(dispatch, text="fine")
