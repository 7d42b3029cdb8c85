"""Shares against a list of what is out: nobody gets more than a share, and nothing stays when all is back."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from probe.core.budgets import Shares

from . import steps

TOTAL = 40


class Lending(RuleBasedStateMachine):
    """Some holders take and give back."""

    def __init__(self) -> None:
        super().__init__()
        self.shares = Shares(0.25)
        self.out: list[tuple[str, str | None, int]] = []

    def held(self, kind: str, holder: str | None) -> int:
        return sum(item[2] for item in self.out if item[:2] == (kind, holder))

    @rule(kind=st.sampled_from("xy"), holder=st.sampled_from(["a", "b", None]), amount=st.integers(0, 12))
    def somebody_asks(self, kind: str, holder: str | None, amount: int) -> None:
        held = self.held(kind, holder)
        room = self.shares.has_room(kind, holder, TOTAL, amount)
        assert room == (holder is None or held == 0 or held + amount <= TOTAL // 4)
        if room:
            self.shares.take(kind, holder, amount)
            self.out.append((kind, holder, amount))

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def something_comes_back(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.out))
        self.out.remove(item)
        self.shares.give_back(*item)

    @invariant()
    def what_is_held_is_what_is_out(self) -> None:
        for kind in "xy":
            for holder in "ab":
                assert self.shares.held(kind, holder) == self.held(kind, holder)
        assert len(self.shares) == len({item[:2] for item in self.out if item[1] and item[2]})


TestLending = Lending.TestCase
TestLending.settings = steps(20)
