"""A tool host's connection, told anything in any order: each dispatch ends once, and no place is lost."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from probe.core.tool_host import (
    Dispatch,
    DispatchState,
    HostState,
    HostViolationError,
    ToolHost,
    TooManyDispatchesError,
)

from . import steps

LINGER_S = 7.0


@dataclass
class Model:
    """What must be true of one dispatch: `ended` says what its call came to, `cancelled_at` when the host was told."""

    dispatch: Dispatch
    ended: str | None = None
    cancelled_at: float | None = None
    over: bool = False


class HostMachine(RuleBasedStateMachine):
    """One connection, from before it registers to after its end."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.registered = self.closed = False
        self.all: list[Model] = []

    @initialize(most=st.integers(1, 4))
    def connect(self, most: int) -> None:
        self.most = most
        self.host = ToolHost(max_dispatches=most, linger_s=LINGER_S)

    def taken(self) -> list[Model]:
        return [one for one in self.all if not one.over]

    def pick(self, which: int) -> Model | None:
        return self.all[-1 - which] if which < len(self.all) else None

    @rule()
    def register(self) -> None:
        try:
            self.host.register()
        except HostViolationError:
            assert self.registered or self.closed
        else:
            assert not self.registered
            self.registered = True

    @rule()
    def update(self) -> None:
        try:
            self.host.update()
        except HostViolationError:
            assert self.closed or not self.registered
        else:
            assert self.registered

    @rule(times=st.integers(1, 3))
    def dispatch(self, times: int) -> None:
        for _ in range(times):
            room = len(self.taken()) < self.most
            try:
                dispatch = self.host.dispatch(f"c{len(self.all)}")
            except HostViolationError:
                assert self.closed or not self.registered
            except TooManyDispatchesError as error:
                assert not room, "a place that is free can be had"
                assert error.cancelled == sum(one.cancelled_at is not None for one in self.taken())
            else:
                assert room, "never more than the maximum"
                self.all.append(Model(dispatch))

    @rule(which=st.integers(0, 5))
    def progress(self, which: int) -> None:
        one = self.pick(which)
        if one is not None and one.ended != "lost":
            assert self.host.progress(one.dispatch) is (one.ended is None), "what is late is never heard"

    @rule(which=st.integers(0, 5))
    def answer(self, which: int) -> None:
        one = self.pick(which)
        if one is not None and one.ended != "lost":
            heard = self.host.answer(one.dispatch)
            assert heard is (one.ended is None), "a call has one end"
            one.ended, one.over = one.ended or "answered", True

    @rule(which=st.integers(0, 5))
    def cancel(self, which: int) -> None:
        one = self.pick(which)
        if one is not None:
            told = self.host.cancel(one.dispatch, self.now)
            assert told is (one.ended is None), "the host is told once, and only of what runs"
            if told:
                one.ended, one.cancelled_at = "cancelled", self.now

    @rule(which=st.integers(0, 5))
    def withdraw(self, which: int) -> None:
        one = self.pick(which)
        if one is not None and one.ended is None:
            self.host.withdraw(one.dispatch)
            one.ended, one.over = "withdrawn", True

    @rule(seconds=st.sampled_from([0.0, 0.1, 3.3, 6.9, 7.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        due = [one for one in self.taken() if one.cancelled_at is not None and one.cancelled_at + LINGER_S <= self.now]
        assert self.host.expire(self.now) == [one.dispatch for one in due]
        for one in due:
            one.over = True

    @rule()
    def close(self) -> None:
        taken = self.taken()
        assert self.host.close() == [one.dispatch for one in taken]
        self.closed = True
        for one in taken:
            one.ended, one.over = one.ended or "lost", True

    @invariant()
    def what_takes_a_place_is_known(self) -> None:
        if hasattr(self, "host"):
            taken = [one.dispatch for one in self.taken()]
            assert list(self.host.in_flight) == taken
            assert len(taken) <= self.most
            assert all(self.host.find(one.id) is one and self.host.had(one.id) for one in taken)

    @invariant()
    def each_dispatch_is_what_became_of_it(self) -> None:
        running = {None: DispatchState.RUNNING, "answered": DispatchState.ANSWERED, "lost": DispatchState.LOST}
        for one in self.all:
            if one.ended in running:
                assert one.dispatch.state is running[one.ended]
            elif not one.over:
                assert one.dispatch.state is DispatchState.CANCELLED
            else:
                assert one.dispatch.state in (DispatchState.STOPPED, DispatchState.UNANSWERED)
            assert one.dispatch.cancelled_at == one.cancelled_at

    @invariant()
    def the_next_deadline_is_that_of_the_oldest_cancelled_one(self) -> None:
        if hasattr(self, "host"):
            times = [one.cancelled_at for one in self.taken() if one.cancelled_at is not None]
            assert self.host.deadline == (min(times) + LINGER_S if times else None)
            assert self.host.deadline is None or self.host.deadline > self.now
            assert (self.host.state is HostState.CLOSED) == self.closed


TestToolHost = HostMachine.TestCase
TestToolHost.settings = steps(25)
