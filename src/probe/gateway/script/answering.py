"""The question whether a way still answers, asked at the end and where an exchange got no answer."""

from __future__ import annotations

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
