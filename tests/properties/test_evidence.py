"""Evidence against a story that tells each fact with the context and the cause that the engine gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probe.log import events
from probe.views.fold import Views

from ..support.facts import Told, cancelled, emitted, received, settled, started
from ..support.views import Evidence

IDS = st.sampled_from([5, "5", 6])


@dataclass(eq=False)
class Connection:
    """`outbox` has a call and the entry of each message on its standalone stream; a socket took `taken` of them."""

    label: str
    number: int
    session: str
    opened: int
    outbox: list[tuple[str, int]] = field(default_factory=list)
    taken: int = 0


@dataclass(eq=False)
class Call:
    """A call that runs, on a `draft` stream or another one. `at` is the connection that reads that, if any does."""

    name: str
    exchange: int
    id: Any
    session: str
    carrier: str
    at: Connection | None
    draft: bool
    begun: int = 0
    sent: list[int] = field(default_factory=list)
    taken: int = 0

    @property
    def place(self) -> dict[str, Any]:
        stream = {"session": self.session, "stream": f"p{self.exchange}", "call": self.name}
        return {**stream, "exchange": self.exchange, "connection": self.carrier}


class Story:
    """Tells the facts in the order of the engine, and notes for each call which entries are its own."""

    def __init__(self) -> None:
        self.told = Told()
        self.evidence = Evidence(Views())
        self.expected: dict[str, list[int]] = {}
        self.connections: list[Connection] = []
        self.calls: list[Call] = []
        self.numbers = 0

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def tell(self, fact: events.Event, cause: int | None, *calls: str, **context: Any) -> int:
        entry = self.told.entry(fact, cause, **context)
        self.evidence.take(entry)
        self.mark(entry.seq, *calls)
        return entry.seq

    def mark(self, seq: int, *calls: str) -> None:
        for call in calls:
            self.expected.setdefault(call, []).append(seq)

    def ask(self, at: Connection, message: Any, *calls: str, cause: int | None = None, **context: Any) -> int:
        """A message of the client in an exchange of its own; returns its entry."""
        place = {"connection": at.label, "exchange": self.number(), "session": at.session, **context}
        return self.tell(received({"jsonrpc": "2.0", **message}), cause or at.opened, *calls, **place)

    def say(self, at: Connection, id: Any, request: int, *calls: str) -> None:
        """Answer in one piece."""
        place = {"connection": at.label, "exchange": self.numbers, "session": at.session}
        if calls:
            place["call"] = calls[0]
        made = self.tell(emitted({"jsonrpc": "2.0", "id": id, "result": {}}), request, *calls, **place)
        self.tell(events.MessagesDelivered(1, 1), made, *calls, **place)

    def announce(self, call: Call) -> None:
        """On the stream that all calls share."""
        if call.at is not None:
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            place = {"connection": call.at.label, "session": call.at.session, "stream": "g1", "call": call.name}
            position = len(call.at.outbox) + 1
            seq = self.tell(emitted(note, position), call.begun, call.name, **place)
            call.at.outbox.append((call.name, seq))

    def say_own(self, call: Call, message: Any, cause: int | None = None) -> int:
        body = emitted({"jsonrpc": "2.0", **message}, len(call.sent) + 1)
        call.sent.append(self.tell(body, cause or call.begun, call.name, **call.place))
        return call.sent[-1]

    def connect(self) -> None:
        number = self.number()
        label, session = f"w{number}", f"s{number}"
        opened = self.tell(events.ConnectionOpened("websocket", "::1:5"), None, connection=label, exchange=number)
        self.connections.append(Connection(label, number, session, opened))
        self.tell(events.StreamOpened("standalone"), opened, connection=label, session=session, stream="g1")

    def start(self, at: Connection, id: Any, *, draft: bool) -> None:
        if any(call.at is at and (call.id, type(call.id)) == (id, type(id)) for call in self.calls):
            return
        name = f"c{self.number()}"
        request = self.ask(at, {"id": id, "method": "tools/call", "params": {}}, name)
        call = Call(name, self.numbers, id, at.session, at.label, at, draft)
        if draft:
            self.tell(events.StreamOpened("resumable"), request, name, **call.place)
            self.say_own(call, {"method": "notifications/stream/create"}, request)
        beside = {**call.place, "stream": None}
        call.begun = self.tell(started(id), request, name, **beside)
        if not draft:
            self.tell(events.StreamOpened("response"), request, name, **call.place)
        self.calls.append(call)

    def progress(self, call: Call) -> None:
        self.say_own(call, {"method": "notifications/progress"})

    def deliver(self, at: Connection, most: int) -> None:
        place = {"connection": at.label, "session": at.session, "stream": "g1"}
        for name, seq in at.outbox[at.taken : at.taken + most]:
            at.taken += 1
            self.tell(events.MessagesDelivered(at.taken, at.taken), seq, name, call=name, **place)
        for call in self.calls:
            if call.at is at and call.taken < len(call.sent):
                reader = {**call.place, "connection": at.label}
                first = call.taken + 1
                fact = events.MessagesDelivered(first, len(call.sent))
                self.tell(fact, call.sent[call.taken], call.name, **reader)
                call.taken = len(call.sent)

    def question(self, call: Call) -> None:
        """Asked on its own stream, and answered by the connection that reads it; no call owns another id's answer."""
        if call.at is None:
            return
        id = f"q{call.exchange}-{len(call.sent)}"
        asked = self.say_own(call, {"id": id, "method": "elicitation/create", "params": {}})
        self.ask(call.at, {"id": "q-none", "result": {}})
        self.ask(call.at, {"id": id, "result": {}}, call.name, cause=asked, call=call.name)

    def cancel(self, call: Call) -> None:
        if call.at is not None:
            note = {"method": "notifications/cancelled", "params": {"requestId": call.id}}
            asked = self.ask(call.at, note, call.name)
            self.stopped(call, "notification", asked)

    def stopped(self, call: Call, by: str, cause: int | None = None) -> None:
        self.tell(cancelled(call.id, by), cause, call.name, **{**call.place, "stream": None})

    def settle(self, call: Call, *, answered: bool = True) -> None:
        self.tell(settled(call.id), call.begun, call.name, **{**call.place, "stream": None})
        if answered:
            self.say_own(call, {"id": call.id, "result": {}})
        self.tell(events.StreamEnded(len(call.sent)), None, call.name, **call.place)
        self.calls.remove(call)

    def close(self, at: Connection, *, first: bool) -> None:
        """Its calls are cancelled, before or after its end is told; those on draft streams go on."""
        mine = [call for call in self.calls if call.at is at]
        ended = [call for call in mine if not call.draft]
        if not first:
            for call in ended:
                self.stopped(call, "disconnect")
        seq = self.tell(events.ConnectionClosed(1006, "client", at.taken), at.opened, connection=at.label)
        for call in mine:
            self.mark(seq, call.name)
            call.at = None
        if first:
            for call in ended:
                self.stopped(call, "disconnect")
        for call in ended:
            self.settle(call, answered=False)
        self.connections.remove(at)

    def resume(self, call: Call, at: Connection) -> None:
        """Also by a connection that reads it already."""
        if not call.draft:
            return
        asked = self.ask(at, {"id": "resume", "method": "stream/resume", "params": {}}, call.name)
        reader = {**call.place, "connection": at.label, "exchange": self.numbers}
        self.tell(events.StreamResumed(call.taken, 0), asked, call.name, **reader)
        call.at = at
        self.say(at, "resume", asked, call.name)

    def poll(self, call: Call, at: Connection) -> None:
        if call.draft:
            asked = self.ask(at, {"id": "poll", "method": "stream/poll", "params": {}}, call.name)
            self.say(at, "poll", asked, call.name)

    def ping(self, at: Connection, id: Any) -> None:
        """No call's business, with an id that calls have, too."""
        asked = self.ask(at, {"id": id, "method": "ping"})
        self.say(at, id, asked)
        self.ask(at, {"method": "notifications/cancelled", "params": {"requestId": "unknown"}})

    def lose(self, call: Call) -> None:
        if call.draft:
            self.tell(events.StreamLost("overflow", 1), None, call.name, **call.place)
            self.stopped(call, "disconnect")
            over = settled(call.id, "cancelled", answered=False)
            self.tell(over, call.begun, call.name, **{**call.place, "stream": None})
            self.calls.remove(call)


@given(st.data())
def test_the_evidence_of_a_call_is_exactly_its_own(data: st.DataObject) -> None:
    story = Story()
    story.connect()
    of_calls = ["progress", "progress", "announce", "question", "cancel", "settle", "resume", "poll", "lose"]
    for _ in range(data.draw(st.integers(5, 60), "steps")):
        what = data.draw(st.sampled_from(["call", "call", "deliver", "ping", "connect", "close", *of_calls]))
        if what == "connect" or not story.connections:
            story.connect()
        at = data.draw(st.sampled_from(story.connections))
        if what == "call":
            story.start(at, data.draw(IDS), draft=data.draw(st.booleans()))
        elif what == "deliver":
            story.deliver(at, data.draw(st.integers(1, 5)))
        elif what == "ping":
            story.ping(at, data.draw(IDS))
        elif what == "close":
            story.close(at, first=data.draw(st.booleans()))
        elif what in of_calls and story.calls:
            call = data.draw(st.sampled_from(story.calls))
            act = getattr(story, what)
            act(call, at) if what in ("resume", "poll") else act(call)
    for call, seqs in story.expected.items():
        assert story.evidence.of(call) == sorted(seqs), call
        assert story.evidence.complete(call)
