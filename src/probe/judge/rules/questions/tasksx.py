"""Rules `tasksx.*`: the tasks extension of 2026-07-28.

There are no sessions: a task belongs to every process with its id. Where a label may be two processes, silence of one
is no accusation, as the other may follow the task (`one_process`).
"""

from __future__ import annotations

from itertools import islice
from typing import Final, Literal

from ....views.retention import members
from ....views.values import Message
from ....wire.v2026.meta import CLIENT_CAPABILITIES
from ...clients.questions import Question
from ...clients.rounds import are_equal
from ...clients.series import NEVER
from ...clients.tasks import EXTENSION, TaskView, Told
from ...retention import BOUNDS
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import ANSWERED, QUESTION, REPLY, REQUEST, TASK_TOLD
from ...trace.rules import rule
from ...trace.trace import Trace
from ...values import pointer, shown
from .tasks import is_unknown, last_look, patience, unfollowed

_GET: Final = "tasks/get"
_UPDATE: Final = "tasks/update"
_CANCEL: Final = "tasks/cancel"
# One ignored handle may be kept for later, and so may a second one.
_IGNORED_TASKS: Final = 3
# An equal call so soon after the handle shows that the handle was taken for no result, in seconds.
_REPEATED_S: Final = 5.0
# A program answers within twice the time of its fastest answer.
_TWICE: Final = 2
_CAPABILITIES: Final = pointer("params", "_meta", CLIENT_CAPABILITIES)


@rule("tasksx.polymorphic", each=TASK_TOLD, methods={"tools/call"}, one_process=True)
def uses_handle(told: Told, trace: Trace) -> Finding | None:
    """A client may keep a handle for later.

    FAIL takes three ignored handles of three, the first ignored for five minutes, and acts of the client long after
    each.
    """
    fate = _fate(told, trace)
    if fate is None:
        return None
    if fate == "used":
        return PASSED
    if fate == "idle":
        return UNCLEAR("nothing was asked for, the task or anything else")
    what = "the call was made again, and its task" if _is_repeated(told, trace) else "the task"
    fates = trace.fates(TASK_TOLD, _fate, "tools/call", before=told)
    before = list(islice(((each, one) for each, one in fates if one in ("ignored", "asleep")), _IGNORED_TASKS - 1))
    is_rule = fate == "ignored" and [one for _, one in before] == ["ignored"] * (_IGNORED_TASKS - 1)
    knows_handles = trace.subject.dialogue.tasks.used < trace.at or trace.gap_in(NEVER, trace.at)
    if is_rule and not knows_handles and trace.at - before[-1][0].at >= trace.allowances.person_s:
        return FAIL(f"{what} was not asked for; so it was with three of three", *(each for each, _ in before))
    return WARN(f"{what} was not asked for")


def _fate(told: Told, trace: Trace) -> Literal["used", "ignored", "idle", "asleep"] | None:
    """The use of a handle: `ignored` with acts later, `asleep` without, `idle` with no other request."""
    if told.request is None or not _declares(told.request):
        return None
    waits, alive_s = patience(told.poll_s, trace), trace.allowances.alive_s
    if told.task.first_request(told.at, told.at + waits + alive_s) is not None:
        return "used"
    until = trace.sure.had_time(told.at, waits + alive_s, on=told.task.work)
    is_alive = trace.seen.acted(None, told.at + waits, until)
    if not is_alive and not _is_repeated(told, trace):
        return None
    requests = trace.seen.all(REQUEST, since=told.at, until=until)
    if not any(each.method != "ping" for each in requests):
        return "idle"
    return "ignored" if is_alive else "asleep"


def _is_repeated(told: Told, trace: Trace) -> bool:
    calls = trace.seen.all(REQUEST, "tools/call", since=told.at, until=told.at + _REPEATED_S)[: BOUNDS.searched]
    return told.request is not None and any(are_equal(each, told.request) for each in calls)


@rule("tasksx.polls-to-end", each=TASK_TOLD, one_process=True)
def sees_end(told: Told, trace: Trace) -> Finding | None:
    return PASSED if told.is_terminal else None


@rule("tasksx.polls-to-end", each=REQUEST, methods={_CANCEL}, one_process=True)
def cancels_task(request: Message, trace: Trace) -> Finding | None:
    """`tasks/cancel` counts if the handle was delivered before."""
    task = trace.seen.task(request)
    return PASSED if task is not None and task.created is not None and task.created < request.at else None


@rule("tasksx.polls-to-end", each=ANSWERED, methods={_GET}, one_process=True)
def sees_that_it_is_gone(request: Message, trace: Trace) -> Finding | None:
    """The answer -32602 is an end, too."""
    task = trace.seen.task(request)
    return PASSED if task is not None and task.created is not None and is_unknown(request, trace) else None


@rule("tasksx.polls-to-end", each=TASK_TOLD, methods={"tools/call"}, one_process=True)
def follows_task(told: Told, trace: Trace) -> Finding | None:
    """Silence after the end is judged as in 2025-11-25."""
    task, until = told.task, last_look(told, trace)
    last = task.requests[_GET].last_before(until)
    is_gone = last is not None and last.answered_by(until) and is_unknown(last, trace)
    if is_gone or task.requests[_CANCEL].has(NEVER, until) or task.told.first(_is_terminal, until) is not None:
        return None
    return unfollowed(told, trace)


