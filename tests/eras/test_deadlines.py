"""The two deadlines of a synchronous call: idle 30 s, moved by progress, and a ceiling of 300 s that nothing moves."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Integer, Tool, ToolResult, structured

from ..support.calls import ERAS, LEGACY, emitted_after, heard, steps, tool_call
from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.rows import each

META = "mcp-probe/deadline"
each_era = pytest.mark.parametrize("revision", ERAS)


async def _work(context: ToolContext) -> ToolResult:
    for number in range(1, context.arguments["reports"] + 1):
        await context.sleep(context.arguments["everyS"])
        context.report_progress(number, message=f"{number}")
    await context.sleep(context.arguments["silentS"])
    return structured({"done": True})


async def _ask(context: ToolContext) -> ToolResult:
    return structured(await context.elicit("Well?", {"type": "object", "properties": {}}))


WORK = (
    Integer("reports", 0, 1000, 0, "how many reports"),
    Integer("everyS", 1, 1000, 1, "how long before each of them"),
    Integer("silentS", 0, 1000, 0, "how long after the last"),
)
CUSTOM = Toolset(
    "custom",
    (
        Tool("work", "Work", "Works and reports", _work, WORK),
        Tool("patient", "Patient", "Has its own idle deadline", _work, WORK, idle_s=100),
        Tool("marathon", "Marathon", "Has its own ceiling", _work, WORK, ceiling_s=1000),
        Tool("ask", "Ask", "Asks without being known for it", _ask),
    ),
)


async def timed(client: Legacy | Modern, name: str, token: Any = "t", **arguments: Any) -> tuple[float, dict[str, Any]]:
    """Call; returns how long that took, in seconds, and the result."""
    began = trio.current_time()
    result = await client.tool(name, arguments, meta=None if token is None else {"progressToken": token})
    return trio.current_time() - began, result


def expired(
    which: str, elapsed_ms: int, progress: int, *, idle_ms: int = 30_000, ceiling_ms: int = 300_000
) -> dict[str, Any]:
    return {
        "deadline": which,
        "elapsedMs": elapsed_ms,
        "idleMs": idle_ms,
        "ceilingMs": ceiling_ms,
        "progressCount": progress,
    }


# tool and arguments, how long the call takes in seconds, and what the error says, None for a result;
# the deadlines of the server are in tests/dispatch/test_seed_table.py
TABLE: dict[str, tuple[str, dict[str, int], float, dict[str, Any] | None]] = {
    "an own idle deadline": ("patient", {"silentS": 99}, 99, None),
    "an own idle deadline that passes": (
        "patient",
        {"silentS": 101},
        100,
        expired("idle", 100_000, 0, idle_ms=100_000),
    ),
    "an own ceiling": ("marathon", {"reports": 45, "everyS": 20}, 900, None),
    "an own ceiling that passes": (
        "marathon",
        {"reports": 100, "everyS": 15},
        1000,
        expired("ceiling", 1_000_000, 66, ceiling_ms=1_000_000),
    ),
}


@each_era
@each("case", TABLE)
async def test_a_tool_may_have_deadlines_of_its_own(case: str, revision: str, autojump_clock: MockClock) -> None:
    name, arguments, seconds, error = TABLE[case]
    async with running(toolsets=[CUSTOM]) as probe:
        client = await probe.of(revision)
        before = engine_tasks()
        took, result = await timed(client, name, **arguments)
        assert took == pytest.approx(seconds, abs=0.01)
        if error is None:
            assert result["structuredContent"] == {"done": True}
        else:
            check_expired(probe, result, error)
        assert engine_tasks() == before


def check_expired(probe: Probe, result: dict[str, Any], numbers: dict[str, Any]) -> None:
    """The answer is a tool error with the numbers, and the record says the same."""
    sentence, block = [block["text"] for block in result["content"]]
    # A modern result also has its type and the server's name.
    assert result.keys() - {"resultType"} == {"content", "isError", "_meta"}
    assert result["isError"] is True
    assert {key: value for key, value in result["_meta"].items() if not key.endswith("serverInfo")} == {META: numbers}
    assert json.loads(block) == numbers
    limit = numbers["idleMs"] if numbers["deadline"] == "idle" else numbers["ceilingMs"]
    assert f"{limit / 1000:g} s" in sentence
    assert numbers["deadline"] in sentence
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["done"]) == ("timed_out", "deadline", False)
    assert (record["answered"], record["steps_done"]) == (True, numbers["progressCount"] or None)
    assert record["duration_ms"] == pytest.approx(numbers["elapsedMs"], abs=5)
    (settled,) = probe.events("call.settled")
    assert (settled["sent_after_cancel"], settled["answered"]) == (0, True)


@pytest.mark.parametrize("revision", LEGACY)
async def test_every_revision_is_told_which_deadline_passed(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = await probe.client(revision)
        _, result = await timed(client, "work", silentS=31)
        check_expired(probe, result, expired("idle", 30_000, 0))


async def test_the_deadlines_are_settings(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], idle_deadline_s=2, ceiling_deadline_s=5) as probe:
        client = await probe.client()
        _, idle = await timed(client, "work", silentS=3)
        assert idle["_meta"][META] == expired("idle", 2000, 0, idle_ms=2000, ceiling_ms=5000)
        _, ceiling = await timed(client, "work", reports=10)
        assert ceiling["_meta"][META]["deadline"] == "ceiling"


@each_era
async def test_the_error_ends_the_stream_and_nothing_follows(revision: str, autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], progress_burst=1, progress_per_second=1) as probe:
        client = await probe.of(revision)
        async with client.post(tool_call(client, "work", {"reports": 100, "everyS": 7}, progressToken="t")) as answer:
            messages = await heard(client, answer)
        assert steps(messages) == [*range(1, 43), None]
        assert messages[-1]["result"]["isError"] is True
        mark = probe.engine.log.last
        await trio.sleep(1000)
        assert emitted_after(probe, mark) == []


async def test_a_disconnected_call_keeps_its_deadline(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = await probe.client()
        request = tool_call(client, "work", {"silentS": 100})
        async with client.post(request) as answer:
            (priming,) = await answer.first(1)
        await trio.sleep(50)
        async with client.get(priming.id) as answer:
            (response,) = [event.message for event in await client.read(answer)]
        check_expired(probe, client.result(response), expired("idle", 30_000, 0))


async def test_a_deadline_within_the_first_interval_is_told_by_one_object(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM], idle_deadline_s=5) as probe:
        client = probe.modern()
        async with client.post(tool_call(client, "work", {"silentS": 6})) as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
            (message,) = await heard(client, answer)
        check_expired(probe, message["result"], expired("idle", 5000, 0, idle_ms=5000))


# Tools whose bounds need more, and tools that wait for a person.


@pytest.mark.parametrize(
    ("name", "arguments", "seconds"),
    [
        ("progress", {"steps": 100, "step_ms": 5000}, 500),
        ("sync_with_progress", {"itemCount": 100, "delayPerItemMs": 1000}, 100),
        ("simple_tool", {"delayMs": 5000}, 5),
    ],
)
async def test_a_built_in_tool_gets_through_at_its_bounds(
    name: str, arguments: dict[str, Any], seconds: float, probe: Probe, autojump_clock: MockClock
) -> None:
    client = await probe.client()
    took, result = await timed(client, name, None, **arguments)
    assert took == pytest.approx(seconds, abs=0.01)
    assert "isError" not in result


async def test_a_person_may_take_almost_five_minutes(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    async with client.post(client.request("tools/call", {"name": "sampling_demo"}, "it")) as answer:
        (_, question) = await answer.first(2)
        await trio.sleep(299)
        sampled = {"role": "assistant", "content": {"type": "text", "text": "leaves"}, "model": "m"}
        await client.answer(question.message["id"], sampled)
        *_, response = [event.message for event in await client.read(answer)]
    assert client.result(response)["structuredContent"] == {"text": "leaves"}


async def test_a_question_that_nobody_answers_is_named_by_its_own_limit(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """2025-11-25 basic/lifecycle, Timeouts: "the sender SHOULD issue a cancellation notification for that request"."""
    client = await probe.client()
    took, result = await timed(client, "sampling_demo")
    assert took == pytest.approx(300, abs=0.01)
    assert result["isError"] is True
    assert "did not answer sampling/createMessage within 300 s" in result["content"][0]["text"]
    (question,) = [note for note in client.notes if "id" in note]
    (withdrawn,) = client.noted("notifications/cancelled")
    assert withdrawn["requestId"] == question["id"]
    assert probe.record()["outcome"] == "tool_error"


async def test_a_question_is_withdrawn_when_the_deadline_passes_first(autojump_clock: MockClock) -> None:
    async with running(toolsets=[CUSTOM]) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "ask"}, "it")
        async with client.post(request) as answer:
            events = [event.message for event in await client.read(answer)]
        assert [event.get("method") for event in events] == ["elicitation/create", "notifications/cancelled", None]
        assert events[1]["params"]["requestId"] == events[0]["id"]
        check_expired(probe, client.result(events[2]), expired("idle", 30_000, 0))


# Between the deadline and the end of the work: a tool may clean up in a shield before its scope exits.


async def _tidy(context: ToolContext) -> ToolResult:
    """Reports twice, sleeps beyond its idle deadline, then goes on reporting while it cleans up for six seconds."""
    context.report_progress(1)
    context.report_progress(2)
    try:
        await context.sleep(1000)
    finally:
        with trio.CancelScope(shield=True):
            for step in (3, 4, 5):
                await trio.sleep(2)
                context.report_progress(step)
                context.log("error", "still here")
    return structured({"done": True})


TIDY = Toolset("tidy", (Tool("tidy", "Tidy", "Cleans up for long", _tidy),))


@pytest.mark.parametrize("after", [0.2, 2.5, 5.9])
async def test_a_cancellation_between_the_deadline_and_the_end_of_the_work_comes_too_late(
    after: float, autojump_clock: MockClock
) -> None:
    """ "Exactly one of the two wins", and the deadline was first."""
    async with running(toolsets=[TIDY]) as probe:
        client = await probe.client()
        async with client.post(client.request("tools/call", {"name": "tidy"}, "it")) as answer:
            await trio.sleep(30 + after)
            await client.cancel("it")
            *_, response = [event.message for event in await client.read(answer)]
        assert "no progress for 30 s" in client.result(response)["content"][0]["text"]
        record = probe.record()
        assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("timed_out", "deadline", True)
        assert record["cancel_latency_ms"] == pytest.approx(6000, abs=5), "it counts from the deadline"
        cancelled = [(event["by"], event["effect"]) for event in probe.events("call.cancelled")]
        assert cancelled == [("deadline", True), ("notification", False)]


async def test_work_is_not_heard_after_its_deadline_and_what_it_said_before_is(autojump_clock: MockClock) -> None:
    """Step 2 waited for the rate when the deadline passed; it is sent before the error, but nothing that followed."""
    async with running(
        toolsets=[TIDY], idle_deadline_s=2, progress_burst=1, progress_per_second=1, ceiling_deadline_s=0.5
    ) as probe:
        client = await probe.client()
        took, result = await timed(client, "tidy")
        assert took == pytest.approx(6.5, abs=0.01)
        assert [note["progress"] for note in client.noted("notifications/progress")] == [1, 2]
        assert client.noted("notifications/message") == []
        assert result["_meta"][META]["progressCount"] == 2
        (settled,) = probe.events("call.settled")
        assert (settled["sent_after_cancel"], settled["scope_exit_ms"]) == (0, pytest.approx(6000, abs=5))
        assert len(probe.events("message.dropped")) == 6, "three reports and three log messages"


async def test_progress_after_the_deadline_moves_nothing(autojump_clock: MockClock) -> None:
    async with running(toolsets=[TIDY]) as probe:
        client = await probe.client()
        _, result = await timed(client, "tidy")
        assert result["_meta"][META] == expired("idle", 36_000, 2)


async def test_a_result_that_comes_after_the_deadline_is_the_deadlines_answer(autojump_clock: MockClock) -> None:
    async def late(context: ToolContext) -> ToolResult:
        with trio.CancelScope(shield=True):
            await trio.sleep(31)
        return structured({"done": True})

    async with running(toolsets=[Toolset("late", (Tool("late", "Late", "Ignores its deadline", late),))]) as probe:
        client = await probe.client()
        _, result = await timed(client, "late")
        assert result["_meta"][META] == expired("idle", 31_000, 0)
        record = probe.record()
        assert (record["outcome"], record["cancel_latency_ms"]) == ("timed_out", pytest.approx(1000, abs=5))
