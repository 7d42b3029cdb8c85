"""Phase 4: does the end of a call at the client reach the probe. Phase 7: what ends a quiet call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from ...wire.jsonrpc import notification
from ..side import Side, call, era_client, in_session, modern_call, session
from .step import Profile, Step, Taken

# For the probe to learn of a close or a cancellation late.
_LATE: Final = 8.0

SILENT_MS: Final = 6000
"""The length of a call if the client's end of it is lost on the way."""

SLOW_MS: Final = 2500
"""Between two messages of a slow stream. A proxy that notices a close at its next write is so late."""

STREAM_OPEN_S: Final = 4.0
"""The longest time for the stream of a cancelled call to end."""


async def cancelled(side: Side, mark: int) -> Taken:
    """`notifications/cancelled` for a call in a session."""
    arguments = {"silentMs": SILENT_MS, "idleMs": 60_000, "keepAlive": False, "mark": mark}
    async with session(side, mark) as opened:
        async with side.asking(in_session("call", call(side, "silent_call", arguments, id=1), opened)) as live:
            await trio.sleep(0.5)
            notified = notification("notifications/cancelled", {"requestId": 1, "reason": "not wanted any more"})
            moment = time.time()
            answer = await side.ask(in_session("cancel", notified, opened))
            await live.wait_over(STREAM_OPEN_S)
        record = live.record()
    return Taken((*opened.opened, record, answer), {"cancelled": moment})


async def _closed(side: Side, mark: int, tool: str, arguments: Mapping[str, object], messages: int) -> Taken:
    sending = modern_call(side, "call", tool, {**arguments, "mark": mark}, mark=mark, token=f"token-{mark}")
    async with side.asking(sending) as live:
        if messages:
            await live.wait_messages(messages, 8.0)
        else:
            await trio.sleep(0.6)
        moment = time.time()
        await live.close()
        await trio.sleep(0.05)
    return Taken((live.record(),), {"closed": moment})


async def close_stream(side: Side, mark: int) -> Taken:
    """The client closes while messages come."""
    return await _closed(side, mark, "progress", {"steps": 40, "step_ms": 150}, 2)


async def close_slow(side: Side, mark: int) -> Taken:
    """The client closes between two messages 2.5 s apart."""
    return await _closed(side, mark, "progress", {"steps": 4, "step_ms": SLOW_MS}, 1)


async def close_silent(side: Side, mark: int) -> Taken:
    """The client closes before the first message."""
    arguments = {"silentMs": SILENT_MS, "idleMs": 60_000, "keepAlive": False}
    return await _closed(side, mark, "silent_call", arguments, 0)


async def quiet_stream(side: Side, mark: int, seconds: int, *, comments: bool = False) -> Taken:
    """An event stream without a message for `seconds` after its head, with or without comments."""
    arguments = {"silentMs": seconds * 1000, "idleMs": 600_000, "keepAlive": comments, "mark": mark}
    async with session(side, mark) as opened:
        sending = in_session("call", call(side, "silent_call", arguments), opened)
        got = await side.ask(sending, seconds + 10.0)
    return Taken((*opened.opened, got), facts={"seconds": seconds})


async def quiet_call(side: Side, mark: int, seconds: int) -> Taken:
    """A call without a message for `seconds`; in the modern era its response begins after that."""
    arguments = {"silentMs": seconds * 1000, "idleMs": 600_000, "keepAlive": False, "mark": mark}
    async with era_client(side, mark) as client:
        got = await side.ask(client.call("call", "silent_call", arguments), seconds + 10.0)
    return Taken((*client.opened, got), facts={"seconds": seconds})


async def busy_stream(side: Side, mark: int, seconds: int) -> Taken:
    """A stream of `seconds` with a message every few seconds: only a limit of the whole request ends it."""
    step = min(3500, seconds * 50)
    arguments = {"steps": seconds * 1000 // step, "step_ms": step, "mark": mark}
    async with era_client(side, mark) as client:
        got = await side.ask(client.call("call", "progress", arguments, token=f"token-{mark}"), seconds + 10.0)
    return Taken((*client.opened, got), facts={"seconds": seconds})


def quiet(seconds: int, profile: Profile) -> tuple[Step, ...]:
    """The steps of phase 7 for one length of silence."""
    legacy, silent = frozenset({"legacy", "tool:silent_call"}), frozenset({"tool:silent_call"})
    steps = (
        Step("quiet.stream", "quiet", partial(quiet_stream, seconds=seconds), legacy),
        Step("quiet.comments", "quiet", partial(quiet_stream, seconds=seconds, comments=True), legacy),
        Step("quiet.call", "quiet", partial(quiet_call, seconds=seconds), silent),
        Step("busy", "quiet", partial(busy_stream, seconds=seconds), frozenset({"tool:progress"})),
    )
    return tuple(replace(step, beside=True, settles_s=_LATE, profiles=(profile,)) for step in steps)


_MODERN_SILENT: Final = frozenset({"modern", "tool:silent_call"})
_MODERN_PROGRESS: Final = frozenset({"modern", "tool:progress"})
STEPS: Final = (
    Step("cancel", "stopping", cancelled, frozenset({"legacy", "tool:silent_call"}), settles_s=_LATE, beside=True),
    Step("close.stream", "stopping", close_stream, _MODERN_PROGRESS, settles_s=_LATE),
    Step("close.slow", "stopping", close_slow, _MODERN_PROGRESS, settles_s=_LATE, beside=True),
    Step("close.silent", "stopping", close_silent, _MODERN_SILENT, settles_s=_LATE, beside=True),
    *quiet(70, "full"),
    *quiet(310, "idle"),
)
