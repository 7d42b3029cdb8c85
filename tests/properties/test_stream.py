"""A stream whose readers come, go, displace one another and come back with what they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from probe.core.replay import EvictedError
from probe.engine.streams.stream import Reader, Stream
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import MessagesDelivered
from probe.settings import build

from . import steps

BOUND = 8


@dataclass
class Connection:
    """One client connection: what it has got, by position."""

    number: int
    reader: Reader
    cursor: int
    got: dict[int, bytes] = field(default_factory=dict)


class Streams(RuleBasedStateMachine):
    """The model: all messages in a list, all connections, and who has been told to leave."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**9)
        self.stream = Stream("p1", "response", Recorder(self.log), build({"replay_messages": BOUND}).limits)
        self.written: list[bytes] = []
        self.connections: list[Connection] = []
        self.present: Connection | None = None
        self.hung_up = False
        self.taken: set[int] = set()
        self.calls: dict[int, str] = {}
        self.deliveries: list[tuple[int | None, str | None, int, int]] = []

    @initialize()
    def the_first_client_reads(self) -> None:
        self.a_client_comes(0)

    @precondition(lambda self: not self.stream.replay.closed)
    @rule(count=st.integers(1, 4), call=st.sampled_from(["c1", "c2"]))
    def work_says_something(self, count: int, call: str) -> None:
        for _ in range(count):
            position = len(self.written) + 1
            message = b"message %d" % position
            assert self.stream.append(message) == position
            self.stream.keep_recorder(position, Recorder(self.log).bind(call=call))
            self.calls[position] = call
            self.written.append(message)

    @rule(cursor=st.integers(0, 40))
    def a_client_comes(self, cursor: int) -> None:
        """It knows positions up to `cursor`, or all that there are."""
        number = len(self.connections) + 1
        connection = Connection(number, self.stream.attach(self.reader(number)), min(cursor, len(self.written)))
        self.connections.append(connection)
        self.present, self.hung_up = connection, False

    @precondition(lambda self: self.connections)
    @rule(data=st.data(), most=st.integers(1, 5))
    def a_connection_takes_some(self, data: st.DataObject, most: int) -> None:
        """Also a displaced one: its socket may take what is on the way before it notices."""
        connection = data.draw(st.sampled_from(self.connections))
        try:
            rest = list(self.stream.replay.after(connection.cursor))[:most]
        except EvictedError as error:
            assert connection.cursor + 1 < error.first == max(1, len(self.written) - BOUND + 1)
            connection.cursor = error.first - 1
            return
        if rest:
            first, last = connection.cursor + 1, connection.cursor + len(rest)
            self.stream.delivered(first, last, self.reader(connection.number))
            connection.got.update(zip(range(first, last + 1), rest, strict=True))
            connection.cursor = last
            self.taken.update(range(first, last + 1))
            for call, run in groupby(range(first, last + 1), self.calls.__getitem__):
                positions = [*run]
                self.deliveries.append((connection.number, call, positions[0], positions[-1]))

    def reader(self, exchange: int) -> Recorder:
        return Recorder(self.log).bind(exchange=exchange)

    @precondition(lambda self: self.connections)
    @rule(data=st.data())
    def a_connection_goes(self, data: st.DataObject) -> None:
        connection = data.draw(st.sampled_from(self.connections))
        self.stream.detach(connection.reader)
        self.connections.remove(connection)
        if connection is self.present:
            self.present = None

    @rule()
    def the_server_hangs_up(self) -> None:
        self.stream.hang_up()
        self.hung_up = True

    @rule()
    def it_ends(self) -> None:
        self.stream.end(float(len(self.written)))

    @invariant()
    def one_connection_at_most_is_read_by(self) -> None:
        assert self.stream.reader is (None if self.present is None else self.present.reader)

    @invariant()
    def everybody_else_has_been_told_to_leave(self) -> None:
        for connection in self.connections:
            reason = self.stream.dismissed(connection.reader)
            if connection is not self.present:
                assert reason == "displaced by a newer connection"
            else:
                assert reason == ("hang-up" if self.hung_up else None)

    @invariant()
    def what_was_got_is_what_was_written(self) -> None:
        for connection in self.connections:
            assert all(self.written[at - 1] == message for at, message in connection.got.items())

    @invariant()
    def each_delivery_is_recorded_in_runs_of_one_call(self) -> None:
        entries = [entry for entry in self.log.since(0, 10_000).entries if isinstance(entry.fact, MessagesDelivered)]
        recorded = [(e.context.exchange, e.context.call, e.fact.first, e.fact.last) for e in entries]
        assert recorded == self.deliveries

    @invariant()
    def it_remembers_no_more_than_it_keeps(self) -> None:
        assert len(self.stream._recorders) <= 2 * BOUND + 1
        assert len(self.stream.replay) <= BOUND


TestStream = Streams.TestCase
TestStream.settings = steps(18)
