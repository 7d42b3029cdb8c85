"""Modern calls in memory and in virtual time, told random stories of starts, disconnects and completions.

Whatever happens: each call is answered or ended by its client's going, exactly one of the two; progress increases;
nothing comes after the end; and when the story is over the engine is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.calls import heard, tool_call
from ..support.http import Answer
from ..support.inside import SERVICES, engine_tasks
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.shown import newest

IDLE_S = 4.0
"""The idle deadline of the engines in these stories; "too quiet" runs into it."""

# What is called, with which arguments, and after how many seconds it ends by itself.
TOOLS: dict[str, tuple[str, dict[str, Any], float]] = {
    "at once": ("chatty", {}, 0),
    "bad": ("simple_tool", {"delayMs": -1}, 0),
    "no wait": ("simple_tool", {"delayMs": 0}, 0),
    "short": ("simple_tool", {"delayMs": 1500}, 1.5),
    "steps": ("progress", {"steps": 4, "step_ms": 700}, 2.8),
    "flood": ("progress", {"steps": 30, "step_ms": 0}, 0),
    "fast": ("progress", {"steps": 30, "step_ms": 10}, 0.3),
    "long": ("progress", {"steps": 10, "step_ms": 3000}, 30),
    "too quiet": ("progress", {"steps": 2, "step_ms": 5000}, IDLE_S),
    "logs": ("test_tool_with_logging", {}, 0.1),
    "asks": ("test_streaming_elicitation", {}, 0.05),
}


@dataclass(frozen=True)
class Part:
    """One call in a story: when it is sent, how long its client stays, and how it reads.

    `patience_s` None: it stays to the end. `turns`: so many turns of the scheduler later than it says. `reads` False:
    it looks at nothing before it goes.
    """

    at_s: float
    kind: str
    token: Any
    logs: bool
    patience_s: float | None
    turns: int
    reads: bool


tokens = st.sampled_from([None, 0, "", "0", "t", 2**63])
times = st.one_of(st.sampled_from([0.0, 0.1, 0.7, 1.5, 2.8, 4.0]), st.floats(0, 5).map(lambda at: round(at, 3)))
parts = st.builds(
    Part,
    at_s=times,
    kind=st.sampled_from(sorted(TOOLS)),
    token=tokens,
    logs=st.booleans(),
    patience_s=st.one_of(st.none(), times),
    turns=st.integers(0, 6),
    reads=st.booleans(),
)


@dataclass
class Seen:
    """What one client saw."""

    part: Part
    id: Any
    messages: list[dict[str, Any]] = field(default_factory=list)
    status: int = 0
    whole: bool = False


# A whole engine, and a schema for each of its messages: thousands of stories would take minutes.
@settings(max_examples=min(settings.default.max_examples, 600))
@given(
    story=st.lists(parts, min_size=1, max_size=12),
    keep_alive_s=st.sampled_from([0.5, 600.0]),
    drain_at_s=st.sampled_from([None, None, 1.0, 2.8]),
)
def test_whatever_the_story_each_call_has_one_end(
    story: list[Part], keep_alive_s: float, drain_at_s: float | None
) -> None:
    trio.run(tell, story, keep_alive_s, drain_at_s, clock=MockClock(autojump_threshold=0))


async def tell(story: list[Part], keep_alive_s: float, drain_at_s: float | None) -> None:
    async with running(
        keep_alive_s=keep_alive_s, progress_burst=5, progress_per_second=10, idle_deadline_s=IDLE_S, grace_s=1
    ) as probe:
        client = probe.modern()
        # Numbers and strings that look alike, and one id for two requests: nothing but the stream tells them apart.
        seen = [Seen(part, number // 2 if number % 3 else str(number // 2)) for number, part in enumerate(story)]
        async with trio.open_nursery() as nursery:
            for one in seen:
                nursery.start_soon(play, client, one)
            if drain_at_s is not None:
                nursery.start_soon(drain, probe, drain_at_s)
        await wait_all_tasks_blocked()
        for one in seen:
            check_seen(one, drain_at_s)
        check_log(probe, seen)
        assert engine_tasks() == SERVICES
        assert (probe.engine.modern.running, probe.app.mcp._open) == (set(), 0)


async def drain(probe: Probe, at_s: float) -> None:
    await trio.sleep(at_s)
    await probe.engine.drain()


async def play(client: Modern, one: Seen) -> None:
    """Send one request, and go when its time has come."""
    part = one.part
    await trio.sleep(part.at_s)
    name, arguments, _ = TOOLS[part.kind]
    meta = {} if part.token is None else {"progressToken": part.token}
    level = {"io.modelcontextprotocol/logLevel": "debug"} if part.logs else {}
    gone = trio.Event()
    async with trio.open_nursery() as nursery:
        if part.patience_s is not None:
            nursery.start_soon(leave, gone, part)
        async with client.post(tool_call(client, name, arguments, one.id, **meta, **level), gone=gone) as answer:
            one.status = answer.status
            await take(client, one, answer, gone)
        nursery.cancel_scope.cancel()


async def leave(gone: trio.Event, part: Part) -> None:
    await trio.sleep(part.patience_s or 0)
    for _ in range(part.turns):
        await trio.lowlevel.checkpoint()
    gone.set()


async def take(client: Modern, one: Seen, answer: Answer, gone: trio.Event) -> None:
    if one.part.patience_s is not None and not one.part.reads:
        await gone.wait()
    if answer.status not in (0, 503):
        one.messages = await heard(client, answer)
    elif answer.status == 503:
        one.messages = [await answer.json()]
    one.whole = bool(one.messages) and "id" in one.messages[-1]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def check_seen(one: Seen, drain_at_s: float | None) -> None:
    """What a client saw is in order, its own, and ends with the response or with the client's going."""
    part = one.part
    responses = [message for message in one.messages if "id" in message]
    assert responses in ([], one.messages[-1:]), "nothing follows the response, of which there is one"
    assert all(same(response["id"], one.id) for response in responses)
    if part.patience_s is None or (drain_at_s is None and part.patience_s > TOOLS[part.kind][2] + 0.001):
        assert one.whole, "who stays is answered"
    reports = [message["params"] for message in one.messages if message.get("method") == "notifications/progress"]
    assert all(same(report["progressToken"], part.token) for report in reports)
    assert all(before["progress"] < after["progress"] for before, after in pairwise(reports))
    assert part.logs or all(message.get("method") != "notifications/message" for message in one.messages)
    if one.whole and reports and part.kind not in ("too quiet", "long", "asks") and "result" in one.messages[-1]:
        assert reports[-1]["progress"] == reports[-1]["total"], "the last report is never lost"


