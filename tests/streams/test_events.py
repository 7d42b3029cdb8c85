"""What the event log and the tables tell of draft streams."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import trio
from trio.testing import MockClock

from ..support.probe import Probe
from .links import Link, linked, shape
from .tools import SLOW


def told(probe: Probe, *kinds: str) -> list[dict[str, Any]]:
    opened = {(event["session"], event["stream"]) for event in probe.events("stream.opened") if resumable(event)}
    return [event for event in probe.events(*kinds) if (event["session"], event["stream"]) in opened]


def resumable(event: dict[str, Any]) -> bool:
    return bool(event["purpose"] == "resumable")


async def test_opened_and_ended(link: Link, autojump_clock: MockClock) -> None:
    await link.start("progress", SLOW, id="it", token="t")
    await trio.sleep(10)
    assert len(await link.now()) == 6
    (opened,) = [event for event in link.probe.events("stream.opened") if resumable(event)]
    assert (opened["session"], opened["stream"]) == (link.label, "p1")
    (ended,) = told(link.probe, "stream.ended")
    assert (ended["stream"], ended["messages"]) == ("p1", 7)
    delivered = told(link.probe, "message.delivered", "messages.delivered")
    assert [place for event in delivered for place in range(event["first"], event["last"] + 1)] == list(range(1, 8))
    assert told(link.probe, "stream.resumed", "stream.lost") == []


async def test_resumed_tells_from_where_and_how_much_waits(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back(10)
    await link.rest(link.resume(stream))
    await trio.sleep(5)
    await link.rest(link.resume(stream, received=4))
    label = told(link.probe, "stream.ended")[0]["session"]
    resumed = link.probe.events("stream.resumed")
    assert [(event["session"], event["stream"], event["after"], event["waiting"]) for event in resumed] == [
        (label, "p1", 1, 6),
        (label, "p1", 4, 3),
    ]
    asked = {event["seq"]: event for event in link.probe.events("message.received")}
    assert [asked[event["cause"]]["method"] for event in resumed] == ["stream/resume"] * 2
    for event in resumed:
        same = "exchange", "connection"
        assert [event[name] for name in same] == [asked[event["cause"]][name] for name in same], "those of the reader"
    assert len({event["connection"] for event in resumed}) == 1
    assert len({event["exchange"] for event in resumed}) == 2


async def test_what_is_refused_is_no_resume(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW)
    link = await link.back(1)
    await link.error(link.resume(stream))
    await link.error(link.resume("unknown"))
    await link.error(link.resume(stream, received=100))
    assert link.probe.events("stream.resumed") == []


async def test_ended_is_told_also_when_nobody_reads_and_lost_when_nobody_comes(
    link: Link, autojump_clock: MockClock
) -> None:
    await link.start("progress", SLOW, token="t")
    await link.drop()
    await trio.sleep(10)
    assert [event["messages"] for event in told(link.probe, "stream.ended")] == [7]
    await trio.sleep(3600)
    await trio.testing.wait_all_tasks_blocked()
    assert [(event["why"], event["messages"]) for event in told(link.probe, "stream.lost")] == [("abandoned", 6)]
    assert len(told(link.probe, "stream.ended")) == 1


async def test_nothing_is_sent_after_a_cancellation(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("stubborn", id="it", token="t")
    link = await link.back()
    await link.say(link.resume(stream, id="r"))
    await link.now()
    await link.cancel("it")
    await trio.sleep(60)
    assert shape(await link.now()) == ["notifications/stream/end", "r"]
    settled = [event for event in link.probe.events("call.settled") if event["request_id"] == "it"]
    assert [(event["sent_after_cancel"], event["answered"]) for event in settled] == [(0, False)]
    dropped = link.probe.events("message.dropped")
    assert len(dropped) >= 5, "what was said is recorded as not sent"


async def test_a_record_counts_what_was_emitted_and_what_was_delivered(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link:
        stream = await link.start("progress", SLOW, id="it", token="t")
        link = await link.back(10)
        record = probe.record()
        assert (record["emitted"], record["delivered"], record["answered"]) == (4, 0, True)
        assert not record["answer_delivered"]
        await link.rest(link.resume(stream))
        record = probe.record()
        assert (record["emitted"], record["delivered"], record["answer_delivered"]) == (4, 4, True)
        await trio.sleep(5)
        await link.rest(link.resume(stream, received=0))
        assert probe.record()["delivered"] == 4, "what is sent again counts once"


async def test_the_answer_to_a_poll_is_about_the_call_of_the_stream(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    await link.poll(stream)
    (call,) = {event["call"] for event in link.probe.events("call.started")}
    polls = [event for event in link.probe.events("message.emitted") if "pendingMessages" in str(event["message"])]
    assert [event["call"] for event in polls] == [call]


def row(probe: Probe) -> Any:
    """The row of the one draft stream in the table of streams."""
    probe.engine.observer.catch_up()
    tables = probe.engine.observer.tables
    rows = map(json.loads, tables.rows("streams", tables.all("streams")))
    (found,) = [each for each in rows if each["purpose"] == "resumable"]
    return SimpleNamespace(**found)


async def test_the_table_of_streams_follows(link: Link, autojump_clock: MockClock) -> None:
    probe = link.probe
    stream = await link.start("progress", {"steps": 10, "step_ms": 1000}, id="it", token="t")
    await link.now()
    assert (row(probe).status, row(probe).connected, row(probe).waiting) == ("live", True, 0)
    link = await link.back(5.5)
    assert (row(probe).status, row(probe).connected, row(probe).waiting) == ("live", False, 5)
    await link.say(link.resume(stream, id="r"))
    await link.now()
    assert (row(probe).connected, row(probe).waiting, row(probe).resumed) == (True, 0, 1)
    await trio.sleep(10)
    await link.now()
    assert (row(probe).status, row(probe).messages, row(probe).delivered) == ("completed", 13, 13)
