"""`kill -9` of the server: what runs for it is stopped, and the hosts come back to the next one on the same port."""

from __future__ import annotations

import trio

from ..support.hosts import calling
from ..support.process import Server, serving
from .peers import WITH_HOSTS, HostProcess, Place, host_process, judge, listed, until, visiting

RUNS = ("sent", "reporting", "answering")


async def again(host: HostProcess, times: int) -> None:
    await until(lambda: sum("registered as" in line for line in host.program.lines) == times)


async def serves(place: Place, host: HostProcess) -> None:
    """A client lists the host's tools under their names, and calls one."""
    client = place.modern()
    assert await listed(client, host.name) == [host.tool(name) for name in ("echo", "work", "work_in_thread")]
    assert (await client.tool(host.tool("echo"), {"word": "back"}))["structuredContent"] == {"key": "back"}


async def test_work_at_every_stage_is_stopped_and_the_hosts_come_back() -> None:
    async with serving(*WITH_HOSTS) as first:
        at = f"ws://127.0.0.1:{first.port}/toolhost"
        async with host_process("busy", at) as busy, host_process("idle", at) as idle:
            await busy.registered()
            await idle.registered()
            async with visiting(first.url) as place:
                await die_with_work(first, place, busy)
            async with serving(*WITH_HOSTS, port=first.port) as second, visiting(second.url) as place:
                for host in (busy, idle):
                    await again(host, 2)
                    assert "trying again" in " ".join(host.program.lines)
                    await serves(place, host)
                # What refused to stop when its server died goes on, and nobody hears of it any more.
                await busy.release("cancelled")
                await busy.says("stopped", "cancelled")
                await serves(place, busy)
                registered = place.events("host.registered")
                assert sorted((event["host"], event["replaced"]) for event in registered) == [
                    ("busy", None),
                    ("idle", None),
                ]
                judge(second.url)


async def die_with_work(server: Server, place: Place, host: HostProcess) -> None:
    """Kill a server that has sent, passed on progress of, almost got the answer of, and cancelled a dispatch."""
    modern, legacy = place.modern(), await place.legacy()
    arguments = {"sent": {}, "reporting": {"reports": 3}, "answering": {"reports": 10}}
    async with trio.open_nursery() as nursery:
        calls = []
        for key, more in arguments.items():
            call = await nursery.start(_call, modern, host.tool(), {"key": key, **more})
            calls.append(call)
            await host.says("waits", key)
            await until(lambda: not more or call.progress)  # noqa: B023 - it is over before the next turn
        async with calling(legacy, host.tool(), {"key": "cancelled", "stubborn": True}) as given_up:
            await host.says("waits", "cancelled")
            await legacy.cancel(given_up.id)
        await host.says("cancelled", "cancelled")
        judge(server.url)
        await server.program.killed()
        for call in calls:
            await until(call.over.is_set)
            assert call.response is None
        for key in RUNS:
            await host.says("cancelled", key)
            await host.says("stopped", key)
        assert not host.has_said("stopped", "cancelled")


async def _call(client, tool, arguments, *, task_status) -> None:
    async with calling(client, tool, arguments, token=arguments["key"]) as call:
        task_status.started(call)
