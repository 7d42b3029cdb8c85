"""Does the gateway still answer: the question, and the watch that asks it while steps are done.

A gateway that stops to answer fails each step after that, and these failures are no faults of their own. Two exchanges
in a row without an answer are a reason to ask, and so is a step whose exchange was cut off or got no answer. The
gateway is silent only if it then answers nothing for `PATIENCE_S`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import trio

from ..side import Side, modern
from .step import Step, Taken

PATIENCE_S: Final = 30.0
"""A gateway that does one thing after the other may be busy with a call of 20 s that was given up."""
_AGAIN_S: Final = 0.5


async def answers(side: Side, mark: int) -> Taken:
    """Ask until there is an answer of any kind, such as 400, and give up after `PATIENCE_S`."""
    until = trio.current_time() + PATIENCE_S
    while True:
        left = until - trio.current_time()
        got = await side.ask(modern("discover", "server/discover", mark=mark), max(left, _AGAIN_S))
        if got.status is not None or trio.current_time() >= until:
            return Taken((got,))
        # Refused at once: a supervisor may be starting the gateway anew.
        await trio.sleep(_AGAIN_S)


ANSWERS: Final = Step("answers", "reach", answers, last=True)


class Silence:
    """Watches one way while its steps are done. `marks` are for its own questions.

    `unanswered` is the question that showed that the way is silent.
    """

    def __init__(self, side: Side, marks: Iterator[int]) -> None:
        self._side = side
        self._marks = marks
        self._one_asks = trio.Lock()
        self.unanswered: Taken | None = None

    async def step(self, step: Step, mark: int) -> Taken | None:
        """Do a step. None where the way stops answering meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            taken = await step.run(self._side, mark)
            nursery.cancel_scope.cancel()
        # A silent way may have ended the step before it brought anything.
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
        """True if the way answers nothing. One task asks for all steps that are in doubt at the same time."""
        async with self._one_asks:
            if self.unanswered is None:
                taken = await answers(self._side, next(self._marks))
                self.unanswered = taken if taken.exchanges[0].status is None else None
            return self.unanswered is not None


def _is_doubtful(taken: Taken) -> bool:
    return any(
        item.end in ("cut", "reset") or (item.status is None and item.end != "closed here") for item in taken.exchanges
    )
