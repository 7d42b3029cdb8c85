"""Log messages of modern requests (2026-07-28 server/utilities/logging): asked for by each request, for itself."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import LEVELS

from ..support.calls import heard, tool_call
from ..support.http import Answer
from ..support.legacy import RpcError
from ..support.modern import PREFIX, Modern
from ..support.probe import Probe, running

LEVEL = PREFIX + "logLevel"


def logged(messages: list[dict[str, Any]]) -> list[str]:
    return [message["params"]["level"] for message in messages if message.get("method") == "notifications/message"]


async def call(client: Modern, id: Any = "it", **meta: Any) -> list[dict[str, Any]]:
    async with client.post(tool_call(client, "log_levels", {}, id, **meta)) as answer:
        return await heard(client, answer)


@pytest.mark.proves("2026-07-28/logging/3")
async def test_without_a_level_nothing_is_logged(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    assert logged(await call(client)) == []
    assert probe.events("message.dropped") == []
    assert probe.record()["emitted"] == 0


@pytest.mark.proves("2026-07-28/logging/3")
async def test_the_level_of_one_request_is_forgotten_with_it(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    assert len(logged(await call(client, **{LEVEL: "debug"}))) == 8
    assert logged(await call(client)) == []


@pytest.mark.parametrize("level", LEVELS)
async def test_a_level_lets_itself_and_graver_ones_through(level: str, probe: Probe, autojump_clock: MockClock) -> None:
    """ "the server MAY send `notifications/message` notifications at or above the requested level"."""
    client = probe.modern()
    messages = await call(client, **{LEVEL: level})
    assert logged(messages) == list(LEVELS[LEVELS.index(level) :])
    assert messages[-1]["id"] == "it", "before the final response"
    assert {message["params"]["logger"] for message in messages[:-1]} == {"log_levels"}


@pytest.mark.proves("2026-07-28/logging/8", "2026-07-28/logging/7")
async def test_a_message_says_what_it_is_about_and_who_says_it(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    for _ in range(2):
        await call(client, **{LEVEL: "error"})
    notes = client.noted("notifications/message")
    assert [note["data"] for note in notes[:4]] == [note["data"] for note in notes[4:]]
    assert all(note["level"] in note["data"] for note in notes)
    assert {note["logger"] for note in notes} == {"log_levels"}


@pytest.mark.proves("2026-07-28/logging/9", "2026-07-28/logging/10")
@pytest.mark.parametrize("tool", ["log_levels", "test_tool_with_logging", "test_logging_tool"])
async def test_what_is_logged_depends_on_nobody(tool: str, autojump_clock: MockClock) -> None:
    """Log messages MUST NOT contain secrets, personal information or internals: they are constants of the tools."""
    seen = []
    for number in range(2):
        async with running(grace_s=number + 1) as probe:
            client = probe.modern()
            meta = {LEVEL: "debug", PREFIX + "clientInfo": {"name": f"client {number}", "version": "1"}}
            headers = {"authorization": f"Bearer secret-{number}"}
            async with client.post(tool_call(client, tool, {}, f"id {number}", **meta), headers) as answer:
                seen.append([message["params"] for message in (await heard(client, answer))[:-1]])
    assert seen[0] == seen[1] != []


@pytest.mark.proves("2026-07-28/logging/5")
@pytest.mark.parametrize("level", ["verbose", "DEBUG", "warn", "", None, 3, True, ["info"], {}])
@pytest.mark.parametrize("tool", ["log_levels", "chatty"])
async def test_an_unknown_level_is_refused(tool: str, level: Any, probe: Probe) -> None:
    client = probe.modern()
    with pytest.raises(RpcError) as caught:
        await client.tool(tool, {}, meta={LEVEL: level})
    assert caught.value.code == -32602
    assert "logLevel" in caught.value.message
    assert probe.events("call.started") == []


@pytest.mark.proves("2026-07-28/logging/4", "2026-07-28/streamable-http/52")
async def test_log_messages_go_on_the_stream_of_their_request_only(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    asked = {"notifications": {"toolsListChanged": True, "resourcesListChanged": True}}
    listen = client.request("subscriptions/listen", asked, id="L", meta={LEVEL: "debug", "progressToken": "L"})
    got: dict[str, list[dict[str, Any]]] = {}

    async def one(id: str, meta: dict[str, Any]) -> None:
        got[id] = await call(client, id, **meta)

    async with client.post(listen) as subscription:
        await subscription.first(1)
        async with trio.open_nursery() as nursery:
            for id, meta in {"all": {LEVEL: "debug"}, "none": {}, "grave": {LEVEL: "alert"}}.items():
                nursery.start_soon(one, id, meta)
        await client.tool("progress", {"steps": 2}, meta={"progressToken": 1})
        assert await rest(subscription) == []
    assert {id: len(logged(messages)) for id, messages in got.items()} == {"all": 8, "none": 0, "grave": 2}


async def rest(subscription: Answer) -> list[Any]:
    """What comes on a subscription within a second."""
    got: list[Any] = []
    with trio.move_on_after(1):
        while True:
            got += await subscription.first(1)
    return got


@pytest.mark.proves("2026-07-28/logging/2")
@pytest.mark.parametrize("tools", ["all", "features", "probe", "conformance"])
async def test_whoever_may_log_declares_it(tools: str, probe: Probe) -> None:
    client = probe.modern(tools=tools)
    assert (await client.call("server/discover"))["capabilities"]["logging"] == {}
