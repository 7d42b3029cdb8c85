"""Phase 5: resumed streams, questions, tasks, subscriptions, other transports. Phase 8, with a breaker: broken ends."""

from __future__ import annotations

import time
from typing import Final

import trio

from ...wire.jsonrpc import Json, notification, request, result_response
from ...wire.v2026.meta import CLIENT_CAPABILITIES, TASKS_EXTENSION
from ..breaker import Moment
from ..client.live import Live, Sending, exchanging, open_many
from ..client.records import ClientExchange
from ..client.websocket import converse
from ..side import (
    ACCEPT,
    CAPABILITIES,
    Side,
    call,
    era_client,
    in_session,
    initialize,
    modern,
    modern_call,
    open_session,
    session,
)
from ..trials import Trial
from .step import Case, Check, Comparison, Step, Taken, expecting, listed, members, not_applicable, unclear
from .timing import PROGRESS, is_held

_STEPS: Final = 8
# A server needs up to a second to find out whether a half-closed client still reads.
_SEEN_S: Final = 1.5

_MOST_STREAMS: Final = 300
"""A limit above this is no problem for one client."""

HANGS_S: Final = 10.0
"""A response still open after this counts as one that stays open."""

_LEGACY: Final = frozenset({"legacy", "sessions"})
_BREAKER: Final = frozenset({"breaker", "tool:simple_tool", "tool:progress"})
_HELD: Final = "the streams are held back: stream.held"
_BEFORE: Final = ("break.before.modern", "break.before.legacy")
_AFTER: Final = ("break.after", "break.later")


async def resume_stream(side: Side, mark: int) -> Taken:
    """A stream, closed after three messages, and the rest of it by `Last-Event-ID`."""
    arguments = {"steps": _STEPS, "step_ms": 120, "mark": mark}
    async with session(side, mark) as opened:
        message = call(side, "progress", arguments, token=f"token-{mark}")
        async with side.asking(in_session("call", message, opened)) as live:
            await live.wait_messages(3, 5.0)
            await live.close()
        first = live.record()
        seen = [item.event_id for item in first.messages if item.event_id is not None]
        rest: list[ClientExchange] = []
        if seen:
            headers = (ACCEPT, *opened.headers[2:], ("Last-Event-ID", seen[-1]))
            rest.append(await side.ask(Sending("rest", "GET", headers), 5.0))
    return Taken((*opened.opened, first, *rest))


async def ask_client(side: Side, mark: int) -> Taken:
    """A question of the probe to the client, and the answer."""
    async with session(side, mark) as opened:
        message = call(side, "elicit_simple_form", {})
        answered: list[ClientExchange] = []
        async with (
            side.asking(Sending("get", "GET", (ACCEPT, *opened.headers[2:]))) as stream,
            side.asking(in_session("call", message, opened)) as live,
        ):
            asked = await _question(live, stream)
            if asked is not None:
                reply = result_response(asked, {"action": "decline"})
                answered.append(await side.ask(in_session("answer", reply, opened)))
            await live.wait_over(3.0)
        records = (live.record(), stream.record())
    return Taken((*opened.opened, *records, *answered), facts={"asked": asked is not None})


async def _question(*streams: Live) -> int | str | None:
    found: list[Json] = []
    async with trio.open_nursery() as waiting:

        async def wait(stream: Live) -> None:
            asked = await stream.wait_method("elicitation/create", 3.0)
            if asked is not None:
                found.append(asked)
                waiting.cancel_scope.cancel()

        for stream in streams:
            waiting.start_soon(wait, stream)
    id = found[0].get("id") if found else None
    return id if isinstance(id, int | str) else None


async def run_legacy_task(side: Side, mark: int) -> Taken:
    """A task of a session: `tasks/get` and `tasks/result`."""
    async with session(side, mark) as opened:
        message = call(side, "pure_task", {"durationMs": 1000})
        message["params"]["task"] = {"ttl": 60_000}
        made = await side.ask(in_session("make", message, opened))
        got: list[ClientExchange] = []
        id = (made.result.get("task") or {}).get("taskId")
        if isinstance(id, str):
            got.append(await side.ask(in_session("get", request(2, "tasks/get", {"taskId": id}), opened)))
            got.append(await side.ask(in_session("result", request(3, "tasks/result", {"taskId": id}), opened), 5.0))
    return Taken((*opened.opened, made, *got))


