"""`notifications/cancelled` on one connection, sentence by sentence, in both eras."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.calls import misuses, outcome
from ..support.pipes import Pipe, pipe
from ..support.probe import Probe

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])
BOTH = ["stdio", "websocket"]


async def started(client: Pipe, era: str, id: Any = "it", *, steps: int = 10) -> None:
    """A call that reports a step each second; its first has come."""
    arguments = {"name": "progress", "arguments": {"steps": steps, "step_ms": 1000}}
    if era == "modern":
        await client.say(client.modern("tools/call", arguments, meta={"progressToken": "t"}, id=id))
    else:
        if not client.heard:
            await client.initialize()
        await client.say(client.legacy("tools/call", {**arguments, "_meta": {"progressToken": "t"}}, id=id))
    assert (await client.hear())["params"]["progress"] == 1


def living() -> int:
    """How many trio tasks there are, those of the connection with those of the engine."""
    return trio.lowlevel.current_statistics().tasks_living


async def after(client: Pipe, era: str) -> list[dict[str, Any]]:
    """Everything that comes within a minute, and then the answer of a request that is sent after it."""
    begun = len(client.heard)
    with trio.move_on_after(60):
        while True:
            await client.hear()
    await client.call(client.modern("tools/list") if era == "modern" else client.legacy("ping"))
    return client.heard[begun:-1]


@pytest.mark.proves(
    "2026-07-28/stdio/4",
    "2026-07-28/stdio/5",
    "2026-07-28/cancellation/9",
    "2026-07-28/cancellation/10",
    "2026-07-28/cancellation/11",
    "2026-07-28/cancellation/13",
    "2025-11-25/cancellation/5",
    "2025-11-25/cancellation/6",
    "2025-11-25/cancellation/7",
    "2025-11-25/cancellation/10",
)
@both_eras
@pytest.mark.parametrize("transport", BOTH)
async def test_the_work_stops_its_resources_are_free_and_nothing_more_is_sent(
    transport: str, era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with pipe(probe.engine, transport=transport) as client:
        if era == "legacy":
            await client.initialize()
        await client.call(client.modern("tools/list"))
        idle = living()
        await started(client, era)
        assert living() > idle
        await client.cancel("it", "the user pressed Stop")
        assert await after(client, era) == []
        assert living() == idle
        assert outcome(probe) == ("cancelled", "notification", 1, False)
        assert probe.record()["cancel_reason"] == "the user pressed Stop"
        # the id is free again
        await started(client, era)


WINS = {-1: [(-1, "completed")], 0: [(0, "completed"), (0, "cancelled")], 1: [(1, "cancelled")]}


@pytest.mark.proves("2026-07-28/cancellation/12", "2025-11-25/cancellation/9")
@both_eras
async def test_a_cancellation_that_meets_the_answer_loses_or_wins_but_never_both(
    era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    async with pipe(probe.engine) as client:
        for early_ms in (-1, 0, 1):
            await started(client, era, early_ms, steps=2)
            await trio.sleep(1 - early_ms / 1000)
            await client.cancel(early_ms)
            answers = [message for message in await after(client, era) if "method" not in message]
            record = probe.record()
            assert (record["request_id"], record["outcome"]) in WINS[early_ms]
            # at the same moment an answer may be made, and be dropped before it is written
            assert len(answers) == record["answer_delivered"]


WRONG: dict[str, tuple[Any, str]] = {
    "unknown": ({"requestId": "nobody's"}, "cancellation without effect"),
    "of another type": ({"requestId": 5}, "cancellation without effect"),
    "completed": ({"requestId": "done"}, "cancellation without effect"),
    "malformed": ({"requestId": {"it": 1}}, "malformed cancellation"),
    "without an id": ({"reason": "no id"}, "malformed cancellation"),
    "with a malformed reason": ({"requestId": "5", "reason": 5}, "malformed cancellation"),
}


@pytest.mark.proves(
    "2026-07-28/cancellation/14",
    "2026-07-28/cancellation/15",
    "2026-07-28/cancellation/16",
    "2025-11-25/cancellation/12",
    "2025-11-25/cancellation/13",
    "2025-11-25/cancellation/14",
)
@both_eras
@pytest.mark.parametrize("what", WRONG)
async def test_an_invalid_cancellation_is_ignored_and_recorded(
    what: str, era: str, probe: Probe, autojump_clock: MockClock
) -> None:
    params, misuse = WRONG[what]
    async with pipe(probe.engine) as client:
        await started(client, era, "done", steps=1)
        await client.result_of("done")
        await started(client, era, "5", steps=3)
        await client.notify("notifications/cancelled", params)
        assert (await client.result_of("5"))["structuredContent"]["done"]
        assert misuses(probe) == [misuse]
        assert await after(client, era) == []


@pytest.mark.parametrize("transport", BOTH)
async def test_a_cancellation_before_any_request_is_of_no_client(probe: Probe, transport: str) -> None:
    """Only requests of 2026-07-28 say who sends them."""
    async with pipe(probe.engine, transport=transport) as client:
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await client.call(client.modern("tools/list"))
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await client.call(client.modern("tools/list"))
    assert [event["session"] for event in probe.events("client.seen")] == ["m1"]
    assert [event["session"] for event in probe.events("client.misuse")] == [None, "m1"]
