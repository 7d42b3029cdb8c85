"""Pairing against a plain list of all that was asked: two clients with equal ids, both directions, batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probe.observe.events import Event
from probe.observe.pairing import Pairing

from ..support.facts import emitted, received

IDS = st.sampled_from([0, "0", 5, "5", -1, ""])


@dataclass(eq=False)
class Asked:
    """A request: who asked, where, with what id; `seq` is its entry."""

    by_client: bool
    exchange: int | None
    session: str
    id: Any
    seq: int = 0
    answered: bool = False


@dataclass
class Story:
    """What was told to the pairing so far, and the model: every request there ever was."""

    pairing: Pairing = field(default_factory=Pairing)
    asked: list[Asked] = field(default_factory=list)
    seq: int = 0
    exchange: int = 0

    def tell(self, event: Event) -> int | None:
        self.seq += 1
        return self.pairing.note(self.seq, event)

    def ask(self, asked: Asked, batch: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "id": asked.id, "method": "ping"}
        if asked.by_client:
            assert asked.exchange is not None
            pair = self.tell(received(message, asked.exchange, asked.session, batch))
        else:
            pair = self.tell(emitted(message, asked.exchange, asked.session))
        assert pair is None
        asked.seq = self.seq
        self.asked.append(asked)

    def answer(self, asked: Asked, *, error: bool) -> None:
        """Answer as whoever was asked would; the model looks through everything."""
        message = {"jsonrpc": "2.0", "id": asked.id, **({"error": {}} if error else {"result": {}})}
        if asked.by_client:
            pair = self.tell(emitted(message, asked.exchange, asked.session))
        else:
            self.exchange += 1
            pair = self.tell(received(message, self.exchange, asked.session))
        assert pair == self.expected(asked)

    def expected(self, asked: Asked) -> int | None:
        alike = [other for other in self.asked if self.same(asked, other)]
        latest = alike[-1]
        if latest.answered:
            return None
        for other in alike:
            other.answered = True
        return latest.seq

    @staticmethod
    def same(one: Asked, other: Asked) -> bool:
        place = "exchange" if one.by_client else "session"
        return (
            one.by_client is other.by_client
            and getattr(one, place) == getattr(other, place)
            and type(one.id) is type(other.id)
            and bool(one.id == other.id)
        )


@given(st.data())
def test_every_response_is_paired_with_exactly_its_request(data: st.DataObject) -> None:
    story, sessions = Story(), st.sampled_from(["s1", "s2"])
    for _ in range(data.draw(st.integers(1, 30), "steps")):
        what = data.draw(st.sampled_from(["post", "batch", "server asks", "answer", "answer"]))
        session = data.draw(sessions)
        if what == "post":
            story.exchange += 1
            story.ask(Asked(True, story.exchange, session, data.draw(IDS)))
        elif what == "batch":
            story.exchange += 1
            for place, id in enumerate(data.draw(st.lists(IDS, min_size=1, max_size=4))):
                story.ask(Asked(True, story.exchange, session, id), place)
        elif what == "server asks":
            exchange = data.draw(st.none() | st.integers(1, 3))
            story.ask(Asked(False, exchange, session, data.draw(IDS)))
        elif story.asked:
            story.answer(data.draw(st.sampled_from(story.asked)), error=data.draw(st.booleans()))