async def run_modern_task(side: Side, mark: int) -> Taken:
    """A task of the extension: `tasks/get`."""
    declared: Json = {CLIENT_CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}}}
    params = {"name": side.tool("pure_task"), "arguments": {"durationMs": 1000}, "_meta": declared}
    made = await side.ask(modern("make", "tools/call", params, mark=mark))
    got: list[ClientExchange] = []
    id = made.result.get("taskId")
    if isinstance(id, str):
        asking = modern("get", "tasks/get", {"taskId": id, "_meta": declared}, mark=mark, id=2)
        got.append(await side.ask(asking))
    return Taken((made, *got))


async def listen(side: Side, mark: int) -> Taken:
    """`subscriptions/listen`, and a change of the list of tools."""
    wanted = {"notifications": {"toolsListChanged": True}}
    async with side.asking(modern("listen", "subscriptions/listen", wanted, mark=mark)) as stream:
        await stream.wait_messages(1, 3.0)
        announce = modern_call(side, "announce", "announce_list_change", {"list": "tools"}, mark=mark)
        notified = await side.ask(announce)
        await stream.wait_messages(2, 2.0)
    return Taken((stream.record(), notified))


async def resume_draft(side: Side, mark: int) -> Taken:
    """A stream of the draft extension, closed and resumed as soon as its `min` allows."""
    declared = {**CAPABILITIES, "experimental": {"streams": {}}}
    opened = await open_session(side, mark, capabilities=declared)
    message = call(side, "progress", {"steps": 3, "step_ms": 4000, "mark": mark}, token=f"token-{mark}")
    async with side.asking(in_session("call", message, opened)) as live:
        await live.wait_messages(1, 5.0)
        closed = time.time()
        await live.close()
    first = live.record()
    created = first.of("notifications/stream/create")
    got: list[ClientExchange] = []
    if created and created[0].message is not None:
        params = created[0].message["params"]["stream"]
        await trio.sleep(params["resumeInterval"]["min"] + _SEEN_S)
        again = request(5, "stream/resume", {"streamId": params["streamId"]})
        async with exchanging(side.mcp, in_session("resume", again, opened)) as rest:
            await rest.wait_messages(1, 5.0)
        got.append(rest.record())
    if opened.id is not None:
        await side.ask(Sending("delete", "DELETE", opened.headers))
    return Taken((*opened.opened, first, *got), {"closed": closed})


async def open_websocket(side: Side, mark: int) -> Taken:
    """The upgrade, `initialize` and a ping."""
    assert side.websocket is not None, "the step needs it"
    messages = [initialize(mark), notification("notifications/initialized", None), request(1, "ping", None)]
    return Taken((await converse(side.websocket, "websocket", messages, 2),))


async def open_streams(side: Side, mark: int) -> Taken:
    """Open as many streams as the peer allows, and one more."""
    first = await open_many(side.mcp, [_waiting(side, mark, 0, 0)], 5.0)
    if first.limit is None or first.problem or first.limit > _MOST_STREAMS:
        return Taken((), facts={"limit": first.limit, "late": 0, "refused": 0, "problem": first.problem})
    sendings = [_waiting(side, mark, number, 2500) for number in range(first.limit + 1)]
    more = await open_many(side.mcp, sendings, 8.0)
    late = sum(head is None or head > 2.0 for head in more.heads)
    return Taken((), facts={"limit": first.limit, "late": late, "refused": more.refused, "problem": more.problem})


