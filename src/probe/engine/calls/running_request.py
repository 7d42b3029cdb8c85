"""One request that runs: its work is awaited by its owner, and its outcome is answered once.

    running     the owner awaits `run`, which awaits the work
    answered    the work has ended, or `CallScope.give_up` was first: the outcome is sent, or nothing where it is None
    closed      what the request held is free, and its stream takes nothing more

Being answered and closed are one step, without a checkpoint between them. A request whose owner is cancelled is closed
without an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..streams.stream import Stream
from .outcome import Outcome
from .scope import CallScope

Work: TypeAlias = Callable[[], Awaitable[Outcome | None]]
"""Work to await once: its settled outcome, None for silence."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The call of a request that has begun, and its work, which nobody awaits yet."""

    call: CallScope
    work: Work


Start: TypeAlias = Callable[[Stream], Begun]
"""The value that a method which waits returns: called with the stream for its response, it begins the call."""


def _answer_nothing(_outcome: Outcome) -> None:
    pass


def _close_nothing() -> None:
    pass


class RunningRequest:
    """A request on its stream. `answer` sends its outcome; `close` is called once, after that.

    Neither of them waits.
    """

    def __init__(
        self, begun: Begun, stream: Stream, answer: Callable[[Outcome], None], close: Callable[[], None]
    ) -> None:
        self.call = begun.call
        self.stream = stream
        self._work = begun.work
        self._answer = answer
        self._close = close
        self._closed = False
        self.call.answer = self._end

    async def run(self) -> None:
        """Do the work, answer the request and close it. Awaited once, by the owner of the request."""
        try:
            self._end(await self._work())
        finally:
            self._close_once()

    def _end(self, outcome: Outcome | None) -> None:
        # A request that was given up before has nobody who waits for its outcome.
        if self._closed:
            return
        if outcome is None:
            self.stream.unanswered = True
        else:
            self._answer(outcome)
        self._close_once()

    def _close_once(self) -> None:
        if not self._closed:
            self._closed = True
            close = self._close
            # They know the request: a cycle, for the collector to find much later.
            self._answer, self._close = _answer_nothing, _close_nothing
            close()
