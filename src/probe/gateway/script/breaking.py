"""Phase 8: what the gateway does when the probe's connection breaks. Only with the breaker between the two."""

from __future__ import annotations

from typing import Final

from ..breaker import Moment
from ..side import Side, call, conversation, in_session, modern_call, session
from .step import Step, Taken

HANGS_S: Final = 10.0
"""A client that has had no end after this long waits for ever, as far as it can know."""


def _plan(side: Side, mark: int, moment: Moment) -> None:
    assert side.breaker is not None, "the step needs it"
    side.breaker.moments[mark] = moment


async def before_modern(side: Side, mark: int) -> Taken:
    """The connection breaks when the probe has the call and has not answered."""
    _plan(side, mark, "before")
    sending = modern_call(side, "call", "simple_tool", _slow(mark), mark=mark)
    return Taken((await side.ask(sending, HANGS_S),), facts=_facts(side, mark))


async def before_legacy(side: Side, mark: int) -> Taken:
    """Break before the answer to a call in a session, where the call goes on."""
    async with session(side, mark) as opened:
        _plan(side, mark, "before")
        got = await side.ask(in_session("call", call(side, "simple_tool", _slow(mark)), opened), HANGS_S)
    return Taken((*opened.opened, got), facts=_facts(side, mark))


def _facts(side: Side, mark: int) -> dict[str, bool]:
    return {"broken": side.breaker is not None and mark in side.breaker.broken}


def _slow(mark: int) -> dict[str, object]:
    return {"delayMs": 1500, "mark": mark}


async def after(side: Side, mark: int, moment: Moment = "after") -> Taken:
    """The connection breaks in the middle of a stream, behind its first event."""
    arguments = {"steps": 8, "step_ms": 200, "mark": mark}
    async with conversation(side, mark) as client:
        _plan(side, mark, moment)
        got = await side.ask(client.call("call", "progress", arguments, token=1), HANGS_S)
    return Taken((*client.opened, got), facts=_facts(side, mark))


async def later(side: Side, mark: int) -> Taken:
    """The same behind a later event: a gateway that collects bytes has sent the head of its response by then."""
    return await after(side, mark, "later")


_NEEDS: Final = frozenset({"breaker", "tool:simple_tool", "tool:progress"})
STEPS: Final = (
    Step("break.before.modern", "breaker", before_modern, _NEEDS | {"modern"}),
    Step("break.before.legacy", "breaker", before_legacy, _NEEDS | {"legacy"}),
    Step("break.after", "breaker", after, _NEEDS),
    Step("break.later", "breaker", later, _NEEDS),
)
