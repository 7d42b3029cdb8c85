"""Evidence against a story whose teller knows whose each entry is: many calls on few connections, with few ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probe.observe import events
from probe.observe.evidence import Evidence
from probe.observe.log import EventLog

from ..support.facts import emitted, received

IDS = st.sampled_from([5, "5", 6])


@dataclass(eq=False)
class Connection:
    """`outbox`: whose the messages on its standalone stream are, in order; `taken` of them a socket took."""

    label: str
    number: int
    session: str
    outbox: list[list[str]] = field(default_factory=list)
    taken: int = 0


@dataclass(eq=False)
class Call:
    """A call that runs, on a `draft` stream or another one. `at` is who reads that, if anybody does."""

    name: str
    exchange: int
    id: Any
    session: str
    at: Connection | None
    stream: str
    draft: bool
    position: int = 0
    taken: int = 0


class Story:
    """Tells the facts in the order of the engine, and notes for each call which entries are its own."""

    def __init__(self) -> None:
        self.log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**8)
        self.evidence = Evidence(1000)
        self.expected: dict[str, list[int]] = {}
        self.connections: list[Connection] = []
        self.calls: list[Call] = []
        self.numbers = 0

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def tell(self, fact: events.Event, *calls: str) -> int:
        entry = self.log.entry(self.log.append(fact))
        assert entry is not None
        self.evidence.take(entry)
        for call in calls:
            self.expected.setdefault(call, []).append(entry.seq)
        return entry.seq

    def ask(self, at: Connection, message: Any, *calls: str) -> int:
        exchange = self.number()
        self.tell(received({"jsonrpc": "2.0", **message}, exchange, at.session, connection=at.label), *calls)
        return exchange

    def say(self, at: Connection, id: Any, exchange: int, *calls: str) -> None:
        """Answer in one piece."""
        self.tell(emitted({"jsonrpc": "2.0", "id": id, "result": {}}, exchange, at.session), *calls)
        self.tell(events.MessagesDelivered(exchange, at.session, None, 1, 1), *calls)

    def announce(self, call: Call) -> None:
        """On the stream that all calls share."""
        if call.at is not None:
            call.at.outbox.append([call.name])
            place = {"stream": "g1", "position": len(call.at.outbox), "call": call.name}
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            self.tell(emitted(note, None, call.at.session, **place), call.name)

    def say_own(self, call: Call, message: Any, *, named: bool = True) -> None:
        call.position += 1
        body, name = {"jsonrpc": "2.0", **message}, call.name if named else None
        place = {"stream": call.stream, "position": call.position}
        self.tell(emitted(body, call.exchange, call.session, call=name, **place), call.name)

    def connect(self) -> None:
        number = self.number()
        it = Connection(f"w{number}", number, f"s{number}")
        self.tell(events.ConnectionOpened(it.label, "websocket", number, "::1:5"))
        self.tell(events.StreamOpened(None, it.session, "g1", "standalone"))
        self.connections.append(it)

    def start(self, at: Connection, id: Any, *, draft: bool) -> None:
        if any(call.at is at and (call.id, type(call.id)) == (id, type(id)) for call in self.calls):
            return
        name = f"c{self.number()}"
        exchange = self.ask(at, {"id": id, "method": "tools/call", "params": {}}, name)
        call = Call(name, exchange, id, at.session, at, f"p{exchange}", draft)
        if draft:
            self.tell(events.StreamOpened(exchange, at.session, call.stream, "resumable"), name)
            params = {"stream": {"streamId": f"uuid-{name}"}}
            self.say_own(call, {"method": "notifications/stream/create", "params": params}, named=False)
        self.tell(events.CallStarted(name, exchange, at.session, None, id, "tools/call", "tool", None), name)
        if not draft:
            self.tell(events.StreamOpened(exchange, at.session, call.stream, "response"), name)
        self.calls.append(call)

    def progress(self, call: Call) -> None:
        self.say_own(call, {"method": "notifications/progress"})

    def deliver(self, at: Connection, most: int) -> None:
        first, last = at.taken + 1, min(len(at.outbox), at.taken + most)
        if first <= last:
            whose = dict.fromkeys(call for calls in at.outbox[first - 1 : last] for call in calls)
            self.tell(events.MessagesDelivered(at.number, at.session, "g1", first, last), *whose)
            at.taken = last
        for call in self.calls:
            if call.at is at and call.taken < call.position:
                place = call.taken + 1, call.position
                self.tell(events.MessagesDelivered(at.number, call.session, call.stream, *place), call.name)
                call.taken = call.position

    def question(self, call: Call) -> None:
        """Asked on its own stream, and answered by whoever reads that; the answer to another id is nobody's."""
        if call.at is None:
            return
        id = f"q{call.exchange}-{call.position}"
        self.say_own(call, {"id": id, "method": "elicitation/create", "params": {}})
        self.ask(call.at, {"id": "q-none", "result": {}})
        self.ask(call.at, {"id": id, "result": {}}, call.name)

    def cancel(self, call: Call) -> None:
        if call.at is not None:
            self.ask(call.at, {"method": "notifications/cancelled", "params": {"requestId": call.id}}, call.name)
            self.stopped(call, "notification")

    def stopped(self, call: Call, by: str) -> None:
        self.tell(events.CallCancelled(call.name, call.session, None, call.id, by, None, True), call.name)

    def settle(self, call: Call, *, answered: bool = True) -> None:
        outcome = "completed", answered, 1.0, None, None, None, None, 0
        self.tell(events.CallSettled(call.name, call.session, None, call.id, *outcome), call.name)
        if answered:
            self.say_own(call, {"id": call.id, "result": {}})
        if call.draft:
            self.say_own(call, {"method": "notifications/stream/end"}, named=False)
        self.tell(events.StreamEnded(call.session, call.stream, call.position), call.name)
        self.calls.remove(call)

    def close(self, at: Connection, *, first: bool) -> None:
        """Its calls are cancelled, before or after its end is told; those on draft streams go on."""
        mine = [call for call in self.calls if call.at is at]
        ended = [call for call in mine if not call.draft]
        if not first:
            for call in ended:
                self.stopped(call, "disconnect")
        seq = self.tell(events.ConnectionClosed(at.label, at.session, 1006, "client", at.taken))
        for call in mine:
            self.expected[call.name].append(seq)
            call.at = None
        if first:
            for call in ended:
                self.stopped(call, "disconnect")
        for call in ended:
            self.settle(call, answered=False)
        self.connections.remove(at)

    def resume(self, call: Call, at: Connection) -> None:
        """Also by one that reads it already."""
        alike = [other for other in self.calls if other.at is at and other is not call and other.id == call.id]
        if not call.draft or alike:
            return
        params = {"streamId": f"uuid-{call.name}"}
        exchange = self.ask(at, {"id": "resume", "method": "stream/resume", "params": params}, call.name)
        self.tell(events.StreamResumed(call.session, call.stream, at.number, call.taken, 0), call.name)
        call.at = at
        self.say(at, "resume", exchange, call.name)

    def poll(self, call: Call, at: Connection) -> None:
        if call.draft:
            params = {"streamId": f"uuid-{call.name}"}
            exchange = self.ask(at, {"id": "poll", "method": "stream/poll", "params": params}, call.name)
            self.say(at, "poll", exchange, call.name)

    def ping(self, at: Connection, id: Any) -> None:
        """The business of nobody, with an id that calls have, too."""
        exchange = self.ask(at, {"id": id, "method": "ping"})
        self.say(at, id, exchange)
        self.ask(at, {"method": "notifications/cancelled", "params": {"requestId": "unknown"}})
        self.ask(at, {"id": "poll", "method": "stream/poll", "params": {"streamId": "unknown"}})

    def lose(self, call: Call) -> None:
        if call.draft:
            self.tell(events.StreamLost(call.session, call.stream, "overflow", 1), call.name)
            self.stopped(call, "disconnect")
            outcome = "cancelled", False, 1.0, "disconnect", 0.0, None, None, 0
            self.tell(events.CallSettled(call.name, call.session, None, call.id, *outcome), call.name)
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
