"""A session: ids in flight, what keeps it alive, and its end."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from probe.core.session import DuplicateIdError, SessionInput, SessionMachine, SessionState, TooManyInFlightError
from probe.wire.jsonrpc import RequestId

from . import steps

MOST = 4
ids = st.sampled_from([0, 1, 2, "", "0", "1", "x", 2**70])


class Sessions(RuleBasedStateMachine):
    """The model: a plain list of typed ids, the number of open streams, and when the client was last heard of."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.seen = 100.0
        self.session = SessionMachine("2025-11-25", {}, max_in_flight=MOST, idle_s=60.0, first_s=20.0, now=100.0)
        self.flying: list[tuple[type, RequestId]] = []
        self.open = 0
        self.initialized = self.ended = self.heard = False

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(id=ids)
    def a_request_comes(self, id: RequestId) -> None:
        try:
            self.session.begin(id)
        except DuplicateIdError:
            assert (type(id), id) in self.flying
        except TooManyInFlightError:
            assert len(self.flying) == MOST
        else:
            assert (type(id), id) not in self.flying
            self.flying.append((type(id), id))
        assert len(self.flying) <= MOST

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def a_request_is_over(self, data: st.DataObject) -> None:
        flight = data.draw(st.sampled_from(self.flying))
        self.session.finish(flight[1])
        self.flying.remove(flight)

    @rule()
    def the_client_is_heard_of(self) -> None:
        self.session.touch(self.now)
        self.seen = self.now
        self.heard = True

    @rule()
    def a_stream_opens(self) -> None:
        self.session.hold()
        self.open += 1

    @precondition(lambda self: self.open)
    @rule()
    def a_stream_ends(self) -> None:
        self.session.release(self.now)
        self.open -= 1
        self.seen = self.now
        self.heard = True

    @rule(event=st.sampled_from(SessionInput))
    def it_goes_on(self, event: SessionInput) -> None:
        self.session.receive(event)
        self.initialized |= event is SessionInput.INITIALIZED
        self.ended |= event is SessionInput.END

    @invariant()
    def the_end_is_final(self) -> None:
        living = SessionState.OPERATING if self.initialized else SessionState.NEGOTIATED
        assert self.session.state is (SessionState.CLOSED if self.ended else living)
        assert self.session.closed == self.ended

    @invariant()
    def the_ids_in_flight_are_those_that_came_and_have_not_gone(self) -> None:
        assert {(type(id), id) for id in self.session.in_flight} == set(self.flying)

    @invariant()
    def it_has_a_deadline_or_a_reason_to_live(self) -> None:
        if self.open or self.flying:
            assert self.session.deadline is None
        else:
            assert self.session.deadline == self.seen + (60.0 if self.heard else 20.0)


TestSession = Sessions.TestCase
TestSession.settings = steps(15)
