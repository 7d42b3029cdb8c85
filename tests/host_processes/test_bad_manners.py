"""Hosts that answer twice or late, talk nonsense, flood, do not read, or stop in the middle: nobody else pays."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
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


async def test_a_second_answer_is_dropped(place: Place, name: Name) -> None:
    mine, client = name(), place.modern()
    async with by_hand(place.port, mine * 5) as host:
        await host.register(mine, [PLAIN])
        async with calling(client, f"{mine}__plain") as call:
            dispatch, _ = await host.dispatched()
            await host.answer(dispatch, text="the first")
            await host.answer(dispatch, text="the second")
            await host.fail(dispatch, 1, "and an error", {"code": "third"})
        assert call.result["content"][0]["text"] == "the first"
        await answered(host, client, f"{mine}__plain")
        assert [event["what"] for event in place.events("dispatch.late")] == ["result", "error"]


async def test_a_late_answer_is_dropped(place: Place, name: Name) -> None:
    mine, client, legacy = name(), place.modern(), await place.legacy()
    async with by_hand(place.port, mine * 5) as host:
        await host.register(mine, [PLAIN])
        async with calling(legacy, f"{mine}__plain", token="t") as call:
            dispatch, _ = await host.dispatched()
            await legacy.cancel(call.id, "too slow")
            assert await host.cancelled() == {"dispatch": dispatch, "cause": "notification", "reason": "too slow"}
        await host.progress(dispatch, 1)
        await host.answer(dispatch, text="too late")
        await answered(host, client, f"{mine}__plain")
        assert (call.response, call.progress) == (None, [])
        assert [event["what"] for event in place.events("dispatch.late")] == ["progress", "result"]
        assert [event["how"] for event in place.events("dispatch.stopped")] == ["answered"]


PROGRESS = '{"jsonrpc": "2.0", "method": "tool.progress", "params": %s}'
NONSENSE = {
    "no JSON": "{",
    "no object": "[1]",
    "no message": '{"jsonrpc": "2.0", "id": "zzz"}',
    "an answer to nothing": '{"jsonrpc": "2.0", "id": "d999", "result": {"text": "x"}}',
    "an answer to no id": '{"jsonrpc": "2.0", "id": 7, "result": {"text": "x"}}',
    "progress of nothing": PROGRESS % '{"dispatch": "d999", "progress": 1}',
    "a number that is none": PROGRESS % '{"dispatch": "d1", "progress": NaN}',
    "an unknown notification": '{"jsonrpc": "2.0", "method": "tool.unknown"}',
}


async def test_the_connection_survives_nonsense_and_so_do_its_calls(place: Place, name: Name) -> None:
    mine, client = name(), place.modern()
    async with by_hand(place.port, mine * 5) as host:
        await host.register(mine, [PLAIN])
        async with calling(client, f"{mine}__plain", token="t") as call:
            dispatch, _ = await host.dispatched()
            for text in NONSENSE.values():
                await host.say_text(text)
            # The one that had an id was answered.
            assert (await host.hear())["id"] == "zzz"
            await host.answer(dispatch, text="sense")
        assert call.result["content"][0]["text"] == "sense"
        assert len(place.events("host.misuse")) == len(NONSENSE)


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


def reported(dispatch: str, step: int) -> bytes:
    """A report as a frame, which is made faster than a library makes one."""
    params = {"dispatch": dispatch, "progress": step}
    return frame(TEXT, json.dumps({"jsonrpc": "2.0", "method": "tool.progress", "params": params}).encode())


async def test_a_flood_of_progress_reaches_the_client_in_order_and_thinned_out(place: Place, name: Name) -> None:
    mine, client, reports = name(), place.modern(), 10_000
    async with by_hand(place.port, mine * 5) as host:
        await host.register(mine, [PLAIN])
        async with calling(client, f"{mine}__plain", token="t") as call:
            dispatch, _ = await host.dispatched()
            began = trio.current_time()
            await send_bytes(host, b"".join(reported(dispatch, step) for step in range(1, reports + 1)))
            await host.answer(dispatch, text="done")
        values = [report["progress"] for report in call.progress]
        assert values[-1] == reports
        assert all(before < after for before, after in pairwise(values))
        # 10 at once, 10 a second, and the last.
        assert len(values) <= 10 + (trio.current_time() - began) * 10 + 1
        settled = await place.event("dispatch.settled", outcome="completed")
        assert (settled["reports"], settled["invalid"]) == (reports, 0)
        assert settled["sent"] + settled["coalesced"] == reports


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
