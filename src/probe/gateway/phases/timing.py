"""Phase 3: when does each message arrive, and in which order. Phase 6: many calls at the same time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median
from typing import Any, Final

import trio

from ...wire.jsonrpc import request
from ..behind import ProbeCall, Row
from ..client.live import Sending
from ..client.records import Arrived, ClientExchange
from ..marks import client_mark
from ..side import ACCEPT, WAYS, Side, Way, call, era_client, in_session, modern_call, open_session, session
from ..trials import Trial
from .step import (
    LEAST_S,
    Case,
    Check,
    Comparison,
    Step,
    Taken,
    UnjudgedError,
    expecting,
    is_late,
    listed,
    listing,
    members,
    ms,
    not_applicable,
    permitted,
    unclear,
)

STEPS_EACH: Final = 4
STEP_MS: Final = 250
"""More than the 200 ms of Linux's delayed acknowledgement, for which Nagle's algorithm waits."""
FAST: Final = 20
# A healthy way needs 2 s.
_FIRST_S: Final = 6.0
_HEAD_S: Final = 5.0

_LEGACY: Final = frozenset({"legacy", "tool:progress"})
PROGRESS: Final = "notifications/progress"
_TIMED: Final = ("progress.legacy", "progress.modern")
# Below this a way is not serial: a busy machine is as late.
_IN_TURN_S: Final = 1.0
# Above this the direct way is too slow for a comparison.
_DIRECT_S: Final = 4.0


async def report_in_session(side: Side, mark: int) -> Taken:
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


async def report_modern(side: Side, mark: int) -> Taken:
    """Progress in the modern era."""
    arguments = {"steps": STEPS_EACH, "step_ms": STEP_MS, "mark": mark}
    sending = modern_call(side, "call", "progress", arguments, mark=mark, token=f"token-{mark}")
    return Taken((await side.ask(sending),))


async def report_fast(side: Side, mark: int) -> Taken:
    """20 messages of progress without a pause: a result sent too early would hide some."""
    arguments = {"steps": FAST, "step_ms": 0, "mark": mark}
    async with session(side, mark) as opened:
        message = call(side, "progress", arguments, token=f"token-{mark}")
        got = await side.ask(in_session("call", message, opened))
    return Taken((*opened.opened, got))


async def open_get_stream(side: Side, mark: int) -> Taken:
    """The GET stream: when its head comes, and whether a list-changed notification arrives on it."""
    async with session(side, mark) as opened:
        async with side.asking(Sending("get", "GET", (ACCEPT, *opened.headers[2:]))) as stream:
            await stream.wait_head(_HEAD_S)
            message = call(side, "announce_list_change", {"list": "tools"})
            got = await side.ask(in_session("announce", message, opened))
            await stream.wait_messages(1, 2.0)
        beside = stream.record()
    return Taken((*opened.opened, beside, got))


async def call_at_once(side: Side, mark: int, count: int = 10) -> Taken:
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
    """Calls without an answer first, then the latest first: a report has 12 of a hundred calls."""
    return item.answer is not None, item.began - item.messages[0].at if item.messages else 0.0


async def call_hundred_at_once(side: Side, mark: int) -> Taken:
    """100 calls, if 10 were served in time: else more load has no use."""
    few = await call_at_once(side, mark, 10)
    worst = max((item.messages[0].at - item.began for item in few.exchanges if item.messages), default=_FIRST_S)
    answered = all(item.answer is not None for item in few.exchanges)
    if worst > 5.0 or not answered:
        return Taken(few.exchanges, facts={"count": 10, "stopped": True})
    more = await call_at_once(side, mark + 100, 100)
    return Taken(more.exchanges, facts={"count": 100, "stopped": False})


async def open_three_sessions(side: Side, mark: int) -> Taken:
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


STEPS: Final = (
    Step("progress.legacy", "time", report_in_session, _LEGACY, turns=3),
    Step("progress.modern", "time", report_modern, frozenset({"modern", "tool:progress"}), turns=3),
    Step("fast", "time", report_fast, _LEGACY),
    Step("get", "time", open_get_stream, frozenset({"legacy", "sessions", "tool:announce_list_change"})),
    Step("sessions", "time", open_three_sessions, frozenset({"legacy", "tool:simple_tool"})),
    Step("load.quick", "load", call_at_once, frozenset({"tool:progress"}), turns=2, profiles=("quick",)),
    Step(
        "load",
        "load",
        call_hundred_at_once,
        frozenset({"tool:progress"}),
        turns=2,
        last=True,
        profiles=("full", "idle"),
    ),
)


def _numbers(items: list[Arrived]) -> list[float]:
    params = [members(members(item.message).get("params")) for item in items]
    return [float(each["progress"]) for each in params if isinstance(each.get("progress"), int | float)]


@dataclass(frozen=True, slots=True)
class Timed:
    """One trial of a stream: how late each message was, in seconds; when the first came and the last was made.

    Arrivals are times of our clock, emissions of the probe's, perhaps on another machine.
    """

    late: list[float]
    first: float
    last: float
    call: str
    at_probe: int
    arrived: int
    beside: int

    def is_held(self, base: float) -> bool:
        """True if all messages came only at the end; `base` is the `offset` of the probe's clock."""
        return len(self.late) >= 3 and self.first >= self.last + base


