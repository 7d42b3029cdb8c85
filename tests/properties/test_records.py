"""Call records against a teller who knows: it keeps what it says about each call as sets of messages."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from probe.log import ndjson
from probe.log.context import Recorder
from probe.log.event_log import Entry, EventLog
from probe.log.events import (
    CallCancelled,
    CallProgressed,
    MessageDropped,
    MessageEmitted,
    MessageReceived,
    MessagesDelivered,
    StreamOpened,
)
from probe.log.ndjson import End, Header
from probe.views.records import CallRecord
from probe.wire.jsonrpc import encode

from ..support.facts import settled, started
from ..support.logs import load
from ..support.views import Rows
from . import at_most

MANY: Final = 10**9
STREAMS: Final = (("s1", "r1"), ("s1", "r2"), ("s2", "r1"))
OUTCOMES: Final = ("completed", "tool_error", "cancelled")


@dataclass
class Known:
    """What the teller knows of one call; messages are named by their stream and position."""

    name: str
    request: int
    began: int
    tool: bool
    sent: set[Any] = field(default_factory=set)
    taken: set[Any] = field(default_factory=set)
    answers: set[Any] = field(default_factory=set)
    steps: float | None = None
    cancelled: str | None = None
    outcome: str | None = None
    dropped: bool = False

    def shown(self) -> dict[str, Any]:
        return {
            "emitted": len(self.sent),
            "delivered": len(self.sent & self.taken),
            "answer_delivered": bool(self.answers & self.taken),
            "answered": self.outcome is not None and not self.dropped,
            "steps_done": self.steps,
            "cancelled_by": self.cancelled,
            "outcome": self.outcome,
            "done": self.outcome == "completed",
        }


class Teller:
    """Tells of calls whose messages go on three streams, and of readers that take up each stream where they like."""

    def __init__(self, data: st.DataObject) -> None:
        self.log = EventLog(lambda: (1000.0, 1.0), max_events=MANY, max_bytes=MANY)
        self.data = data
        self.calls: dict[str, Known] = {}
        # Of each stream, the call that each message is about, with the entry that emitted it.
        self.streams: dict[Any, list[tuple[str | None, int]]] = {stream: [] for stream in STREAMS}
        for session, stream in STREAMS:
            Recorder(self.log).bind(session=session, stream=stream).append(StreamOpened("response"))

    def tell(self) -> None:
        steps = [self.start, self.emit, self.emit, self.report, self.deliver, self.deliver, self.answer, self.whole]
        steps += [self.drop, self.cancel, self.settle, self.visit, self.other]
        for _ in range(self.data.draw(st.integers(1, 40), label="steps")):
            self.data.draw(st.sampled_from(steps))()

    def about(self, call: Known, **parts: Any) -> Recorder:
        return Recorder(self.log).bind(exchange=call.request, session="s1", call=call.name, **parts)

    def some(self) -> Known | None:
        return self.data.draw(st.sampled_from([*self.calls.values()])) if self.calls else None

    def start(self) -> None:
        name, tool = f"c{len(self.calls) + 1}", self.data.draw(st.sampled_from(["t", "t", "t", None]), label="tool")
        received = MessageReceived(None, "request", "tools/call", 1, b"{}")
        request = Recorder(self.log).append(received)
        began = Recorder(self.log).bind(exchange=request, session="s1", call=name).append(started(5, tool), request)
        self.calls[name] = Known(name, request, began, tool is not None)

    def put(self, call: Known | None, fact: Any, cause: int | None) -> Any:
        """Emit a message on a stream; returns its name."""
        stream = self.data.draw(st.sampled_from(STREAMS), label="stream")
        position = len(self.streams[stream]) + 1
        recorder = Recorder(self.log).bind(session=stream[0], stream=stream[1], call=call and call.name, exchange=1)
        seq = recorder.append(fact(position), cause)
        self.streams[stream].append((None if call is None else call.name, seq))
        return stream, position

    def emit(self) -> None:
        call = self.some()
        if call is not None:
            rpc = self.data.draw(st.sampled_from(["notification", "request"]), label="rpc")
            fact = lambda position: MessageEmitted(position, rpc, "x", None, b"{}")  # noqa: E731
            call.sent.add(self.put(call, fact, call.began))

    def report(self) -> None:
        call = self.some()
        if call is None or call.cancelled is not None:
            return
        progress = self.data.draw(st.integers(1, 9), label="progress")
        if self.data.draw(st.booleans(), label="token"):
            body = encode({"params": {"progress": progress}})
            fact = lambda at: MessageEmitted(at, "notification", "notifications/progress", None, body)  # noqa: E731
            call.sent.add(self.put(call, fact, call.began))
        else:
            self.about(call).append(CallProgressed(progress, None, None), call.began)
        if call.outcome is None:
            call.steps = progress

    def deliver(self) -> None:
        """A reader takes some messages, which it may have had before; each entry is about one call."""
        stream = self.data.draw(st.sampled_from(STREAMS), label="stream")
        there = self.streams[stream]
        if not there:
            return
        first = self.data.draw(st.integers(1, len(there)), label="first")
        last = self.data.draw(st.integers(first, len(there)), label="last")
        for name, run in groupby(range(first, last + 1), key=lambda at: there[at - 1][0]):
            positions = list(run)
            recorder = Recorder(self.log).bind(session=stream[0], stream=stream[1], call=name, exchange=99)
            recorder.append(MessagesDelivered(positions[0], positions[-1]), there[positions[0] - 1][1])
            if name is not None:
                self.calls[name].taken |= {(stream, at) for at in positions}

    def answer(self) -> None:
        call = self.some()
        if call is not None and not call.answers and not call.dropped:
            fact = lambda position: MessageEmitted(position, "response", None, 1, b"{}")  # noqa: E731
            call.answers.add(self.put(call, fact, call.request))

    def whole(self) -> None:
        """An answer in one piece, delivered at once."""
        call = self.some()
        if call is not None and not call.answers and not call.dropped:
            fact = MessageEmitted(None, "error", None, 1, b"{}")
            seq = self.about(call).append(fact, call.request)
            self.about(call).append(MessagesDelivered(1, 1), seq)
            call.answers.add("whole")
            call.taken.add("whole")

    def drop(self) -> None:
        call = self.some()
        if call is not None and not call.answers:
            self.about(call).append(MessageDropped("lost", "response", None, 1, b"{}"), call.request)
            call.dropped = True

    def cancel(self) -> None:
        call = self.some()
        if call is not None:
            effect = call.outcome is None and call.cancelled is None
            self.about(call).append(CallCancelled(1, "notification", None, effect))
            call.cancelled = "notification" if effect else call.cancelled

    def settle(self) -> None:
        call = self.some()
        if call is not None and call.outcome is None:
            call.outcome = self.data.draw(st.sampled_from(OUTCOMES), label="outcome")
            fact = settled(5, call.outcome, cancelled_by=call.cancelled, steps_done=call.steps)
            self.about(call).append(fact, call.began)

    def visit(self) -> None:
        """Another request about the call is answered."""
        call = self.some()
        if call is not None:
            request = self.about(call).append(MessageReceived(None, "request", "tasks/get", 2, b"{}"))
            fact = lambda position: MessageEmitted(position, "response", None, 2, b"{}")  # noqa: E731
            self.put(call, fact, request)

    def other(self) -> None:
        self.put(None, lambda position: MessageEmitted(position, "notification", "x", None, b"{}"), None)


def folded(entries: Iterable[Entry]) -> list[CallRecord]:
    records = Rows("run", 100)
    for entry in entries:
        records.take(entry)
    return [*records.newest_first()]


@at_most(300)
@given(st.data())
def test_the_fold_counts_what_the_teller_knows(data: st.DataObject) -> None:
    teller = Teller(data)
    teller.tell()
    found = folded(teller.log.since(0, MANY).entries)
    assert [item.call for item in found] == [call.name for call in reversed(teller.calls.values()) if call.tool]
    for item in found:
        known = teller.calls[item.call]
        expected = known.shown()
        assert {name: getattr(item, name) for name in expected} == expected
        assert (item.seq, item.exchange, item.started_at) == (known.began, known.request, 1000.0)


@at_most(100)
@given(st.data())
def test_a_saved_log_gives_the_records_that_the_server_showed(data: st.DataObject) -> None:
    teller = Teller(data)
    teller.tell()
    entries = teller.log.since(0, MANY).entries
    saved = load(io.BytesIO(b"".join(ndjson.dump(Header("run", "1", 1.0), entries, End(teller.log.last)))))
    shown = [item.encoded() for item in folded(entries)]
    assert [item.encoded() for item in folded(saved.entries)] == shown
