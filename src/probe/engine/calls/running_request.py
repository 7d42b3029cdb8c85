"""One request that runs: its owner awaits its work, and it is answered once.

    running     the owner awaits `run`, which awaits the work
    answered    the work has ended, or `CallScope.give_up` came first: the outcome is sent, or no answer if it is None
    closed      all that the request held is free, and its stream takes no more messages

Answering and closing are one step, without a checkpoint between them. If the owner is cancelled, the request is closed
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
"""Work to await once. Returns its settled outcome, None for no answer."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The call of a request that has begun, and its work. `RunningRequest.run` awaits the work."""

    call: CallScope
    work: Work


Start: TypeAlias = Callable[[Stream], Begun]
"""The return value of a method that waits: called with the stream for its response, it begins the call."""


def _answer_nothing(_outcome: Outcome) -> None:
    pass


def _close_nothing() -> None:
    pass


class RunningRequest:
    """A request on its stream. `answer` sends its outcome; `close` is called once, after that. Neither waits."""

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
        # The request was given up: its answer is sent, and a later outcome is dropped.
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
            # Both refer to the request: a cycle, which the garbage collector would free much later.
            self._answer, self._close = _answer_nothing, _close_nothing
            close()
