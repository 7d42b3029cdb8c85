"""Hosts that answer twice or late, talk nonsense, flood, do not read, or stop in the middle: nobody else pays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import trio

from probe.wire.toolhost import SUBPROTOCOL

from ..support.hosts import PLAIN, Host, calling
from ..support.modern import Modern
from ..support.process import followed
from ..support.websocket import BINARY, TEXT, frame, refused
from .peers import ENVIRONMENT, Place, by_hand, send_bytes

pytestmark = [
    # trio-websocket leaves the socket of a connection that was refused to the garbage collector
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

# A message may be 64 KiB, and so much may wait for a host; one that takes nothing for a second is disconnected.
SETTINGS = (
    *("--max-body-bytes", "65536", "--host-queue-bytes", "65536"),
    *("--write-timeout-s", "1", "--max-host-dispatches", "400", "--progress-per-second", "10"),
    *("--progress-burst", "10"),
)
Name = Callable[[], str]


async def answered(host: Host, client: Modern, tool: str, text: str = "fine") -> None:
    """A call goes through as if nothing had been."""
    async with calling(client, tool) as call:
        dispatch, _ = await host.dispatched()
        await host.answer(dispatch, text=text)
    assert call.result["content"][0]["text"] == text


PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
RUDE = {
    "binary": (frame(BINARY, PING), 1003),
    "no UTF-8": (frame(TEXT, b'{"jsonrpc": "2.0", "id": "\xff\xfe", "method": "ping"}'), 1007),
    "too long": (frame(TEXT, PING.rjust(70_000)), 1009),
}


@pytest.mark.parametrize(("rude", "code"), RUDE.values(), ids=RUDE)
async def test_what_breaks_the_rules_of_the_wire_ends_that_connection_only(
    place: Place, name: Name, rude: bytes, code: int
) -> None:
    mine, other, client = name(), name(), place.modern()
    async with by_hand(place.port, mine * 5) as host, by_hand(place.port, other * 5) as polite:
        await host.register(mine, [PLAIN])
        await polite.register(other, [PLAIN])
        async with calling(client, f"{mine}__plain") as call:
            await host.dispatched()
            await send_bytes(host, rude)
            assert (await host.hear_close())[0] == code
        assert call.failure["code"] == "host_gone"
        await answered(polite, client, f"{other}__plain")


async def test_a_host_that_never_reads_is_bounded_and_then_ended(place: Place, name: Name) -> None:
    mine, other, client = name(), name(), place.modern()
    calls: list[Any] = []

    async def ask(*, task_status: trio.TaskStatus[None]) -> None:
        async with calling(client, f"{mine}__plain", {"padding": "x" * 60_000}) as call:
            calls.append(call)
            task_status.started()

    async with by_hand(place.port, mine * 5) as stuck, by_hand(place.port, other * 5) as polite:
        await stuck.register(mine, [PLAIN])
        await polite.register(other, [PLAIN])
        stuck.reads = trio.Event()
        async with trio.open_nursery() as nursery:
            # What the sockets hold comes on top of the queue; how much that is, is the kernel's choice.
            while not [call for call in calls if call.over.is_set()]:
                assert len(calls) < 300, "nothing bounds what waits"
                await nursery.start(ask)
                await answered(polite, client, f"{other}__plain")
            first = next(call for call in calls if call.over.is_set())
            assert first.failure["code"] in {"host_busy", "host_gone"}
        codes = {call.failure["code"] for call in calls}
        assert codes <= {"host_busy", "host_gone"}, codes
        assert "host_gone" in codes, "the write timeout has ended it"
        await place.event("host.closed", host=mine)
        await answered(polite, client, f"{other}__plain")
        stuck.reads.set()


async def test_without_the_secret_there_is_no_way_in(place: Place) -> None:
    command = [sys.executable, "-m", "probe", "toolhost-demo", "--url", place.for_hosts]
    async with followed(command, {"MCP_PROBE_TOOLHOST_SECRET": "a-wrong-secret-of-some-length"}) as demo:
        assert await demo.ended() == 2
        (line,) = demo.lines
        assert line.startswith("error: ")
        assert "401" in line
    rejected = await refused(place.port, "/toolhost", subprotocols=[SUBPROTOCOL])
    assert rejected.status_code == 401
    assert place.events("host.connected") == []


async def test_a_second_host_of_a_name_is_refused_and_the_first_goes_on(place: Place, name: Name) -> None:
    mine, client = name(), place.modern()
    async with by_hand(place.port, mine * 5) as host:
        await host.register(mine, [PLAIN])
        async with calling(client, f"{mine}__plain") as call:
            dispatch, _ = await host.dispatched()
            command = [sys.executable, "-m", "probe", "toolhost-demo", "--url", place.for_hosts, "--name", mine]
            async with followed(command, ENVIRONMENT) as second:
                assert await second.ended() == 2
                assert "taken" in " ".join(second.lines)
            await host.answer(dispatch, text="untouched")
        assert call.result["content"][0]["text"] == "untouched"