def timed(trial: Trial) -> Timed | None:
    """The times of a trial; None where its call was not found at the probe."""
    calls = trial.behind.calls(trial.mark)
    if not calls:
        return None
    item = trial["call"]
    emitted = {_progress(row): row["at"] for row in calls[-1].progress}
    arrived = dict(zip(_numbers(item.of(PROGRESS)), item.of(PROGRESS), strict=False))
    late = [arrived[number].at - at for number, at in emitted.items() if number in arrived]
    last = max(emitted.values(), default=0.0)
    first = min((each.at for each in arrived.values()), default=0.0)
    beside = len(trial["get"].of(PROGRESS)) if "get" in trial else 0
    return Timed(late, first, last, calls[-1].started["call"], len(emitted), len(arrived), beside)


def _progress(row: Any) -> float:
    number = members(members(row["message"]).get("params")).get("progress")
    return float(number) if isinstance(number, int | float) else -1.0


def _timed_of(case: Case, way: Way) -> list[Timed]:
    found = [timed(trial) for step in _TIMED for trial in case.of(step, way)]
    return [each for each in found if each is not None]


def offset(case: Case) -> float:
    """The shortest time from emission to arrival: the difference of the clocks, and part of each lateness."""
    return min((late for each in _timed_of(case, "direct") for late in each.late), default=0.0)


def is_held(case: Case) -> bool:
    """True if most streams through the gateway came only at their end."""
    through, base = [each for each in _timed_of(case, "through") if each.late], offset(case)
    return bool(through) and 2 * sum(each.is_held(base) for each in through) > len(through)


def _lateness(case: Case) -> tuple[list[float], list[float]]:
    base = offset(case)
    ways = [[late - base for each in _timed_of(case, way) for late in each.late] for way in WAYS]
    return ways[0], ways[1]


def streams_arrived(case: Case) -> tuple[str, str]:
    """The streams through the gateway: `as sent`, or most of them `at the end`, after their last message was made."""
    through = [each for each in _timed_of(case, "through") if each.late]
    if not through:
        raise _nothing(case)
    base = offset(case)
    if any(each.is_held(base) for each in _timed_of(case, "direct")):
        raise unclear("the direct way itself was late")
    count = sum(each.is_held(base) for each in through)
    worst = max(late for each in through for late in each.late) - base
    evidence = f"{count} of {len(through)} streams came at their end, up to {ms(worst)} late"
    return "at the end" if is_held(case) else "as sent", evidence


def _nothing(case: Case) -> UnjudgedError:
    if not _timed_of(case, "through"):
        return unclear("no call was found at the probe")
    return not_applicable("no progress arrives with its request")


def check_late(case: Case) -> Comparison:
    """Found if the median message is later than without the gateway, and the stream is not held back as a whole."""
    direct, through = _lateness(case)
    if not through:
        raise _nothing(case)
    if is_held(case):
        raise not_applicable("the streams are held back: stream.held")
    ours, theirs = median(direct) if direct else 0.0, median(through)
    if ours > LEAST_S:
        raise unclear(f"the direct way itself was {ms(ours)} late")
    evidence = f"{len(through)} messages, {ms(min(through))} to {ms(max(through))} late"
    return Comparison(ms(ours), ms(theirs), found=is_late(theirs, ours), evidence=evidence)


