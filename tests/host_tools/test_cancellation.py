"""Whoever stops a call, and why: the host hears of it in one message, and from then on nothing of it is passed on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.call import Cause

from ..support.hosts import Call, Host, calling, hosting
from ..support.inside import CALL, MODERN_CALL, SERVICES, AtAwait, engine_tasks
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.pipes import Pipe, pipe
from ..support.probe import Probe


@dataclass
class Scene:
    """A legacy and a modern client whose calls run, and the host that works on them."""

    probe: Probe
    host: Host
    legacy: Legacy
    old: Call
    modern: Modern
    new: Call
    dispatches: dict[str, str]


@asynccontextmanager
async def scene(probe: Probe, host: Host) -> AsyncIterator[Scene]:
    legacy, modern = await probe.client(tools="hosts"), probe.modern(tools="hosts")
    async with calling(legacy, "demo__plain", token="t") as old:
        first, _ = await host.dispatched()
        async with calling(modern, "demo__plain", token="t") as new:
            second, _ = await host.dispatched()
            yield Scene(probe, host, legacy, old, modern, new, {"old": first, "new": second})


async def notify(scene: Scene) -> None:
    await scene.legacy.cancel(scene.old.id, "user pressed stop")
    scene.new.leave()


async def notify_without_reason(scene: Scene) -> None:
    await scene.legacy.cancel(scene.old.id)
    scene.new.leave()


async def wait(scene: Scene) -> None:
    await scene.old.over.wait()
    await scene.new.over.wait()


async def wait_long(scene: Scene) -> None:
    for number in range(11):
        await scene.host.progress(scene.dispatches["old"], number)
        await scene.host.progress(scene.dispatches["new"], number)
        await trio.sleep(29)
    await wait(scene)


async def delete(scene: Scene) -> None:
    assert await scene.legacy.delete() == 204
    scene.new.leave()


async def drain(scene: Scene) -> None:
    await scene.probe.engine.drain()


HUNG_UP = "the client closed the response stream"
Told = tuple[str, str | None]
STOPS: dict[str, tuple[Callable[[Scene], Awaitable[None]], Told, Told, bool]] = {
    # how, what the host hears of the legacy and of the modern call, and whether the clients are answered
    "with a reason": (notify, ("notification", "user pressed stop"), ("disconnect", HUNG_UP), False),
    "without a reason": (notify_without_reason, ("notification", None), ("disconnect", HUNG_UP), False),
    "by the idle deadline": (wait, ("deadline", None), ("deadline", None), True),
    "by the ceiling": (wait_long, ("deadline", None), ("deadline", None), True),
    "by the end of the session": (delete, ("session_end", "deleted"), ("disconnect", HUNG_UP), False),
    "by the end of the server": (
        drain,
        ("shutdown", "the server is shutting down"),
        ("shutdown", "the server is shutting down"),
        True,
    ),
}


@pytest.mark.parametrize("how", STOPS)
async def test_each_cause_reaches_the_host_in_one_message(how: str, autojump_clock: MockClock) -> None:
    stop, *expected, answered = STOPS[how]
    async with hosting(grace_s=3) as (probe, host), scene(probe, host) as it:
        await stop(it)
        heard = await host.hear_all()
        cancels = {message["params"]["dispatch"]: message["params"] for message in heard}
        assert len(cancels) == len(heard) == 2
        for dispatch, (cause, reason) in zip(it.dispatches.values(), expected, strict=True):
            told = {} if reason is None else {"reason": reason}
            assert cancels[dispatch] == {"dispatch": dispatch, "cause": cause, **told}
        await it.old.over.wait()
        await it.new.over.wait()
        assert [call.response is not None for call in (it.old, it.new)] == [answered, answered]
        events = probe.events("dispatch.cancelled")
        assert [(event["by"], event["reason"]) for event in events] == expected
        assert {event["call"] for event in events} == {event["call"] for event in probe.events("call.cancelled")}
        for event in probe.events("call.settled"):
            assert (event["scope_exit_ms"], event["sent_after_cancel"]) == (0, 0)


async def test_of_several_causes_the_host_hears_the_first(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    async with scene(probe, host) as it:
        await it.legacy.cancel(it.old.id, "first")
        await it.legacy.cancel(it.old.id, "second")
        await it.legacy.delete()
        it.new.leave()
        await trio.sleep(400)
        heard = [(message["params"]["cause"], message["params"].get("reason")) for message in await host.hear_all()]
        assert sorted(heard, key=str) == [("disconnect", HUNG_UP), ("notification", "first")]


async def test_a_legacy_client_that_hangs_up_has_not_cancelled(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    client = await probe.client(tools="hosts")
    request = client.request("tools/call", {"name": "demo__plain"})
    async with client.post(request) as answer:
        (primed,) = await answer.first(1)
        dispatch, _ = await host.dispatched()
    assert await host.hear_all() == []
    await host.answer(dispatch, text="done")
    async with client.get(primed.id) as answer:
        event = [event async for event in answer.events() if event.data][-1]
    assert client.result(event.message)["content"][0]["text"] == "done"


async def pipe_call(client: Pipe, era: str) -> int:
    """Start a call of an era on a pipe; its id."""
    request = client.modern if era == "modern" else client.legacy
    message = request("tools/call", {"name": "demo__plain"})
    await client.say(message)
    return int(message["id"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_on_a_pipe_the_client_cancels_by_notification_or_by_going(
    probe: Probe, host: Host, era: str, autojump_clock: MockClock
) -> None:
    async with pipe(probe.engine, selection="hosts") as client:
        if era == "legacy":
            await client.initialize()
        first = await pipe_call(client, era)
        named, _ = await host.dispatched()
        await pipe_call(client, era)
        left, _ = await host.dispatched()
        await client.cancel(first, "no more")
        assert await host.cancelled() == {"dispatch": named, "cause": "notification", "reason": "no more"}
        await client.drop()
        assert await host.cancelled() == {"dispatch": left, "cause": "disconnect", "reason": "the connection ended"}
    outcomes = [(event["cancelled_by"], event["answered"]) for event in probe.events("call.settled")]
    assert outcomes == [("notification", False), ("disconnect", False)]


async def test_what_comes_after_the_cancellation_is_dropped_and_counted(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 1)
        await wait_all_tasks_blocked()
        call.leave()
        await host.cancelled()
        await trio.sleep(2)
        for number in range(2, 500):
            await host.progress(dispatch, number)
        await host.answer(dispatch, text="it is done all the same")
        await host.answer(dispatch, text="it is done all the same")
        await host.fail(dispatch, 2, "stopped")
        await wait_all_tasks_blocked()
    assert [report["progress"] for report in call.progress] in ([1], [])
    assert call.response is None
    late = [(event["dispatch"], event["what"]) for event in probe.events("dispatch.late")]
    assert late == [(dispatch, "progress"), (dispatch, "result"), (dispatch, "error")], "the first of its kind"
    (stopped,) = probe.events("dispatch.stopped")
    facts = {name: stopped[name] for name in ("dispatch", "how", "after_ms", "late")}
    assert facts == {"dispatch": dispatch, "how": "answered", "after_ms": 2000, "late": 499}
    await host.go()
    await wait_all_tasks_blocked()
    assert probe.events("host.closed")[0]["late"] == 501
    (settled,) = probe.events("dispatch.settled")
    assert (settled["reports"], settled["invalid"]) == (1, 0)


async def test_the_host_says_when_the_work_has_stopped(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        call.leave()
        await host.cancelled()
        await trio.sleep(1.25)
        await host.fail(dispatch, 2, "stopped")
        await wait_all_tasks_blocked()
    (stopped,) = probe.events("dispatch.stopped")
    assert (stopped["how"], stopped["after_ms"], stopped["late"]) == ("acknowledged", 1250, 0)
    assert probe.events("dispatch.late") == []
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["cancel_latency_ms"]) == ("disconnected", "disconnect", 0)


async def test_a_failure_is_no_word_that_the_work_has_stopped(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        call.leave()
        await host.cancelled()
        await host.fail(dispatch, 1, "failed", {"code": "failed"})
        await wait_all_tasks_blocked()
    assert [event["how"] for event in probe.events("dispatch.stopped")] == ["answered"]
    assert [event["what"] for event in probe.events("dispatch.late")] == ["error"]


async def test_a_cancelled_dispatch_keeps_its_place_until_it_is_answered(autojump_clock: MockClock) -> None:
    async with hosting(max_host_dispatches=1) as (probe, host):
        client = probe.modern(tools="hosts")
        async with calling(client, "demo__plain") as call:
            dispatch, _ = await host.dispatched()
            call.leave()
            await host.cancelled()
        async with calling(client, "demo__plain") as busy:
            pass
        assert busy.failure == {
            "message": "The tool host demo is busy: 1 dispatches are in flight, 1 of them cancelled and still running "
            "(max_host_dispatches)",
            "code": "host_busy",
            "retryable": True,
            "host": "demo",
        }
        await host.fail(dispatch, 2, "stopped")
        async with calling(client, "demo__plain") as call:
            await host.answer((await host.dispatched())[0], text="done")
        assert call.result["content"][0]["text"] == "done"
        (limit,) = probe.events("limit.reached")
        assert (limit["limit"], limit["value"]) == ("max_host_dispatches", 1)


async def test_a_place_is_given_back_when_the_host_never_says_that_it_has_stopped(autojump_clock: MockClock) -> None:
    async with hosting(max_host_dispatches=2, toolhost_linger_s=12.5) as (probe, host):
        client, dispatches = probe.modern(tools="hosts"), []
        for _ in range(2):
            async with calling(client, "demo__plain") as call:
                dispatches.append((await host.dispatched())[0])
                call.leave()
                await host.cancelled()
            await trio.sleep(2)
        await trio.sleep(8.4)
        assert (await client.tool("demo__plain"))["_meta"]["mcp-probe/error"]["code"] == "host_busy"
        await trio.sleep(0.2)
        async with calling(client, "demo__plain") as call:
            await host.answer((await host.dispatched())[0], text="done")
        await trio.sleep(2)
        stopped = [(event["dispatch"], event["how"], event["after_ms"]) for event in probe.events("dispatch.stopped")]
        assert stopped == [(dispatches[0], "unanswered", 12500), (dispatches[1], "unanswered", 12500)]
        await host.fail(dispatches[0], 2, "at last")
        await wait_all_tasks_blocked()
        assert [(event["dispatch"], event["what"]) for event in probe.events("dispatch.late")] == [
            (dispatches[0], "error")
        ]


async def test_every_place_is_for_whoever_comes_first(autojump_clock: MockClock) -> None:
    async with hosting(max_host_dispatches=2) as (probe, host):
        client = probe.modern(tools="hosts")
        async with calling(client, "demo__plain"), calling(client, "demo__plain"):
            first, second = (await host.dispatched())[0], (await host.dispatched())[0]
            async with calling(client, "demo__plain") as busy:
                pass
            assert busy.failure["message"].endswith("busy: 2 dispatches are in flight (max_host_dispatches)")
            await host.answer(first, text="done")
            await host.answer(second, text="done")
        async with calling(client, "demo__plain"):
            await host.answer((await host.dispatched())[0], text="done")
        assert sorted(event["outcome"] for event in probe.events("dispatch.settled")) == [
            "completed", "completed", "completed", "tool_error",
        ]  # fmt: skip


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_at_every_await_of_the_call_the_host_is_told_to_stop_what_it_was_told_to_begin(
    era: str, autojump_clock: MockClock
) -> None:
    begun = 0
    for n in range(100):
        async with hosting(progress_burst=1) as (probe, host):
            at, heard = await cancelled_at(probe, host, era, n)
            methods = [message["method"] for message in heard]
            assert methods in ([], ["tool.dispatch", "tool.cancel"], ["tool.dispatch"]), methods
            (settled,) = probe.events("call.settled")
            begun += methods == ["tool.dispatch", "tool.cancel"]
            assert settled["sent_after_cancel"] == 0
            assert methods == ["tool.dispatch"] or not settled["answered"]
            assert settled["answered"] == (settled["cancelled_by"] is None)
            if methods == ["tool.dispatch"]:
                (answered,) = [event for event in probe.events("host.message") if event["id"] == "d1"][1:]
                assert answered["seq"] < settled["seq"], "what was not stopped was over"
            if at.awaits < n:
                assert settled["answered"]
                break
            assert probe.engine.modern.running == set()
            if era == "modern":
                assert engine_tasks() == SERVICES
    else:
        raise AssertionError("the call never ends")
    assert begun, "coalesced reports are waited for while the host works"


async def cancelled_at(probe: Probe, host: Host, era: str, n: int) -> tuple[AtAwait, list[dict[str, Any]]]:
    """One call, which is cancelled when its n-th await begins."""
    client: Legacy | Modern = probe.modern(tools="hosts") if era == "modern" else await probe.client(tools="hosts")

    def act() -> None:
        sessions = [call for session in probe.engine.sessions for call in session.calls.values()]
        for call in [*probe.engine.modern.running, *sessions]:
            call.cancel(Cause.NOTIFICATION)

    async with trio.open_nursery() as nursery:

        async def work() -> None:
            while True:
                message = await host.hear()
                if message["method"] == "tool.dispatch":
                    for number in range(3):
                        await host.progress(message["id"], number)
                        await trio.sleep(0.004)
                    await host.answer(message["id"], text="done")

        nursery.start_soon(work)
        with AtAwait(MODERN_CALL if era == "modern" else CALL, n, act) as at:
            async with calling(client, "demo__plain", token="t"):
                pass
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    return at, [message for message in host.heard if "method" in message]
