"""From `notifications/cancelled` of a client to the cancel scope of the handler in another process, and back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ..support.hosts import calling
from .peers import Place, host_process, until

Name = Callable[[], str]
ROUNDS = 5


@pytest.mark.parametrize("tool", ["work", "work_in_thread"])
async def test_a_cancellation_reaches_the_handler_and_its_end_comes_back(
    place: Place, name: Name, tool: str, record_property: Callable[[str, object], None]
) -> None:
    legacy, took = await place.legacy(), []
    async with host_process(name(), place.for_hosts) as host:
        await host.registered()
        for number in range(ROUNDS):
            async with calling(legacy, host.tool(tool), {"key": str(number)}, token=number) as call:
                await host.says("waits", str(number))
                began = time.monotonic()
                await legacy.cancel(call.id, "measured")
                took.append(round((await host.says("cancelled", str(number)) - began) * 1000, 1))
            assert call.response is None
        await until(lambda: len(place.events("dispatch.stopped", how="acknowledged")) == ROUNDS)
        back = [event["after_ms"] for event in place.events("dispatch.stopped")]
    assert all(0 < after < 10_000 for after in took + back)
    record_property("to_the_handler_ms", took)
    record_property("until_the_server_knows_ms", back)
    print(f"{tool}: to the handler {sorted(took)} ms, until the server knows {sorted(back)} ms")


@pytest.mark.parametrize("tool", ["work", "work_in_thread"])
async def test_the_end_of_a_modern_response_stream_reaches_the_handler(place: Place, name: Name, tool: str) -> None:
    async with host_process(name(), place.for_hosts) as host:
        await host.registered()
        async with calling(place.modern(), host.tool(tool), {"key": "it"}, token="t") as call:
            await host.says("waits", "it")
            call.leave()
            await host.says("cancelled", "it")
        await host.says("stopped", "it")
        assert (await place.event("dispatch.stopped"))["how"] == "acknowledged"
        assert (await place.event("dispatch.cancelled"))["by"] == "disconnect"
        assert call.response is None