def _waiting(side: Side, mark: int, number: int, step_ms: int) -> Sending:
    # The head of a response comes with its first message, at once. The stream stays open after it.
    arguments = {"steps": 2, "step_ms": step_ms // 2, "mark": mark + 1 + number}
    return modern_call(side, f"stream {number}", "progress", arguments, mark=mark, token=number)


def _plan(side: Side, mark: int, moment: Moment) -> None:
    assert side.breaker is not None, "the step needs it"
    side.breaker.moments[mark] = moment


async def break_before_modern(side: Side, mark: int) -> Taken:
    """The connection breaks after the request, before the answer."""
    _plan(side, mark, "before")
    sending = modern_call(side, "call", "simple_tool", _slow(mark), mark=mark)
    return Taken((await side.ask(sending, HANGS_S),), facts=_facts(side, mark))


async def break_before_legacy(side: Side, mark: int) -> Taken:
    """The connection of a session breaks there: the call goes on."""
    async with session(side, mark) as opened:
        _plan(side, mark, "before")
        got = await side.ask(in_session("call", call(side, "simple_tool", _slow(mark)), opened), HANGS_S)
    return Taken((*opened.opened, got), facts=_facts(side, mark))


def _facts(side: Side, mark: int) -> dict[str, bool]:
    return {"broken": side.breaker is not None and mark in side.breaker.broken}


def _slow(mark: int) -> dict[str, object]:
    return {"delayMs": 1500, "mark": mark}


async def break_after(side: Side, mark: int, moment: Moment = "after") -> Taken:
    """The connection breaks after the first event of a stream."""
    arguments = {"steps": 8, "step_ms": 200, "mark": mark}
    async with era_client(side, mark) as client:
        _plan(side, mark, moment)
        got = await side.ask(client.call("call", "progress", arguments, token=1), HANGS_S)
    return Taken((*client.opened, got), facts=_facts(side, mark))


async def break_later(side: Side, mark: int) -> Taken:
    """The connection breaks after the sixth event: a gateway that collects bytes has sent its head by then."""
    return await break_after(side, mark, "later")


STEPS: Final = (
    Step("resume", "return", resume_stream, _LEGACY | {"tool:progress"}),
    Step("elicitation", "return", ask_client, _LEGACY | {"tool:elicit_simple_form"}),
    Step("tasks.legacy", "return", run_legacy_task, _LEGACY, beside=True),
    Step("tasks.modern", "return", run_modern_task, frozenset({"modern"})),
    Step("subscription", "return", listen, frozenset({"modern", "tool:announce_list_change"})),
    Step(
        "draft",
        "return",
        resume_draft,
        _LEGACY | {"tool:progress"},
        settles_s=1.0,
        beside=True,
        profiles=("full", "idle"),
    ),
    Step("websocket", "transports", open_websocket, frozenset({"websocket"})),
    Step(
        "streams", "transports", open_streams, frozenset({"modern", "h2", "tool:progress"}), profiles=("full", "idle")
    ),
    Step("break.before.modern", "breaker", break_before_modern, _BREAKER | {"modern"}),
    Step("break.before.legacy", "breaker", break_before_legacy, _BREAKER | {"legacy"}),
    Step("break.after", "breaker", break_after, _BREAKER),
    Step("break.later", "breaker", break_later, _BREAKER),
)


def check_resume(case: Case) -> Comparison:
    """Found if a broken stream has no ids of events, or if Last-Event-ID does not bring its rest."""
    direct, through = case.pair("resume")
    if "rest" not in direct:
        raise unclear("the direct way itself has no ids of events")
    if is_held(case):
        raise not_applicable(_HELD)
    if not through["call"].of(PROGRESS):
        raise not_applicable("no progress arrives that could be resumed")
    if "rest" not in through:
        return Comparison("ids", "no ids", found=True, evidence="events have no ids")
    ours, theirs = _steps(direct), _steps(through)
    rest = through["rest"]
    evidence = "" if theirs == ours else f"Last-Event-ID got {rest.status}; arrived: {listed(theirs, 10)}"
    return Comparison(f"{len(ours)} of {len(ours)}", f"{len(theirs)}", found=theirs != ours, evidence=evidence)


def _steps(trial: Trial) -> list[str]:
    items = [*trial["call"].of(PROGRESS), *trial["rest"].of(PROGRESS)]
    numbers = [members(members(item.message).get("params")).get("progress") for item in items]
    answered = ["result"] if trial["rest"].answer is not None else []
    return [f"{number:g}" if isinstance(number, int | float) else "?" for number in numbers] + answered


def question(case: Case) -> tuple[str, str]:
    """A question (elicitation): `asked` if it reaches the client, and the call gets a result after the answer."""
    direct, through = case.pair("elicitation")
    if not direct.facts["asked"]:
        raise unclear("the probe itself did not ask")
    if is_held(case):
        raise not_applicable(_HELD)
    answered = "result" in members(through["call"].answer) and not through["call"].result.get("isError")
    if through.facts["asked"] and answered:
        return "asked", ""
    how = "asked, but not answered" if through.facts["asked"] else "not asked"
    return how, str(members(through["call"].answer).get("error", ""))[:120]


def check_features(case: Case) -> Comparison:
    """Found if a capability is not offered through the gateway, or if tasks or subscriptions do not work."""
    ours, theirs = (set(case.run.offers[way]) for way in ("direct", "through"))
    eras = [era for era in ("legacy", "modern") if era in theirs]
    missing = sorted(
        name for name in ours - theirs if name.partition(".")[0] in eras and "." in name and ":" not in name
    )
    broken = [] if missing else _broken(case)
    parts = [f"not offered: {listed(missing)}"] if missing else []
    evidence = "; ".join([*parts, *broken])
    return Comparison("all", f"{len(missing) + len(broken)} lost", found=bool(evidence), evidence=evidence)


def _broken(case: Case) -> list[str]:
    parts: list[str] = []
    for step in ("tasks.legacy", "tasks.modern"):
        both = case.both(step)
        if both is not None and len(both[1].exchanges) < len(both[0].exchanges):
            parts.append(f"{step}: no task was made")
        elif both is not None and "result" not in members(both[1].exchanges[-1].answer):
            parts.append(f"{step}: {both[1].exchanges[-1].name} was not answered")
    listened = case.both("subscription")
    if listened is not None and not is_held(case):
        came, due = len(listened[1]["listen"].messages), len(listened[0]["listen"].messages)
        if came < due:
            parts.append(f"subscriptions/listen: {came} of {due} messages")
    return parts


def check_draft(case: Case) -> Comparison:
    """Found if a draft stream is resumed too early (1004), because the probe saw its close late."""
    direct, through = case.pair("draft")
    if "resume" not in direct or direct["resume"].error_code is not None:
        raise unclear("the direct way itself could not resume")
    if "resume" not in through:
        raise not_applicable("no draft stream was made")
    code = through["resume"].error_code
    return Comparison("resumed", "resumed" if code is None else f"error {code}", found=code == 1004)


def check_websocket(case: Case) -> Comparison:
    """Found if the upgrade to a WebSocket does not get 101, or if messages on it get no answer."""
    direct, through = case.pair("websocket")
    ours, theirs = direct["websocket"], through["websocket"]
    if ours.status != 101:
        raise unclear("the probe itself refused it")
    refused = theirs.status != 101 or len(theirs.messages) < len(ours.messages)
    how = str(theirs.status or theirs.problem or theirs.end)
    return Comparison("101", how, found=refused)


def _broken_trials(case: Case, *steps: str) -> list[Trial]:
    trials = [trial for step in steps for trial in case.of(step, "through")]
    if not trials:
        raise not_applicable("the breaker is off: --breaker PORT")
    if not any(trial.facts["broken"] for trial in trials):
        raise unclear("no request came through the breaker: is the gateway pointed at it?")
    return trials


def _broken_calls(case: Case) -> list[ClientExchange]:
    return [trial["call"] for trial in _broken_trials(case, *_AFTER) if trial.facts["broken"]]


def check_executed_once(case: Case) -> Comparison:
    """Found if a call begins twice at the probe after its connection broke before the answer."""
    trials = _broken_trials(case, *_BEFORE)
    counts = {trial.step: len(trial.behind.calls(trial.mark)) for trial in trials}
    several = [f"{step}: {count} executions" for step, count in counts.items() if count > 1]
    most = max(counts.values())
    return Comparison(
        "1 call", "1 call" if most == 1 else f"{most} calls", found=bool(several), evidence=listed(several)
    )


def check_retry(case: Case) -> Comparison:
    """Found if a broken call is sent again while the first one runs, and the probe refuses the second one."""
    trial = _broken_trials(case, "break.before.legacy")[0]
    sent = len(trial.behind.of("message.received", method="tools/call"))
    found = sent > 1 and len(trial.behind.calls(trial.mark)) == 1
    how = "sent once" if sent == 1 else f"sent {sent} times"
    return Comparison("sent once", how, found=found, evidence=f"the client got {trial['call'].status}")


def check_hidden_end(case: Case) -> Comparison:
    """Found if a response without its result looks complete after its connection to the probe broke."""
    calls = _broken_calls(case)
    complete = [item for item in calls if item.end == "complete" and item.answer is None and item.status == 200]
    item = (complete or calls)[0]
    how = "complete" if complete else item.end
    evidence = f"{len(complete)} of {len(calls)} broken streams look complete; {item.framing}, no result"
    return Comparison("broken", how, found=bool(complete), evidence=evidence)


def check_open_end(case: Case) -> Comparison:
    """Found if a response stays open at the client after its connection to the probe broke."""
    item = max(_broken_calls(case), key=lambda item: item.ended - item.began)
    took = item.ended - item.began
    return Comparison("broken", item.end, found=item.end == "timed out", evidence=f"after {took:.1f} s")


CHECKS: Final = (
    Check(13, ("resume",), check_resume),
    Check(18, _BEFORE, check_executed_once, alone=True),
    Check(19, ("break.before.legacy",), check_retry, alone=True),
    Check(20, _AFTER, check_hidden_end, alone=True),
    Check(21, _AFTER, check_open_end, alone=True),
    Check(32, ("elicitation",), expecting("asked", question)),
    Check(45, ("tasks.legacy", "tasks.modern", "subscription"), check_features),
    Check(46, ("websocket",), check_websocket),
    Check(50, ("draft",), check_draft),
)
