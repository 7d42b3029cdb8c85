"""Phase 4: does the end of a call at the client reach the probe. Phase 7: what ends a quiet call or connection."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from ...wire.jsonrpc import notification
from ..side import WAYS, Side, call, era_client, in_session, modern_call, session
from ..trials import Trial
from .step import (
    Case,
    Check,
    Comparison,
    Profile,
    Step,
    Taken,
    expecting,
    is_late,
    listed,
    listing,
    ms,
    not_applicable,
    unclear,
)
from .timing import PROGRESS, call_of, offset

# For the probe to learn of a close or a cancellation late.
_LATE: Final = 8.0

SILENT_MS: Final = 6000
"""The length of a call if the client's end of it is lost on the way."""

SLOW_MS: Final = 2500
"""Between two messages of a slow stream. A proxy that notices a close at its next write is so late."""

STREAM_OPEN_S: Final = 4.0
"""The longest time for the stream of a cancelled call to end."""

_MODERN_SILENT: Final = frozenset({"modern", "tool:silent_call"})
_MODERN_PROGRESS: Final = frozenset({"modern", "tool:progress"})
_CLOSES: Final = ("close.stream", "close.slow", "close.silent")
# A close within this is soon enough, on any machine.
_SOON_S: Final = 1.0
_CANCEL_S: Final = 2.0
_QUIET: Final = ("quiet.stream", "quiet.call", "quiet.comments")


async def cancel_call(side: Side, mark: int) -> Taken:
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


def quiet_steps(seconds: int, profile: Profile) -> tuple[Step, ...]:
    """The steps of phase 7 for one length of silence."""
    legacy, silent = frozenset({"legacy", "tool:silent_call"}), frozenset({"tool:silent_call"})
    steps = (
        Step("quiet.stream", "quiet", partial(quiet_stream, seconds=seconds), legacy),
        Step("quiet.comments", "quiet", partial(quiet_stream, seconds=seconds, comments=True), legacy),
        Step("quiet.call", "quiet", partial(quiet_call, seconds=seconds), silent),
        Step("busy", "quiet", partial(busy_stream, seconds=seconds), frozenset({"tool:progress"})),
    )
    return tuple(replace(step, beside=True, settles_s=_LATE, profiles=(profile,)) for step in steps)


STEPS: Final = (
    Step("cancel", "stopping", cancel_call, frozenset({"legacy", "tool:silent_call"}), settles_s=_LATE, beside=True),
    Step("close.stream", "stopping", close_stream, _MODERN_PROGRESS, settles_s=_LATE),
    Step("close.slow", "stopping", close_slow, _MODERN_PROGRESS, settles_s=_LATE, beside=True),
    Step("close.silent", "stopping", close_silent, _MODERN_SILENT, settles_s=_LATE, beside=True),
    *quiet_steps(70, "full"),
    *quiet_steps(310, "idle"),
)


def _closed_after(trial: Trial, base: float) -> float | str:
    """Seconds from the close until the probe knew of it, "never", or why that is not known; `base` is `offset`."""
    call, moment = call_of(trial), trial.moments["closed"] - base
    if call is None:
        return "the call was not found at the probe"
    if call.cancelled is not None:
        return float(call.cancelled["at"]) - moment
    if call.settled is None:
        return "never"
    return "never" if call.settled["at"] > moment else "it was over before"


def _close_times(case: Case) -> tuple[dict[str, float | str], dict[str, float | str]]:
    found: list[dict[str, float | str]] = []
    base = offset(case)
    for way in WAYS:
        trials = {step: case.one(step, way) for step in _CLOSES}
        found.append({step: _closed_after(trial, base) for step, trial in trials.items() if trial is not None})
    return found[0], found[1]


def check_close_passed(case: Case) -> Comparison:
    """Found if the client closes the stream of a modern call, and the call runs on at the probe."""
    direct, through = _close_times(case)
    if any(after == "never" for after in direct.values()):
        raise unclear("the direct way itself lost a close")
    known = {step: after for step, after in through.items() if isinstance(after, float) or after == "never"}
    if not known:
        raise unclear(listed([str(after) for after in through.values()], 1))
    lost = [step.removeprefix("close.") for step, after in known.items() if after == "never"]
    return Comparison(
        _times(direct), _times(through), found=bool(lost), evidence=f"lost: {listed(lost)}" if lost else ""
    )


def check_close_in_time(case: Case) -> Comparison:
    """Found if the probe sees the close of a modern stream later than without the gateway."""
    direct, through = _close_times(case)
    late = [
        step.removeprefix("close.")
        for step, after in through.items()
        if isinstance(after, float) and is_late(after, _known(direct.get(step)), _SOON_S)
    ]
    if not any(isinstance(after, float) for after in through.values()):
        raise not_applicable("no close was seen at all: close.lost")
    return Comparison(
        _times(direct), _times(through), found=bool(late), evidence=f"late: {listed(late)}" if late else ""
    )


def _known(after: float | str | None) -> float:
    return after if isinstance(after, float) else 0.0


def _times(after: dict[str, float | str]) -> str:
    """`0 ms / 4.8 s / never`, a part for each step; once what is the same of all."""
    shown = [ms(value) if isinstance(value, float) else value for value in after.values()]
    return " / ".join(shown if len(set(shown)) > 1 else shown[:1])