def check_log(probe: Probe, seen: Sequence[Seen]) -> None:
    """Every call that began has ended once: answered, or ended by its client's going, and silent from then on."""
    emitted = probe.events("message.emitted")
    settled = {event["call"]: event for event in probe.events("call.settled")}
    started = [event["call"] for event in probe.events("call.started")]
    assert Counter(started) == Counter(event["call"] for event in probe.events("call.settled"))
    cancelled = {event["call"]: event for event in probe.events("call.cancelled") if event["effect"]}
    assert len(cancelled) == sum(event["effect"] for event in probe.events("call.cancelled")), "the first cause wins"
    for call, event in settled.items():
        gone = event["cancelled_by"] == "disconnect"
        assert event["answered"] is not gone
        assert (event["outcome"] == "disconnected") is gone
        assert event["sent_after_cancel"] == 0
        if gone:
            assert not [e for e in emitted if e["call"] == call and e["seq"] > cancelled[call]["seq"]]
    check_answers(probe, seen)


def check_answers(probe: Probe, seen: Sequence[Seen]) -> None:
    """As many responses were sent as calls were answered; what clients got is a part of it. Refusals come with 503."""
    answered = [record for record in newest(probe.engine.records, 100) if record.answered]
    responses = [event for event in probe.events("message.emitted") if "id" in event["message"]]
    sent = [event for event in responses if event["call"] is not None]
    assert len(sent) == len(answered)
    statuses = {event["exchange"]: event["status"] for event in probe.events("http.response")}
    refused = [event for event in responses if event["call"] is None]
    assert all((event["rpc"], statuses[event["exchange"]]) == ("error", 503) for event in refused)
    got = [one for one in seen if one.whole and one.status != 503]
    assert len(got) <= len(sent)
    for record in newest(probe.engine.records, 100):
        assert record.delivered <= record.emitted
        assert record.done == (record.outcome == "completed")
