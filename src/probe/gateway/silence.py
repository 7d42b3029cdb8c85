"""Finds that a gateway answers nothing any more, so that the steps after that are not taken for faults of their own.

Two exchanges in a row without an answer are a reason to ask, and so is a step that ends with an exchange that was cut
off or got no answer. Only a gateway that then answers nothing for `script.answering.PATIENCE_S` is silent.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from .script.answering import answers
from .script.step import Step, Taken
from .side import Side


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
