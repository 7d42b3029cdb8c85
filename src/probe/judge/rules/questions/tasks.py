"""Rules `tasks.*`: tasks of 2025-11-25, and what they have in common with those of the tasks extension."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from ....views.retention import members
from ....views.values import Message
from ....wire.revisions import LEGACY
from ...clients.moments import lacks_session
from ...clients.questions import RELATED_TASK, Reply
from ...clients.series import ALWAYS, NEVER
from ...clients.tasks import Told
from ...retention import BOUNDS
from ...trace.findings import FAIL, MEASURED, PASS, PASSED, UNCLEAR, WARN, Finding, TooEarly, Undecided
from ...trace.opportunities import ANSWERED, REPLY, REQUEST, TASK_TOLD
from ...trace.rules import rule
from ...trace.trace import Trace

_GET: Final = "tasks/get"
_RESULT: Final = "tasks/result"
_CANCEL: Final = "tasks/cancel"
_ABOUT: Final = frozenset({_GET, _RESULT, "tasks/update", _CANCEL})
_NEWS: Final = frozenset({_GET, _RESULT, "notifications/tasks/status"})
# A client follows a task if it looks again within so many poll intervals.
_POLLS: Final = 10
# A share needs so many gaps to be one; a client is given the benefit of the first ones.
_LEAST_GAPS: Final = 5
_FIRST_GAPS: Final = 3
# Looks after the end: two are right, and a reloaded page makes a few more.
_GETS_AFTER_END: Final = 2
_MANY_GETS_AFTER_END: Final = 5
# Looks at a task after the answer -32602: three more are right, ten are too many.
_GETS_OF_UNKNOWN: Final = 3
_MANY_GETS_OF_UNKNOWN: Final = 10
_INVALID_PARAMS: Final = -32602


class _Gaps:
    def __init__(self) -> None:
        self.count = 0
        self.short = 0
        self.shares: deque[float] = deque(maxlen=BOUNDS.parts)

    @property
    def measured(self) -> Mapping[str, Any]:
        shares = {"worst": round(min(self.shares), 2), "median": round(median(self.shares), 2)}
        return {"gaps between polls, shares of the interval": shares}


@rule("tasks.poll-interval", each=REQUEST, methods=_ABOUT)
@rule("tasksx.poll-interval", each=REQUEST, methods=_ABOUT, one_process=True)
def polls_slowly(request: Message, trace: Trace) -> Finding | None:
    """After news of the task, an answer to its question or another request about it an early look is right."""
    # Requests of all sessions whose opening is missing would be those of one.
    task = None if lacks_session(request) else trace.seen.task(request)
    before = None if task is None else trace.before((request.in_session, task.id))
    if task is None or before is None or before.method != _GET or request.method != _GET:
        return None
    told = task.told.between(before.at, request.at)
    look = next((each for each in told if each.request is before), None)
    if look is None or not look.poll_s or any(each.request is None for each in told):
        return None
    if trace.gap_in(before.at, request.at) or trace.disturbance(before.at, request.at):
        return None
    return _judge_gap(request.at - before.at, look.poll_s, before, trace)


@rule("tasks.poll-interval", each=REPLY)
def answers_between(reply: Reply, trace: Trace) -> Finding | None:
    """An answer to a task's question is something about it."""
    if reply.question.related_task is not None:
        trace.before((reply.message.in_session, reply.question.related_task))
    return None


def _judge_gap(gap: float, interval: float, before: Message, trace: Trace) -> Finding:
    """Arrivals at the server jitter, so a share of the gaps counts, never one gap."""
    gaps, allowed = trace.kept(_Gaps), trace.allowances
    gaps.count += 1
    gaps.shares.append(gap / interval)
    if gap >= interval - max(interval * allowed.poll_tolerance, allowed.retry_tolerance_ms / 1000):
        return PASS(before, measured=gaps.measured) if gaps.count >= _FIRST_GAPS else MEASURED(**gaps.measured)
    gaps.short += 1
    if gaps.count < _LEAST_GAPS or gaps.short < allowed.poll_share * gaps.count:
        return MEASURED(**gaps.measured)
    worst, middle = min(gaps.shares), median(gaps.shares)
    said = f"{gaps.short} of {gaps.count} polls came before the interval of {interval:g} s was over"
    remark = f"{said}: at worst after {worst:.0%} of it, {middle:.0%} in the middle"
    return FAIL(remark, before, measured=gaps.measured)


