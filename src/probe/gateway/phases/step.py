"""A step: a few requests on one way, and their record. The step `answers` is also used between the others.

Two exchanges in a row without an answer are a reason for `answers`, and so is a step with an exchange that was cut or
not answered. The gateway is silent only if `answers` then gets no answer for `PATIENCE_S`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import trio

from ..client.records import ClientExchange
from ..side import Side, modern

Profile: TypeAlias = Literal["quick", "full", "idle"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a step: its exchanges, the client's moments in seconds since the epoch, and other facts."""

    exchanges: tuple[ClientExchange, ...]
    moments: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `run` takes the way, and the mark for the arguments of its calls.

    It is done `turns` times on each way, in turn, if the way offers all of its `needs`, such as "tool:fail". Steps that
    mostly wait run `beside` the others. `settles_s` is the time after it for the probe to end its calls. Steps that may
    break the gateway are `last`. `profiles` are the profiles that include it.
    """

    name: str
    phase: str
    run: Callable[[Side, int], Awaitable[Taken]]
    needs: frozenset[str] = frozenset()
    turns: int = 1
    beside: bool = False
    last: bool = False
    settles_s: float = 3.0
    profiles: tuple[Profile, ...] = ("quick", "full", "idle")


PATIENCE_S: Final = 30.0
"""A gateway that serves requests in turn may be busy with an abandoned call of 20 s."""
_AGAIN_S: Final = 0.5


async def answers(side: Side, mark: int) -> Taken:
    """Send `server/discover` until there is any answer, such as 400, for at most `PATIENCE_S`."""
    until = trio.current_time() + PATIENCE_S
    while True:
        left = until - trio.current_time()
        got = await side.ask(modern("discover", "server/discover", mark=mark), max(left, _AGAIN_S))
        if got.status is not None or trio.current_time() >= until:
            return Taken((got,))
        # Refused at once: a supervisor may be restarting the gateway.
        await trio.sleep(_AGAIN_S)


ANSWERS: Final = Step("answers", "reach", answers, last=True)


class Silence:
    """Does the steps of one way, and finds that it is silent. `marks` are for its own requests.

    `unanswered` is the result of `answers` on a silent way, else None.
    """

    def __init__(self, side: Side, marks: Iterator[int]) -> None:
        self._side = side
        self._marks = marks
        self._one_asks = trio.Lock()
        self.unanswered: Taken | None = None

    async def step(self, step: Step, mark: int) -> Taken | None:
        """Do a step. None if the way stops answering meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            taken = await step.run(self._side, mark)
            nursery.cancel_scope.cancel()
        # A silent way may have ended the step without a result.
        if self.unanswered is not None or (_is_doubtful(taken) and await self._confirmed()):
            return None
        return taken

    async def _watch(self, step: trio.CancelScope) -> None:
        while True:
            await self._side.doubt.wait()
            if await self._confirmed():
                step.cancel()
                return

    async def _confirmed(self) -> bool:
        async with self._one_asks:
            if self.unanswered is None:
                taken = await answers(self._side, next(self._marks))
                self.unanswered = taken if taken.exchanges[0].status is None else None
            return self.unanswered is not None


def _is_doubtful(taken: Taken) -> bool:
    return any(
        item.end in ("cut", "reset") or (item.status is None and item.end != "closed here") for item in taken.exchanges
    )