def _is_terminal(told: Told) -> bool:
    return told.is_terminal


@rule("tasksx.update", each=QUESTION, one_process=True)
def updates_task(question: Question, trace: Trace) -> Finding | None:
    """A person may take minutes.

    Silence counts after five minutes of polling; or at the end of the task, if the client had far more time than for
    its answer to such a question in a round.
    """
    task = trace.subject.dialogue.tasks.find(question.task)
    if task is None or not question.is_declared:
        return None
    had, until = trace.at, trace.at + trace.allowances.person_s
    ended = until if task.ended is None or not had < task.ended < until else task.ended
    acts = [*task.requests[_UPDATE].between(had, ended)[:1], *task.requests[_CANCEL].between(had, ended)[:1]]
    if acts:
        act = min(acts, key=lambda each: each.at)
        return PASS(act) if act.method == _UPDATE else None
    if ended < until:
        return _judge_end(question, task, had, ended, trace)
    trace.sure.had_time(had, "person_s", on=task.work)
    if trace.gap_in(task.created or NEVER, until):
        return UNCLEAR("tasks/update may be among the entries that are missing")
    told = task.told.last_before(until)
    if task.requests[_GET].has(until - patience(None if told is None else told.poll_s, trace), until):
        return WARN(f"it polled for {trace.allowances.person_s:g} s, and no tasks/update came")
    return UNCLEAR("neither tasks/update nor tasks/get came")


def _judge_end(question: Question, task: TaskView, had: float, ended: float, trace: Trace) -> Finding:
    replies = trace.seen.all(REPLY, question.method, until=ended)[-BOUNDS.searched :]
    took = min((each.at - each.question.had for each in replies if each.question.task is None), default=None)
    polled = task.requests[_GET].last_before(ended)
    if took is None or polled is None or trace.gap_in(task.created or NEVER, ended):
        return UNCLEAR("the task ended before tasks/update came")
    if min(polled.at, ended) - had <= max(_TWICE * took, trace.allowances.answer_s):
        return UNCLEAR("the task ended before tasks/update came")
    return WARN(f"the task ended without tasks/update, while it answered {question.method} in a round")


@rule("tasksx.update-keys", each=REQUEST, methods={_UPDATE}, one_process=True)
def updates_by_key(request: Message, trace: Trace) -> Finding | None:
    """Emitted keys count: the answer may be in the log before the delivery of the question."""
    task, given = trace.seen.task(request), members(request.params.get("inputResponses"))
    if not given:
        return None
    why = "the log may not have all questions of this task"
    trace.sure.whole(why)
    if task is None or not task.is_whole(request.at):
        return UNCLEAR(why)
    unknown = [key for key in given if not task.asked_by(key, request.at)]
    if not unknown:
        return PASSED
    asked = sorted({question.seq for question in task.questions.values() if question.sent.at < request.at})
    return FAIL(f"inputResponses has {shown(unknown[0])}, which the task never asked", *asked[-3:])


@rule("tasksx.no-double-answer", each=ANSWERED, methods={_UPDATE}, one_process=True)
def answers_question(request: Message, trace: Trace) -> Finding | None:
    task, given = trace.seen.task(request), members(request.params.get("inputResponses"))
    if task is None or request.answer is None or request.answer.rpc != "response":
        return None
    return PASSED if any(task.asked_by(key, trace.at) for key in given) else None


@rule("tasksx.no-double-answer", each=REQUEST, methods={_UPDATE}, one_process=True)
def answers_once(request: Message, trace: Trace) -> Finding | None:
    """A repetition before the acknowledgement is innocent."""
    task, given = trace.seen.task(request), members(request.params.get("inputResponses"))
    if task is None:
        return None
    for key, before in [(key, trace.before((task.id, key))) for key in given]:
        if before is not None and _is_answered(task, key, before, request, trace):
            return WARN(f"{shown(key)} was answered again", before)
    return None


def _is_answered(task: TaskView, key: str, before: Message, request: Message, trace: Trace) -> bool:
    """True if an answer to a question was accepted, and the question not asked again, when another one came."""
    answered, at = before.answered, request.at
    if answered is None or answered > at - trace.allowances.token_grace_s or trace.gap_in(before.at, at):
        return False
    if before.answer is None or before.answer.rpc != "response" or not task.asked_by(key, answered):
        return False
    later = (told for told in task.told.between(answered, at) if key in told.asks and told.request is not None)
    return not any(told.request is not None and told.request.at > answered for told in later)


@rule("tasksx.declared", each=REQUEST, methods={_GET, _UPDATE, _CANCEL})
def declares_extension(request: Message, trace: Trace) -> Finding | None:
    if request.hides(_CAPABILITIES):
        return None
    if _declares(request):
        return PASSED
    return WARN(f"{request.method} came without {EXTENSION} in the capabilities of its _meta")


def _declares(request: Message) -> bool:
    return EXTENSION in members(members(request.meta.get(CLIENT_CAPABILITIES)).get("extensions"))