@rule("tasks.polls-to-end", each=TASK_TOLD, methods={"tools/call"})
def follows_task(told: Told, trace: Trace) -> Finding | None:
    """A notification of the end, or `tasks/cancel`, is an excuse."""
    task, until = told.task, last_look(told, trace)
    news, requests = task.told.first(_is_news, until), task.requests
    acts = [*requests[_RESULT].between(NEVER, until)[:1], *requests[_CANCEL].between(NEVER, until)[:1]]
    first = min([*acts, *(() if news is None else (news,))], key=lambda each: each.at, default=None)
    if first is not None:
        return PASS(first) if first.method in (_GET, "tasks/list", _RESULT) else None
    return unfollowed(told, trace)


def _is_news(told: Told) -> bool:
    wants_input = told.request is not None and told.status == "input_required"
    return told.method != "tools/call" and (told.is_terminal or wants_input)


def patience(poll_s: float | None, trace: Trace) -> float:
    """The time for one more look at a task, in seconds."""
    return max(_POLLS * (poll_s or 0.0), trace.allowances.alive_s)


def last_look(told: Told, trace: Trace) -> float:
    """The time by which a client has looked after the end of a task; `ALWAYS` while it runs."""
    return ALWAYS if told.task.ended is None else max(told.task.ended, told.at) + patience(told.poll_s, trace)


def unfollowed(told: Told, trace: Trace) -> Finding | None:
    """The task has ended, and no look came. Raises `TooEarly` while it runs."""
    if told.task.ended is None:
        raise TooEarly(None, told.task.work)
    return neglected(told, max(told.task.ended, told.at), patience(told.poll_s, trace), _GET, trace)


def neglected(told: Told, since: float, seconds: float, missing: str, trace: Trace) -> Finding | None:
    """No request of a method came about a task for some seconds, `missing` is the method.

    A client may come back for it days later. So this counts only where other requests came: in its session, or from the
    whole client in 2026-07-28.
    """
    session, until = told.session, since + seconds
    if (session is None and told.revision in LEGACY) or _is_gone(told, until, trace):
        trace.passed(since, seconds)  # a request about the task may still come
        return None
    trace.sure.had_time(since, seconds, on=told.task.work)
    if not trace.seen.acted(session, since, until):
        return None
    forgot = trace.subject.dialogue.tasks.forgot
    if forgot or trace.gap_in(told.task.created or NEVER, until):
        raise Undecided(f"{missing} may be among the entries that are missing")
    others = trace.seen.all(REQUEST, since=since, until=until, scope=None if session is None else session.scope)
    if any(each.method != "ping" for each in others):
        return WARN(f"no {missing} came within {seconds:g} s, and other requests did")
    return UNCLEAR(f"no {missing} came, and no other request")


def _is_gone(told: Told, until: float, trace: Trace) -> bool:
    """True if the session of the task was closed; without sessions, the pipe of the task, and no act came elsewhere."""
    session, pipe = told.session, told.sent.pipe
    if session is not None and session.closed_by(until):
        return True
    if pipe is None or pipe.closed is None or not pipe.closed_by(until):
        return False
    return session is not None or not trace.seen.acted(None, pipe.closed.mono, until)


@rule("tasks.result-fetched", each=TASK_TOLD, methods={_GET})
def fetches_result(told: Told, trace: Trace) -> Finding | None:
    if told.status != "completed" or trace.nth(told.task.id) > 1:
        return None
    fetched = told.task.requests[_RESULT].between(NEVER, told.at + trace.allowances.alive_s)
    if fetched:
        return PASS(fetched[0])
    return neglected(told, told.at, trace.allowances.alive_s, _RESULT, trace)


@rule("tasks.input-required", each=TASK_TOLD, methods=_NEWS)
def asks_for_question(told: Told, trace: Trace) -> Finding | None:
    """A `tasks/result` from before may be open still.

    An answer to the question is right, too: it may have come on the GET stream.
    """
    task, since, until = told.task, told.at, told.at + trace.allowances.alive_s
    if told.status != "input_required" or told.before == "input_required":
        return None
    requests, holds = task.requests, task.requests[_RESULT].last_before(since)
    if holds is not None and not (holds.answered_by(since) or holds.dropped_by(since)):
        return PASS(holds)
    acts: list[Message | Reply | Told] = [
        *requests[_RESULT].between(since, until),
        *requests[_CANCEL].between(NEVER, until),
        *(each for each in trace.seen.all(REPLY, since=since, until=until) if each.question.related_task == task.id),
        *(each for each in task.told.between(since, until) if each.before == told.status != each.status),
    ]
    if acts:
        acts.sort(key=lambda act: act.at)
        return _judge_act(acts[0], told, trace)
    trace.sure.had_time(since, "alive_s")
    if trace.gap_in(task.created or NEVER, until):
        return UNCLEAR("tasks/result may be among the entries that are missing")
    if requests[_GET].has(since, until):
        return WARN(f"it polled on, and no tasks/result came within {trace.allowances.alive_s:g} s")
    return UNCLEAR("neither tasks/result nor tasks/get came")