def check_cancel_passed(case: Case) -> Comparison:
    """Found if `notifications/cancelled` does not cancel the call at the probe, or only after `_CANCEL_S`."""
    direct, through = case.pair("cancel")
    base = offset(case)
    ours, theirs = _cancelled_after(direct, base), _cancelled_after(through, base)
    if not isinstance(ours, float):
        raise unclear(f"the direct way itself: {ours}")
    if theirs == "not found":
        raise unclear("the call was not found at the probe")
    lost = not isinstance(theirs, float) or theirs > _CANCEL_S
    evidence = f"the notification got {through['cancel'].status}"
    return Comparison(ms(ours), ms(theirs) if isinstance(theirs, float) else theirs, found=lost, evidence=evidence)


def _cancelled_after(trial: Trial, base: float = 0.0) -> float | str:
    call = call_of(trial)
    if call is None:
        return "not found"
    # The end of the session cancels it too, once the step is over.
    if call.cancelled is None or call.cancelled["by"] == "session_end":
        return "never"
    return float(call.cancelled["at"]) + base - trial.moments["cancelled"]


def _cancelled(case: Case) -> Trial:
    _, through = case.pair("cancel")
    if not isinstance(_cancelled_after(through), float):
        raise not_applicable("the cancellation is lost: cancel.lost")
    return through


def answer_of_cancelled(case: Case) -> tuple[str, str]:
    """The answer of a cancelled call: `nothing`, `a result`, or `error` and its code."""
    got = _cancelled(case)["call"]
    if got.answer is None:
        return "nothing", ""
    return "a result" if "result" in got.answer else f"error {got.error_code}", ""


def stream_of_cancelled(case: Case) -> tuple[str, str]:
    """The stream of a cancelled call: `ended`, or still open after `STREAM_OPEN_S`."""
    left_open = _cancelled(case)["call"].end == "timed out"
    return f"open after {STREAM_OPEN_S:g} s" if left_open else "ended", ""


def _cut(case: Case, step: str) -> float | None:
    both = case.both(step)
    if both is None or both[0]["call"].answer is None:
        return None
    item = both[1]["call"]
    over_early = item.answer is None or "result" not in item.answer
    took = item.ended - item.began
    return took if over_early and took < both[1].facts["seconds"] + 5.0 else None


def check_quiet(case: Case) -> Comparison:
    """Found if a quiet stream or call is cut, and lives without the gateway."""
    cuts = {step: _cut(case, step) for step in _QUIET if case.both(step) is not None}
    if not cuts:
        raise not_applicable("it was not done on both ways")
    seconds = max(trial.facts["seconds"] for step in cuts for trial in case.of(step, "through"))
    found = {step: after for step, after in cuts.items() if after is not None}
    busy = _cut(case, "busy") if case.both("busy") is not None else None
    if busy is not None and all(abs(after - busy) < 2.0 for after in found.values()):
        raise not_applicable("it is the whole of a call that is bounded: busy.cut")
    parts = [f"{step.removeprefix('quiet.')} after {after:.1f} s" for step, after in found.items()]
    lives = "quiet.comments" in cuts and "quiet.comments" not in found
    evidence = listed(parts) + ("; with comments every 15 s it lives" if found and lives else "")
    shortest = f"{min(found.values()):.1f} s" if found else f"> {seconds} s"
    return Comparison(f"> {seconds} s", shortest, found=bool(found), evidence=evidence)


def check_busy(case: Case) -> Comparison:
    """Found if a call with messages all the time is cut."""
    after = _cut(case, "busy")
    seconds = case.pair("busy")[1].facts["seconds"]
    came = len(case.pair("busy")[1]["call"].of(PROGRESS))
    evidence = f"{came} messages had come" if after is not None else ""
    limit = f"> {seconds} s" if after is None else f"{after:.1f} s"
    return Comparison(f"> {seconds} s", limit, found=after is not None, evidence=evidence)


def running_after_cut(case: Case) -> list[str]:
    """The calls that run on at the probe after a time-out of the gateway."""
    left: list[str] = []
    cut = 0
    for step in ("quiet.call", "busy"):
        if case.both(step) is None or _cut(case, step) is None:
            continue
        through = case.pair(step)[1]
        # The client of a session may resume a cut stream, unless it got an error.
        if "initialize" in through and through["call"].answer is None:
            continue
        cut += 1
        call = call_of(through)
        if call is not None and call.cancelled is None:
            left.append(f"{step}: call {call.started['call']} ran on")
    if not cut:
        raise not_applicable("the gateway ended no call for good")
    return left


CHECKS: Final = (
    Check(8, _CLOSES, check_close_passed),
    Check(9, _CLOSES, check_close_in_time),
    Check(10, ("cancel",), check_cancel_passed),
    Check(11, ("cancel",), expecting("nothing", answer_of_cancelled)),
    Check(12, ("cancel",), expecting("ended", stream_of_cancelled)),
    Check(15, _QUIET, check_quiet),
    Check(16, ("busy",), check_busy),
    Check(17, ("quiet.call", "busy"), listing(running_after_cut, "stopped", "ran on")),
)
