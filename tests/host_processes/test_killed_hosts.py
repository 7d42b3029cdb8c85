"""`kill -9` of a host, at each stage of its life and of its calls: they fail at once, and nobody else notices.

A host that is only stopped is found by pings.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from ..support.hosts import ECHO, Call, calling
from ..support.legacy import Legacy
from ..support.listening import listening
from ..support.modern import Modern
from .peers import HostProcess, Place, by_hand, host_process, listed, until

LIST_CHANGED = "notifications/tools/list_changed"
Name = Callable[[], str]
# A host that is silent for a second is pinged, and after two it is dead.
SETTINGS = ("--ws-ping-s", "1")


@dataclass
class Calls:
    """One call of each era to a host that is to die, with the keys of their work."""

    host: HostProcess
    legacy: Legacy
    old: Call
    new: Call

    def both(self) -> tuple[Call, Call]:
        return self.old, self.new


@asynccontextmanager
async def calls_of(place: Place, host: HostProcess, legacy: Legacy, **arguments: object) -> AsyncIterator[Calls]:
    modern, tool = place.modern(), host.tool()
    async with (
        calling(legacy, tool, {"key": "old", **arguments}, token="old") as old,
        calling(modern, tool, {"key": "new", **arguments}, token="new") as new,
    ):
        await until(lambda: len(place.events("dispatch.sent", host=host.name)) == 2)
        yield Calls(host, legacy, old, new)


@asynccontextmanager
async def sent(place: Place, host: HostProcess, legacy: Legacy) -> AsyncIterator[Calls]:
    """The dispatches are on their way to a process that does not take them."""
    host.program.signal(signal.SIGSTOP)
    async with calls_of(place, host, legacy) as calls:
        yield calls


@asynccontextmanager
async def reporting(place: Place, host: HostProcess, legacy: Legacy) -> AsyncIterator[Calls]:
    """The clients have heard of three steps of ten."""
    async with calls_of(place, host, legacy, reports=3) as calls:
        for call in calls.both():
            await until(lambda call=call: call.progress and call.progress[-1]["progress"] == 3)
        yield calls


@asynccontextmanager
async def answering(place: Place, host: HostProcess, legacy: Legacy) -> AsyncIterator[Calls]:
    """All is done, and was reported, but for the answer, which the process has no time to give."""
    async with calls_of(place, host, legacy, reports=10) as calls:
        for call in calls.both():
            await until(lambda call=call: call.progress and call.progress[-1]["progress"] == 10)
        host.program.signal(signal.SIGSTOP)
        await host.release("old", "new")
        yield calls


STAGES = [sent, reporting, answering]
DONE = {sent: None, reporting: 3, answering: 10}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_its_calls_fail_at_once(place: Place, name: Name, stage: Callable[..., object]) -> None:
    legacy, modern, doomed, other = await place.legacy(), place.modern(), name(), name()
    async with host_process(doomed, place.for_hosts) as host, by_hand(place.port, other * 5) as bystander:
        await bystander.register(other, [ECHO])
        async with calling(modern, f"{other}__echo") as untouched:
            dispatch, _ = await bystander.dispatched()
            await host.registered()
            async with stage(place, host, legacy) as calls:
                await host.program.killed()
                for call in calls.both():
                    await until(call.over.is_set)
            for call in calls.both():
                assert (call.failure["code"], call.failure["retryable"]) == ("host_gone", True)
                assert f"The tool host {doomed} has gone" in call.failure["message"]
                assert call.failure.get("progress") == DONE[stage]
            assert [(event["by"], event["failed"]) for event in place.events("host.closed")] == [("client", 2)]
            await gone(place, legacy, modern, doomed)
            assert not untouched.over.is_set()
            await bystander.answer(dispatch, output={"word": "untouched"})
        assert untouched.result["structuredContent"] == {"word": "untouched"}


async def gone(place: Place, legacy: Legacy, modern: Modern, name: str) -> None:
    """The tools of a host are in no list, calling one is an error, and its name is free for anybody, at once."""
    for client in (legacy, modern):
        assert await listed(client, name) == []
    async with by_hand(place.port, "instance-of-another-process") as successor:
        assert (await successor.register(name, [ECHO]))["tools"] == [f"{name}__echo"]
        async with calling(modern, f"{name}__echo", {"word": "new"}) as call:
            dispatch, _ = await successor.dispatched()
            await successor.answer(dispatch, output={"word": "new"})
        assert call.result["structuredContent"] == {"word": "new"}


async def test_work_that_was_cancelled_and_has_not_stopped_ends_with_its_host(place: Place, name: Name) -> None:
    legacy, doomed = await place.legacy(), name()
    async with host_process(doomed, place.for_hosts) as host:
        await host.registered()
        async with calls_of(place, host, legacy, stubborn=True) as calls:
            for key in ("old", "new"):
                await host.says("waits", key)
            await legacy.cancel(calls.old.id)
            calls.new.leave()
            for key in ("old", "new"):
                await host.says("cancelled", key)
            await host.program.killed()
        assert [call.response for call in calls.both()] == [None, None]
        await until(lambda: len(place.events("dispatch.stopped", host=doomed, how="host_gone")) == 2)
        assert {event["by"] for event in place.events("dispatch.cancelled", host=doomed)} == {
            "notification",
            "disconnect",
        }
        await gone(place, legacy, place.modern(), doomed)
        # Those calls had ended before, so the death of the host has failed none.
        assert place.events("host.closed", host=doomed)[0]["failed"] == 0


async def test_an_idle_host_vanishes_from_the_lists_of_clients_and_they_are_told(place: Place, name: Name) -> None:
    legacy, doomed = await place.legacy(), name()
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(host_process(doomed, place.for_hosts))
        await host.registered()
        ear = await stack.enter_async_context(listening(place.modern(), toolsListChanged=True))
        offered = [host.tool("echo"), host.tool("work"), host.tool("work_in_thread")]
        assert [await listed(client, doomed) for client in (legacy, ear.client)] == [offered, offered]
        async with legacy.get() as stream:
            await host.program.killed()
            await until(lambda: ear.methods == [LIST_CHANGED])
            (event,) = [event for event in await stream.first(2) if event.data]
            assert legacy.check(event.message)["method"] == LIST_CHANGED
        await gone(place, legacy, place.modern(), doomed)


async def test_a_host_that_is_there_and_does_nothing_is_found_by_pings(place: Place, name: Name) -> None:
    mine, client = name(), place.modern()
    async with host_process(mine, place.for_hosts) as host:
        await host.registered()
        async with calling(client, host.tool(), {"key": "it"}) as call:
            await host.says("waits", "it")
            host.program.signal(signal.SIGSTOP)
            await until(call.over.is_set)
        assert call.failure["code"] == "host_gone"
        host.program.signal(signal.SIGCONT)
        # It finds its connection gone, stops the work and comes back.
        await host.says("stopped", "it")
        await until(lambda: len(place.events("host.registered", host=mine)) == 2)
        assert (await client.tool(host.tool("echo"), {"word": "back"}))["structuredContent"] == {"key": "back"}