def _judge_act(act: Message | Reply | Told, told: Told, trace: Trace) -> Finding | None:
    if isinstance(act, Told):
        return UNCLEAR(f"the task became {act.status} before tasks/result came", act)
    if act.method == _CANCEL:
        return None
    after = act.at - told.at
    if isinstance(act, Reply) or after <= trace.allowances.answer_s:
        return PASS(act)
    return UNCLEAR(f"tasks/result came {after:.0f} s after input_required", act)


@rule("tasks.related-task", each=REPLY)
def names_task(reply: Reply, trace: Trace) -> Finding | None:
    asked = reply.question.related_task
    if asked is None or not isinstance(reply.value, dict) or reply.hides("_meta", RELATED_TASK):
        return None
    related = members(reply.value.get("_meta")).get(RELATED_TASK)
    if related is None:
        # "common", as the catalogue promises: few libraries send it.
        return FAIL(f"_meta has no {RELATED_TASK} (common)", reply.question)
    if members(related).get("taskId") != asked:
        return FAIL(f"{RELATED_TASK} names another task than the question", reply.question)
    return PASSED


@rule("tasks.no-related-task", each=REQUEST, methods={_GET, _RESULT, _CANCEL})
def names_task_once(request: Message, trace: Trace) -> Finding | None:
    return FAIL(f"_meta of {request.method} has {RELATED_TASK}") if RELATED_TASK in request.meta else PASSED


@rule("tasks.stops-when-terminal", each=TASK_TOLD, methods={_GET})
@rule("tasksx.stops-when-terminal", each=TASK_TOLD, methods={_GET, "notifications/tasks"}, one_process=True)
def stops_at_end(told: Told, trace: Trace) -> Finding | None:
    """A reloaded page may ask a few times more."""
    task, session, since = told.task, told.session, told.at
    if task.over.get(session) is not told:
        return None
    gets = task.requests[_GET].between(since, since + trace.allowances.alive_s)
    more = sum(each.in_session is session for each in gets)
    return _few(more, _GETS_AFTER_END, _MANY_GETS_AFTER_END, "after the task had ended", trace)


@rule("tasks.stops-when-terminal", each=REQUEST, methods={_GET})
@rule("tasksx.stops-when-terminal", each=REQUEST, methods={_GET}, one_process=True)
def polls_on(request: Message, trace: Trace) -> Finding | None:
    """However slow they are, many are too many."""
    task, session = None if lacks_session(request) else trace.seen.task(request), request.in_session
    over = None if task is None else task.over.get(session)
    if task is None or over is None or over.at >= request.at:
        return None
    if trace.nth((session, task.id)) != _MANY_GETS_AFTER_END + 1:
        return None
    return WARN(f"more than {_MANY_GETS_AFTER_END} tasks/get after the task had ended", over)


def _few(more: int, few: int, many: int, words: str, trace: Trace) -> Finding | None:
    """A few requests more are right, and more than `many` are judged each by itself."""
    (trace.sure.had_time if more <= few else trace.sure.crossed)(trace.at, "alive_s")
    if more <= few:
        return PASSED
    return UNCLEAR(f"{more} tasks/get {words}") if more <= many else None


@rule("tasks.unknown-left-alone", each=ANSWERED, methods={_GET})
def leaves_unknown(request: Message, trace: Trace) -> Finding | None:
    task = trace.seen.task(request)
    if task is None or not is_unknown(request, trace) or trace.nth(("answers", task.id)) > 1:
        return None
    more = len(task.requests[_GET].between(trace.at, trace.at + trace.allowances.alive_s))
    return _few(more, _GETS_OF_UNKNOWN, _MANY_GETS_OF_UNKNOWN, "more for a task that is unknown", trace)


@rule("tasks.unknown-left-alone", each=REQUEST, methods={_GET})
def asks_on(request: Message, trace: Trace) -> Finding | None:
    """However slow they are, many are too many."""
    task = trace.seen.task(request)
    before = None if task is None else task.requests[_GET].last_before(request.at)
    if task is None or before is None or not before.answered_by(request.at) or not is_unknown(before, trace):
        return None
    if trace.nth(("requests", task.id)) != _MANY_GETS_OF_UNKNOWN + 1:
        return None
    return WARN(f"more than {_MANY_GETS_OF_UNKNOWN} tasks/get for a task that is unknown")


def is_unknown(request: Message, trace: Trace) -> bool:
    """True for a `tasks/get` with the answer -32602, if that was delivered."""
    return request.method == _GET and request.refusal is None and trace.seen.error_of(request) == _INVALID_PARAMS
