"""A stream: its bell, its readers, and what is recorded when a socket has taken a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.core.replay import LogClosedError
from probe.engine.streams.stream import Stream, send
from probe.log.context import Context, Recorder
from probe.log.event_log import EventLog
from probe.log.events import MessagesDelivered, StreamEnded, StreamOpened
from probe.settings import build


def make(**settings: Any) -> tuple[Stream, EventLog]:
    log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**9)
    return Stream("p1", "response", Recorder(log).bind(session="s1", exchange=3), build(settings).limits), log


def reader(exchange: int | None = None, connection: str | None = None) -> Recorder:
    log = EventLog(lambda: (0.0, 0.0), max_events=1, max_bytes=1)
    return Recorder(log).bind(exchange=exchange, connection=connection)


async def wakes(stream: Stream, act: Callable[[], Any]) -> bool:
    """Whether something wakes whoever waits for the stream."""
    woken = trio.Event()

    async def wait() -> None:
        await stream.wait_changed()
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        act()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return woken.is_set()


async def test_whatever_changes_wakes_who_waits_for_it() -> None:
    stream, _ = make()
    assert await wakes(stream, lambda: stream.append(b"1"))
    assert await wakes(stream, stream.hang_up)
    assert await wakes(stream, lambda: stream.end(0.0))


def test_whatever_a_reader_must_notice_rings_its_bell() -> None:
    stream, _ = make()
    rung: list[str] = []
    stream.attach(reader(1), lambda: rung.append("old"))
    stream.append(b"1")
    stream.hang_up()
    assert rung == ["old"] * 2
    stream.attach(reader(2), lambda: rung.append("new"))
    assert rung == ["old"] * 3, "the reader that was displaced looks up"
    stream.append(b"2")
    stream.end(0.0)
    assert rung[3:] == ["new"] * 2


def test_a_stream_opens_ends_once_and_tells_how_much_it_carried() -> None:
    stream, log = make()
    stream.append(b"1")
    stream.append(b"2")
    stream.end(5.0)
    stream.end(9.0)
    assert stream.ended_at == 5.0
    opened, ended = log.since(0, 10).entries
    assert opened.context == ended.context == Context(exchange=3, session="s1", stream="p1")
    assert (opened.fact, opened.cause) == (StreamOpened("response"), None)
    assert (ended.fact, ended.cause) == (StreamEnded(2), opened.seq)
    with pytest.raises(LogClosedError):
        stream.append(b"3")


def test_a_newer_reader_displaces_the_one_before_it() -> None:
    stream, _ = make()
    old = stream.attach(reader(1))
    assert stream.dismissed(old) is None
    new = stream.attach(reader(2))
    assert (stream.dismissed(old), stream.dismissed(new)) == ("displaced by a newer connection", None)
    stream.detach(old)
    assert stream.reader is new, "an old connection that goes leaves the new one alone"
    stream.detach(new)
    assert stream.reader is None


def test_two_connections_of_one_exchange_number_are_still_two() -> None:
    stream, _ = make()
    old, new = stream.attach(reader(1)), stream.attach(reader(1))
    assert (stream.dismissed(old) is None, stream.dismissed(new) is None) == (False, True)


def test_a_hang_up_dismisses_the_present_reader_only() -> None:
    stream, _ = make()
    present = stream.attach(reader(1))
    stream.hang_up()
    assert stream.dismissed(present) == "hang-up"
    assert stream.dismissed(stream.attach(reader(2))) is None


def test_a_hang_up_with_nobody_there_is_not_kept_for_the_next_reader() -> None:
    stream, _ = make()
    stream.hang_up()
    assert stream.dismissed(stream.attach(reader(1))) is None


def say(stream: Stream, log: EventLog, *calls: str | None) -> list[int]:
    """One message for each of these calls; the entries of their emission."""
    first = log.last + 1
    for call in calls:
        assert send(Recorder(log).bind(call=call), stream, {"jsonrpc": "2.0", "method": "notifications/message"})
    return [*range(first, log.last + 1)]


def deliveries(log: EventLog) -> list[tuple[int | None, str | None, int, int, int | None]]:
    """Exchange, call, first, last and cause of each delivery."""
    found = [entry for entry in log.since(0, 10_000).entries if isinstance(entry.fact, MessagesDelivered)]
    return [
        (entry.context.exchange, entry.context.call, entry.fact.first, entry.fact.last, entry.cause) for entry in found
    ]


def test_delivery_is_recorded_for_each_reader_and_names_the_emission() -> None:
    """Delivered and emitted are different facts; a message that is sent again to another reader is delivered twice."""
    stream, log = make()
    first, second, _ = say(stream, log, "c1", "c1", "c1")
    stream.delivered(1, 2, reader(7))
    stream.delivered(2, 3, reader(8))
    stream.delivered(1, 3, reader(9))
    assert deliveries(log) == [(7, "c1", 1, 2, first), (8, "c1", 2, 3, second), (9, "c1", 1, 3, first)]


def test_a_delivery_is_split_so_that_each_entry_is_about_one_call() -> None:
    stream, log = make()
    seqs = say(stream, log, "c1", "c1", "c2", None, "c1")
    stream.delivered(1, 5, reader(7))
    assert deliveries(log) == [
        (7, "c1", 1, 2, seqs[0]),
        (7, "c2", 3, 3, seqs[2]),
        (7, None, 4, 4, seqs[3]),
        (7, "c1", 5, 5, seqs[4]),
    ]


def test_on_a_connection_that_carries_everything_a_delivery_keeps_the_exchange_of_its_stream() -> None:
    stream, log = make()
    say(stream, log, "c1")
    stream.delivered(1, 1, reader(connection="w5"))
    delivered = log.since(0, 100).entries[-1].context
    assert (delivered.connection, delivered.exchange) == ("w5", 3)


def test_messages_on_a_standalone_stream_belong_to_no_exchange() -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=100, max_bytes=10**9)
    stream = Stream("g1", "standalone", Recorder(log).bind(exchange=4), build({}).limits)
    say(stream, log, "c1")
    opened, emitted = log.since(0, 100).entries
    assert (opened.context.exchange, emitted.context.exchange) == (4, None)


def test_what_was_pushed_out_unread_is_not_remembered_for_ever() -> None:
    stream, log = make(replay_messages=8)
    say(stream, log, *["c1"] * 1000)
    assert len(stream._recorders) <= 17
    stream.delivered(stream.replay.first, stream.replay.last, reader(1))
    assert deliveries(log)[0][1:4] == ("c1", 993, 1000)
