"""Phase 3: when does each message arrive. Phase 6: many calls at once."""

from __future__ import annotations

import time
from typing import Final

import trio

from ...wire.jsonrpc import request
from ..client.live import Sending
from ..client.records import ClientExchange
from ..marks import client_mark
from ..side import ACCEPT, Side, call, era_client, in_session, modern_call, open_session, session
from .step import Step, Taken

STEPS_EACH: Final = 4
STEP_MS: Final = 250
"""More than the 200 ms of Linux's delayed acknowledgement.

Nagle's algorithm waits for the acknowledgement, and an earlier next message would hide the wait.
"""
FAST: Final = 20
# A healthy way needs 2 s.
_FIRST_S: Final = 6.0
_HEAD_S: Final = 5.0


async def legacy_progress(side: Side, mark: int) -> Taken:
    """Progress in a session with an open GET stream, to see where each message arrives."""
    arguments = {"steps": STEPS_EACH, "step_ms": STEP_MS, "mark": mark}
    async with session(side, mark) as opened:
        async with side.asking(Sending("get", "GET", (ACCEPT, *opened.headers[2:]))) as stream:
            await stream.wait_head(1.0)
            message = call(side, "progress", arguments, token=f"token-{mark}")
            got = await side.ask(in_session("call", message, opened))
            await trio.sleep(0.05)
        beside = stream.record()
    return Taken((*opened.opened, beside, got))


async def modern_progress(side: Side, mark: int) -> Taken:
    """Progress in the modern era."""
    arguments = {"steps": STEPS_EACH, "step_ms": STEP_MS, "mark": mark}
    sending = modern_call(side, "call", "progress", arguments, mark=mark, token=f"token-{mark}")
    return Taken((await side.ask(sending),))


async def fast(side: Side, mark: int) -> Taken:
    """20 messages of progress without a pause: a result sent too early would hide some."""
    arguments = {"steps": FAST, "step_ms": 0, "mark": mark}
    async with session(side, mark) as opened:
        message = call(side, "progress", arguments, token=f"token-{mark}")
        got = await side.ask(in_session("call", message, opened))
    return Taken((*opened.opened, got))


async def listening(side: Side, mark: int) -> Taken:
    """The GET stream: when its head comes, and whether a list-changed notification arrives on it."""
    async with session(side, mark) as opened:
        async with side.asking(Sending("get", "GET", (ACCEPT, *opened.headers[2:]))) as stream:
            await stream.wait_head(_HEAD_S)
            message = call(side, "announce_list_change", {"list": "tools"})
            got = await side.ask(in_session("announce", message, opened))
            await stream.wait_messages(1, 2.0)
        beside = stream.record()
    return Taken((*opened.opened, beside, got))


async def parallel(side: Side, mark: int, count: int = 10) -> Taken:
    """Calls at the same time, each with a stream of its own."""
    arguments = {"steps": 4, "step_ms": 150}
    got: list[ClientExchange] = []

    async def one(number: int) -> None:
        marked = {**arguments, "mark": mark + 1 + number}
        sending = client.call(f"call {number}", "progress", marked, id=100 + number, token=number)
        got.append(await side.ask(sending, _FIRST_S))

    async with era_client(side, mark) as client, trio.open_nursery() as calls:
        for number in range(count):
            calls.start_soon(one, number)
    return Taken(tuple(sorted(got, key=_latest_first)))


def _latest_first(item: ClientExchange) -> tuple[bool, float]:
    """Calls without an answer first, then by their first message, latest first: a report has 12 of a hundred calls."""
    return item.answer is not None, item.began - item.messages[0].at if item.messages else 0.0


async def many(side: Side, mark: int) -> Taken:
    """100 calls, if 10 were served in time: else more load has no use."""
    few = await parallel(side, mark, 10)
    worst = max((item.messages[0].at - item.began for item in few.exchanges if item.messages), default=_FIRST_S)
    answered = all(item.answer is not None for item in few.exchanges)
    if worst > 5.0 or not answered:
        return Taken(few.exchanges, facts={"count": 10, "stopped": True})
    more = await parallel(side, mark + 100, 100)
    return Taken(more.exchanges, facts={"count": 100, "stopped": False})


async def sessions(side: Side, mark: int) -> Taken:
    """Three clients with two calls each, every request on a new connection."""
    exchanges: list[ClientExchange] = []
    for client in range(3):
        opened = await open_session(side, client_mark(mark, client), name=f"{client} ")
        exchanges += opened.opened
        for number in range(2):
            message = call(side, "simple_tool", {"mark": client_mark(mark, client) + 1 + number}, id=1 + number)
            exchanges.append(await side.ask(in_session(f"{client} call {number}", message, opened)))
        exchanges.append(await side.ask(in_session(f"{client} ping", request(9, "ping", None), opened)))
        if opened.id is not None:
            await side.ask(Sending("delete", "DELETE", opened.headers))
    return Taken(tuple(exchanges), moments={"ended": time.time()})


_LEGACY: Final = frozenset({"legacy", "tool:progress"})
STEPS: Final = (
    Step("progress.legacy", "time", legacy_progress, _LEGACY, turns=3),
    Step("progress.modern", "time", modern_progress, frozenset({"modern", "tool:progress"}), turns=3),
    Step("fast", "time", fast, _LEGACY),
    Step("get", "time", listening, frozenset({"legacy", "sessions", "tool:announce_list_change"})),
    Step("sessions", "time", sessions, frozenset({"legacy", "tool:simple_tool"})),
    Step("load.quick", "load", parallel, frozenset({"tool:progress"}), turns=2, profiles=("quick",)),
    Step("load", "load", many, frozenset({"tool:progress"}), turns=2, last=True, profiles=("full", "idle")),
)