def check_progress_dropped(case: Case) -> Comparison:
    """Found if more than half of the calls with a progress token bring no progress on any stream."""
    through = [each for each in _timed_of(case, "through") if each.at_probe]
    if not through:
        raise unclear("no call was found at the probe, or none was given its token")
    empty = [each for each in through if not each.arrived and not each.beside]
    sent, came = sum(each.at_probe for each in through), sum(each.arrived + each.beside for each in through)
    evidence = f"calls {listed([each.call for each in empty])}" if empty else ""
    found = 2 * len(empty) > len(through)
    return Comparison(f"{sent} sent", f"{came} arrived", found=found, evidence=evidence)


def moved_progress(case: Case) -> list[str]:
    """The count of progress messages on the GET stream of the session, as one sentence."""
    trials = case.of("progress.legacy", "through")
    if not trials:
        raise not_applicable("the gateway does not offer sessions")
    count = sum(each.beside for each in map(timed, trials) if each is not None)
    return [f"{count} messages came on the GET stream"] if count else []


def check_result_last(case: Case) -> Comparison:
    """Found if a message of progress is missing where others of the same call arrived: the result came first."""
    trials = [trial for step in ("fast", *_TIMED) for trial in case.of(step, "through")]
    called = [(trial, call) for trial in trials if (call := call_of(trial)) is not None and call.progress]
    if not called:
        raise unclear("no call was found at the probe, or none was given its token")
    sent, came, missing = 0, 0, list[str]()
    for trial, call in called:
        numbers = {_progress(row) for row in call.progress}
        arrived = set(_numbers(trial["call"].of(PROGRESS)))
        # No progress at all, and progress on another stream, are faults of their own.
        if arrived and not ("get" in trial and trial["get"].of(PROGRESS)):
            sent, came = sent + len(numbers), came + len(numbers & arrived)
            missing += [f"{trial.step}: {number:g} of {len(numbers)}" for number in sorted(numbers - arrived)]
    if not sent:
        raise not_applicable("no progress arrives with its request")
    evidence = f"missing: {listed(missing)}" if missing else ""
    return Comparison(f"{sent} sent", f"{came} arrived", found=bool(missing), evidence=evidence)


def wrong_order(case: Case) -> list[str]:
    """The calls with progress that does not grow from each message to the next."""
    wrong: list[str] = []
    for step in (*_TIMED, "fast"):
        for trial in case.of(step, "through"):
            came = _numbers(trial["call"].of(PROGRESS))
            if any(later <= earlier for earlier, later in pairwise(came)):
                wrong.append(f"{step}: {listed([f'{number:g}' for number in came], 8)}")
    return wrong


def check_get_head(case: Case) -> Comparison:
    """Found if the head of the GET stream does not come within 3 s."""
    both = case.pair("get")
    ours, theirs = (trial["get"] for trial in both)
    if ours.status != 200 or ours.head_at is None:
        raise unclear("the direct way itself has no GET stream")
    direct = ms(ours.head_at - ours.began)
    if theirs.status is None:
        return Comparison(direct, f"none in {ms(theirs.ended - theirs.began)}", found=True, evidence=theirs.problem)
    if theirs.status != 200 or theirs.head_at is None:
        raise not_applicable(f"the GET stream is refused with {theirs.status}")
    took = theirs.head_at - theirs.began
    return Comparison(direct, ms(took), found=took > 3.0, evidence="")


def check_get_stream(case: Case) -> Comparison:
    """Found if `notifications/tools/list_changed` does not arrive on the GET stream; changed if that gets 405."""
    both = case.pair("get")
    ours, theirs = (trial["get"] for trial in both)
    if not ours.messages:
        raise unclear("the direct way itself brought nothing")
    if theirs.status is None:
        raise not_applicable("the GET stream does not begin: get.head")
    if theirs.status == 405:
        return permitted("200", "405", "the gateway has no GET stream, which is allowed")
    moved_to = len(both[1]["announce"].of("notifications/tools/list_changed"))
    evidence = "it came with the response to the call" if moved_to else ""
    came = len(theirs.messages)
    return Comparison(f"{len(ours.messages)} message", f"{came} ({theirs.status})", found=not came, evidence=evidence)


