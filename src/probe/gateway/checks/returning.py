"""Resumed streams, questions, tasks, subscriptions, other transports, and broken connections."""

from __future__ import annotations

from typing import Final

from ..client.records import ClientExchange
from ..trials import Trial
from .timing import PROGRESS, is_held
from .verdict import Case, Check, Comparison, compared, listed, members, not_applicable, unclear

_HELD: Final = "the streams are held back: stream.held"


def resume(case: Case) -> Comparison:
    """Found if a broken stream has no ids of events, or if Last-Event-ID does not bring its rest."""
    direct, through = case.pair("resume")
    if "rest" not in direct:
        raise unclear("the direct way itself has no ids of events")
    if is_held(case):
        raise not_applicable(_HELD)
    if not through["call"].of(PROGRESS):
        raise not_applicable("no progress arrives that could be resumed")
    if "rest" not in through:
        return compared("ids", "no ids", found=True, evidence="events have no ids")
    ours, theirs = _steps(direct), _steps(through)
    rest = through["rest"]
    evidence = "" if theirs == ours else f"Last-Event-ID got {rest.status}; arrived: {listed(theirs, 10)}"
    return compared(f"{len(ours)} of {len(ours)}", f"{len(theirs)}", found=theirs != ours, evidence=evidence)


def _steps(trial: Trial) -> list[str]:
    items = [*trial["call"].of(PROGRESS), *trial["rest"].of(PROGRESS)]
    numbers = [members(members(item.message).get("params")).get("progress") for item in items]
    answered = ["result"] if trial["rest"].answer is not None else []
    return [f"{number:g}" if isinstance(number, int | float) else "?" for number in numbers] + answered


def questions(case: Case) -> Comparison:
    """Found if a question (elicitation) does not reach the client, or the call gets no result after the answer."""
    direct, through = case.pair("elicitation")
    if not direct.facts["asked"]:
        raise unclear("the probe itself did not ask")
    if is_held(case):
        raise not_applicable(_HELD)
    answered = "result" in members(through["call"].answer) and not through["call"].result.get("isError")
    if through.facts["asked"] and answered:
        return compared("asked", "asked", found=False)
    how = "asked, but not answered" if through.facts["asked"] else "not asked"
    return compared("asked", how, found=True, evidence=str(members(through["call"].answer).get("error", ""))[:120])


def features(case: Case) -> Comparison:
    """Found if a capability is not offered through the gateway, or if tasks or subscriptions do not work."""
    ours, theirs = (set(case.run.offers[way]) for way in ("direct", "through"))
    eras = [era for era in ("legacy", "modern") if era in theirs]
    missing = sorted(
        name for name in ours - theirs if name.partition(".")[0] in eras and "." in name and ":" not in name
    )
    broken = [] if missing else _broken(case)
    parts = [f"not offered: {listed(missing)}"] if missing else []
    evidence = "; ".join([*parts, *broken])
    return compared("all", f"{len(missing) + len(broken)} lost", found=bool(evidence), evidence=evidence)


def _broken(case: Case) -> list[str]:
    parts: list[str] = []
    for step in ("tasks.legacy", "tasks.modern"):
        both = case.both(step)
        if both is not None and len(both[1].exchanges) < len(both[0].exchanges):
            parts.append(f"{step}: no task was made")
        elif both is not None and "result" not in members(both[1].exchanges[-1].answer):
            parts.append(f"{step}: {both[1].exchanges[-1].name} was not answered")
    listen = case.both("subscription")
    if listen is not None and not is_held(case):
        came, due = len(listen[1]["listen"].messages), len(listen[0]["listen"].messages)
        if came < due:
            parts.append(f"subscriptions/listen: {came} of {due} messages")
    return parts


def draft(case: Case) -> Comparison:
    """Found if a draft stream is resumed too early (1004), because the probe saw its close late."""
    direct, through = case.pair("draft")
    if "resume" not in direct or direct["resume"].error_code is not None:
        raise unclear("the direct way itself could not resume")
    if "resume" not in through:
        raise not_applicable("no draft stream was made")
    code = through["resume"].error_code
    return compared("resumed", "resumed" if code is None else f"error {code}", found=code == 1004)


def websocket(case: Case) -> Comparison:
    """Found if the upgrade to a WebSocket does not get 101, or if messages on it get no answer."""
    direct, through = case.pair("websocket")
    ours, theirs = direct["websocket"], through["websocket"]
    if ours.status != 101:
        raise unclear("the probe itself refused it")
    refused = theirs.status != 101 or len(theirs.messages) < len(ours.messages)
    how = str(theirs.status or theirs.problem or theirs.end)
    return compared("101", how, found=refused)


_BEFORE: Final = ("break.before.modern", "break.before.legacy")
_AFTER: Final = ("break.after", "break.later")


def _broken_trials(case: Case, *steps: str) -> list[Trial]:
    trials = [trial for step in steps for trial in case.of(step, "through")]
    if not trials:
        raise not_applicable("the breaker is off: --breaker PORT")
    if not any(trial.facts["broken"] for trial in trials):
        raise unclear("no request came through the breaker: is the gateway pointed at it?")
    return trials


def _broken_calls(case: Case) -> list[ClientExchange]:
    return [trial["call"] for trial in _broken_trials(case, *_AFTER) if trial.facts["broken"]]


def twice(case: Case) -> Comparison:
    """Found if a call begins twice at the probe after its connection broke before the answer."""
    trials = _broken_trials(case, *_BEFORE)
    counts = {trial.step: len(trial.behind.calls(trial.mark)) for trial in trials}
    several = [f"{step}: {count} executions" for step, count in counts.items() if count > 1]
    most = max(counts.values())
    return compared("1 call", "1 call" if most == 1 else f"{most} calls", found=bool(several), evidence=listed(several))


def refused(case: Case) -> Comparison:
    """Found if a broken call is sent again while the first one runs, and the probe refuses the second one."""
    trial = _broken_trials(case, "break.before.legacy")[0]
    sent = len(trial.behind.of("message.received", method="tools/call"))
    found = sent > 1 and len(trial.behind.calls(trial.mark)) == 1
    how = "sent once" if sent == 1 else f"sent {sent} times"
    return compared("sent once", how, found=found, evidence=f"the client got {trial['call'].status}")


def hidden(case: Case) -> Comparison:
    """Found if a response without its result looks complete after its connection to the probe broke."""
    calls = _broken_calls(case)
    complete = [item for item in calls if item.end == "complete" and item.answer is None and item.status == 200]
    item = (complete or calls)[0]
    how = "complete" if complete else item.end
    evidence = f"{len(complete)} of {len(calls)} broken streams look complete; {item.framing}, no result"
    return compared("broken", how, found=bool(complete), evidence=evidence)


def hangs(case: Case) -> Comparison:
    """Found if a response stays open at the client after its connection to the probe broke."""
    item = max(_broken_calls(case), key=lambda item: item.ended - item.began)
    took = item.ended - item.began
    return compared("broken", item.end, found=item.end == "timed out", evidence=f"after {took:.1f} s")


CHECKS: Final = (
    Check(13, ("resume",), resume),
    Check(18, _BEFORE, twice, alone=True),
    Check(19, ("break.before.legacy",), refused, alone=True),
    Check(20, _AFTER, hidden, alone=True),
    Check(21, _AFTER, hangs, alone=True),
    Check(32, ("elicitation",), questions),
    Check(45, ("tasks.legacy", "tasks.modern", "subscription"), features),
    Check(46, ("websocket",), websocket),
    Check(50, ("draft",), draft),
)
