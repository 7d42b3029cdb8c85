"""SIGTERM of the server and signals to a host, with work in flight: each end is announced, and nothing hangs."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from ..support.hosts import calling
from ..support.process import serving
from .peers import WITH_HOSTS, Place, host_process, judge, until, visiting

Name = Callable[[], str]
# Long enough for work that is released at once, on a slow machine too; work that is not costs the test so long.
GRACE = ("--grace-s", "3")


async def test_a_server_that_ends_lets_work_finish_and_stops_the_rest() -> None:
    async with serving(*WITH_HOSTS, *GRACE) as server, visiting(server.url) as place:
        legacy, modern = await place.legacy(), place.modern()
        async with host_process("demo", place.for_hosts) as host:
            await host.registered()
            async with (
                calling(modern, host.tool(), {"key": "finishes"}, token="t") as finishes,
                calling(legacy, host.tool(), {"key": "async"}, token="t") as task,
                calling(modern, host.tool("work_in_thread"), {"key": "thread"}, token="t") as thread,
            ):
                for key in ("finishes", "async", "thread"):
                    await host.says("waits", key)
                judge(server.url)
                server.program.signal(signal.SIGTERM)
                await server.program.said("stopping")
                await host.release("finishes")
                await until(finishes.over.is_set)
                assert finishes.result["structuredContent"] == {"key": "finishes"}
                for key in ("async", "thread"):
                    await host.says("cancelled", key)
                    await host.says("stopped", key)
            for call in (task, thread):
                assert "shutting down" in call.error["message"]
            assert await server.program.ended() == 0
            # 1001: the server goes away, and the host goes on trying.
            assert "1001" in await host.program.said("trying again")
            host.program.signal(signal.SIGTERM)
            assert await host.program.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_host_that_ends_says_so_and_its_calls_fail_at_once(
    place: Place, name: Name, number: signal.Signals
) -> None:
    mine, legacy, modern = name(), await place.legacy(), place.modern()
    async with host_process(mine, place.for_hosts) as host:
        await host.registered()
        async with (
            calling(legacy, host.tool(), {"key": "async", "reports": 2}, token="t") as task,
            calling(modern, host.tool("work_in_thread"), {"key": "thread", "stubborn": True}) as thread,
        ):
            await host.says("waits", "thread")
            await until(lambda: task.progress and task.progress[-1]["progress"] == 2)
            host.program.signal(number)
        assert (task.failure["code"], task.failure["progress"]) == ("host_gone", 2)
        assert thread.failure["code"] == "host_gone"
        # It does not wait for its thread, and the task had its `finally`.
        assert await host.program.ended() == 0
        assert host.has_said("stopped", "async")
        closed = await place.event("host.closed", host=mine)
        assert (closed["code"], closed["by"], closed["failed"]) == (1000, "client", 2)
