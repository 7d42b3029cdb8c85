"""Progress of modern calls (product contract, section 4; 2026-07-28 basic/patterns/progress)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..legacy.test_progress import CUSTOM, TOKENS
from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import RpcError
from ..support.modern import Modern
from ..support.probe import Probe, running
from .calls import heard, slow, steps, tool_call


async def tool(client: Modern, name: str, token: Any = "t", **arguments: Any) -> dict[str, Any]:
    """Call with a progress token."""
    return await client.tool(name, arguments, meta={"progressToken": token})


def told(client: Modern) -> list[dict[str, Any]]:
    return client.noted("notifications/progress")


def values(client: Modern) -> list[float]:
    return [note["progress"] for note in told(client)]


# The token.


@pytest.mark.proves("2026-07-28/progress/1", "2026-07-28/progress/5", "2026-07-28/progress/10")
@pytest.mark.parametrize("token", TOKENS, ids=lambda token: f"{type(token).__name__} {str(token)[:20]!r}")
async def test_the_token_comes_back_with_its_value_and_its_type(
    token: int | str, probe: Probe, autojump_clock: MockClock
) -> None:
    """ "Progress tokens MUST be a string or integer value"; a notification contains "The original progress token"."""
    client = probe.modern()
    await tool(client, "progress", token, steps=2)
    assert [(type(note["progressToken"]), note["progressToken"]) for note in told(client)] == [(type(token), token)] * 2
    record = probe.record()
    assert record["progress_token"] == token
    assert record["progress_token_type"] == ("string" if isinstance(token, str) else "integer")


@pytest.mark.proves("2026-07-28/progress/5", "2026-07-28/progress/10")
async def test_without_a_token_there_is_no_progress(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    result = await client.tool("progress", {"steps": 3})
    assert client.notes == []
    assert result["structuredContent"] == {"steps": 3, "notified": False, "done": True}
    assert (probe.record()["steps_done"], probe.record()["emitted"]) == (3, 0)


@pytest.mark.proves("2026-07-28/progress/1")
@pytest.mark.parametrize("token", [None, True, 1.5, [], {}, "x" * 257, 10**300])
async def test_a_token_of_another_type_is_an_error(token: Any, probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    with pytest.raises(RpcError) as caught:
        await tool(client, "progress", token)
    assert caught.value.code == -32602
    assert "progressToken" in caught.value.message
    assert probe.events("call.started") == []


@pytest.mark.proves("2026-07-28/progress/2", "2026-07-28/progress/7")
@pytest.mark.parametrize("tokens", [(1, 2, 3), (1, "1", 1), ("", 0, "0")], ids=str)
async def test_calls_at_the_same_time_do_not_mix_whatever_their_tokens(
    tokens: tuple[Any, ...], probe: Probe, autojump_clock: MockClock
) -> None:
    """Tokens "MUST be unique across all active requests" of a client, and there is no session to tell clients apart: so
    it is the stream that tells whose progress it is."""
    clients = [probe.modern() for _ in tokens]
    got: dict[int, list[dict[str, Any]]] = {}

    async def one(number: int) -> None:
        await trio.sleep(number / 10)
        request = slow(clients[number], number, steps=3 + number, token=tokens[number])
        async with clients[number].post(request) as answer:
            got[number] = await heard(clients[number], answer)

    async with trio.open_nursery() as nursery:
        for number in range(len(tokens)):
            nursery.start_soon(one, number)
    for number, messages in got.items():
        assert steps(messages) == [*range(1, 4 + number), None]
        kinds = {
            (type(message["params"]["progressToken"]), message["params"]["progressToken"]) for message in messages[:-1]
        }
        assert kinds == {(type(tokens[number]), tokens[number])}
        assert messages[-1]["id"] == number


@pytest.mark.proves("2026-07-28/progress/6")
async def test_a_token_may_be_used_again_when_its_request_is_over(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    for _ in range(2):
        async with client.post(slow(client, steps=2)) as answer:
            assert steps(await heard(client, answer)) == [1, 2, None]


# The values.


@pytest.mark.proves("2026-07-28/progress/3", "2026-07-28/progress/4")
async def test_each_step_is_told_when_its_work_is_done(probe: Probe, autojump_clock: MockClock) -> None:
    """ "The `message` field SHOULD provide relevant human readable progress information." """
    client = probe.modern()
    began = trio.current_time()
    async with client.post(tool_call(client, "progress", {"steps": 4, "step_ms": 250}, progressToken="t")) as answer:
        times = [
            (trio.current_time() - began, event.message.get("params", {}).get("message"))
            async for event in answer.events()
        ]
    assert times == [
        (pytest.approx(0.25), "step 1/4"),
        (pytest.approx(0.5), "step 2/4"),
        (pytest.approx(0.75), "step 3/4"),
        (pytest.approx(1.0), "step 4/4"),
        (pytest.approx(1.0), None),
    ]


@pytest.mark.proves("2026-07-28/progress/3")
@pytest.mark.parametrize("mode", ["determinate", "indeterminate"])
async def test_a_total_is_told_only_where_it_is_known(mode: str, probe: Probe, autojump_clock: MockClock) -> None:
    """ "The `progress` value MUST increase with each notification, even if the total is unknown." """
    client = probe.modern()
    await tool(client, "sync_with_progress", itemCount=100, mode=mode)
    assert values(client) == list(range(1, 101))
    assert {note.get("total") for note in told(client)} == {100 if mode == "determinate" else None}


@pytest.mark.proves("2026-07-28/progress/3", "2026-07-28/progress/11")
async def test_only_increasing_finite_values_are_passed_on(autojump_clock: MockClock) -> None:
    """ "The `progress` and the `total` values MAY be floating point." """
    async with running(toolsets=CUSTOM) as probe:
        client = probe.modern()
        await tool(client, "odd")
        assert told(client) == [
            {"progressToken": "t", "progress": 0.25},
            {"progressToken": "t", "progress": 0.5, "total": 1.5, "message": "half"},
            {"progressToken": "t", "progress": 10**12, "message": ""},
        ]


# The rate.


@pytest.mark.proves("2026-07-28/progress/8")
async def test_a_flood_at_once_is_coalesced_and_its_last_report_kept(autojump_clock: MockClock) -> None:
    """ "Both parties SHOULD implement rate limiting to prevent flooding"."""
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = probe.modern()
        await tool(client, "flood", count=10_000)
        assert values(client) == [*range(1, 11), 10_000]
        record = probe.record()
        assert (record["steps_done"], record["steps_total"]) == (10_000, 10_000)
        assert (record["emitted"], record["delivered"], record["coalesced"]) == (11, 11, 10_000 - 11)


@pytest.mark.proves("2026-07-28/progress/3", "2026-07-28/progress/8")
async def test_a_lasting_flood_is_told_at_the_set_rate(autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=5, progress_per_second=10) as probe:
        client = probe.modern()
        await tool(client, "flood", count=10_000, pauseMs=1)
        got = values(client)
        assert 100 <= len(got) <= 5 + 10 * 10 + 1
        assert got == sorted(set(got))
        assert got[-1] == 10_000
        assert max(after - before for before, after in pairwise(got)) <= 101, "none waits too long"


@pytest.mark.proves("2026-07-28/progress/9")
async def test_a_report_that_waits_goes_before_the_response_and_none_after(autojump_clock: MockClock) -> None:
    """ "Progress notifications MUST stop after completion"."""
    async with running(toolsets=CUSTOM, progress_burst=1, progress_per_second=1) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "flood", {"count": 3}, progressToken="t")) as answer:
            assert steps(await heard(client, answer)) == [1, 3, None]
        assert probe.record()["emitted"] == 2
        await trio.sleep(100)
        assert probe.record()["emitted"] == 2
        assert engine_tasks() == SERVICES


async def test_the_rate_is_that_of_each_call(autojump_clock: MockClock) -> None:
    async with running(toolsets=CUSTOM, progress_burst=10) as probe:
        client = probe.modern()
        async with trio.open_nursery() as nursery:
            for token in ("a", "b"):
                nursery.start_soon(lambda token=token: tool(client, "flood", token, count=1000))
        for token in ("a", "b"):
            got = [note["progress"] for note in told(client) if note["progressToken"] == token]
            assert got == [*range(1, 11), 1000]


async def test_a_task_sends_no_progress_but_says_it_in_its_status(probe: Probe, autojump_clock: MockClock) -> None:
    """Tasks extension: progress notifications are not supported on tasks."""
    client = probe.modern()
    handle = await tool(client, "task_with_progress", itemCount=3)
    messages = []

    async def pause() -> None:
        messages.append((await client.get_task(handle["taskId"]))["statusMessage"])
        await trio.sleep(0.5)

    await client.until(handle["taskId"], "completed", pause=pause)
    assert client.notes == []
    assert len(set(messages)) >= 3
    assert any("2" in message for message in messages)
    assert probe.record()["steps_done"] == 3