def check_parallel(case: Case) -> Comparison:
    """Found if a call gets no answer among others, or if calls come late and wait for each other at the probe."""
    ours, theirs = ([_load(trial) for trial in _loads(case, way)] for way in WAYS)
    if not ours or not theirs:
        raise not_applicable("it was not done on both ways")
    # A busy machine is late by chance, so the worst time of the direct way counts, and the best one through.
    direct, through = max(ours, key=lambda load: load.first), min(theirs, key=lambda load: (load.lost, load.first))
    if any(load.lost for load in ours) or direct.first > _DIRECT_S:
        lost = max(load.lost for load in ours)
        raise unclear(f"the direct way itself: first message after {ms(direct.first)}, {lost} without an answer")
    is_slow = is_late(through.first, direct.first, _IN_TURN_S)
    # Calls at the probe at the same time do not wait for each other.
    waited = 2 * max(load.at_once for load in theirs) <= min(load.at_once for load in ours)
    evidence = (
        f"of {through.count} calls {through.lost} had no answer; the probe had {through.at_once} at the same time"
    )
    stopped = "; no more were tried" if through.stopped else ""
    found = bool(through.lost) or (is_slow and waited)
    return Comparison(ms(direct.first), ms(through.first), found=found, evidence=evidence + stopped)


def _loads(case: Case, way: Way) -> list[Trial]:
    return case.of("load", way) or case.of("load.quick", way)


@dataclass(frozen=True, slots=True)
class _Load:
    """Calls at the same time: seconds until the latest of their first messages, and how many had no answer.

    `at_once` is how many of them the probe had at the same time.
    """

    count: int
    first: float
    lost: int
    at_once: int
    stopped: bool


def _load(trial: Trial) -> _Load:
    made = [item for item in trial.exchanges if item.name.startswith("call")]
    firsts = [(item.messages[0].at if item.messages else item.ended) - item.began for item in made]
    lost = sum(item.answer is None for item in made)
    stopped = bool(trial.facts.get("stopped"))
    return _Load(len(made), max(firsts, default=0.0), lost, _at_once(trial), stopped)


def _at_once(trial: Trial) -> int:
    ends = [(row["at"], step) for call in trial.behind.all_calls(trial.mark) for row, step in _ends(call)]
    # An end comes before a beginning of the same moment.
    return max(accumulate(step for _, step in sorted(ends)), default=0)


def _ends(call: ProbeCall) -> list[tuple[Row, int]]:
    return [(call.started, 1), *([] if call.settled is None else [(call.settled, -1)])]


def check_sessions_of_load(case: Case) -> Comparison:
    """Found if the probe opens a session for more than half of the requests of 2026-07-28, which has no sessions."""
    trial = next(iter(_loads(case, "through")), None)
    if trial is None or not case.offers("modern", "through"):
        raise not_applicable("calls of one session: see sessions.each")
    opened, calls = trial.behind.of("session.opened"), len(trial.exchanges)
    if case.run.others and 2 * len(opened) > calls:
        raise unclear("another run used the probe meanwhile")
    evidence = f"{len(opened)} sessions for {calls} requests" if opened else ""
    return Comparison("0 sessions", f"{len(opened)}", found=2 * len(opened) > calls, evidence=evidence)


def check_streams(case: Case) -> Comparison:
    """Found if requests wait or are refused once an HTTP/2 connection has its limit of streams open."""
    trial = case.one("streams", "through")
    if trial is None:
        raise not_applicable("HTTP/2 is not spoken")
    facts = trial.facts
    if facts["problem"]:
        raise unclear(facts["problem"])
    late_ones = facts["late"] + facts["refused"]
    evidence = f"with {facts['limit']} streams open the next request waits" if late_ones else ""
    return Comparison("no limit met", f"{facts['limit']} streams", found=bool(late_ones), evidence=evidence)


def call_of(trial: Trial) -> ProbeCall | None:
    """The call of a trial at the probe; None if it was not found."""
    return next(iter(trial.behind.calls(trial.mark)), None)


CHECKS: Final = (
    Check(1, _TIMED, expecting("as sent", streams_arrived)),
    Check(2, _TIMED, check_late),
    Check(3, ("get",), check_get_head),
    Check(4, _TIMED, check_progress_dropped),
    Check(5, ("fast", *_TIMED), check_result_last),
    Check(6, ("progress.legacy",), listing(moved_progress, "on its response", "on the GET stream")),
    Check(7, (*_TIMED, "fast"), listing(wrong_order, "in order", "out of order", most=2)),
    Check(14, ("get",), check_get_stream),
    Check(47, ("streams",), check_streams, alone=True),
    Check(48, ("load", "load.quick"), check_parallel),
    Check(49, ("load", "load.quick"), check_sessions_of_load),
)
