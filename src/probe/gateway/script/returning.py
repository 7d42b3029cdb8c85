"""Phase 5: resumed streams, questions, tasks and subscriptions. Other transports. Phase 8: broken connections.

The steps of phase 8 need the breaker between gateway and probe.
"""

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
from .step import Step, Taken

_STEPS: Final = 8
# A server needs up to a second to find out whether a half-closed client still reads.
_SEEN_S: Final = 1.5


async def resume(side: Side, mark: int) -> Taken:
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


async def elicitation(side: Side, mark: int) -> Taken:
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
    """The id of the first question on these streams; None if none comes."""
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


async def legacy_task(side: Side, mark: int) -> Taken:
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


async def modern_task(side: Side, mark: int) -> Taken:
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


async def subscription(side: Side, mark: int) -> Taken:
    """`subscriptions/listen`, and a change of the list of tools."""
    wanted = {"notifications": {"toolsListChanged": True}}
    async with side.asking(modern("listen", "subscriptions/listen", wanted, mark=mark)) as stream:
        await stream.wait_messages(1, 3.0)
        announce = modern_call(side, "announce", "announce_list_change", {"list": "tools"}, mark=mark)
        notified = await side.ask(announce)
        await stream.wait_messages(2, 2.0)
    return Taken((stream.record(), notified))


async def draft_stream(side: Side, mark: int) -> Taken:
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


_MOST_STREAMS: Final = 300
"""A limit above this is no problem for one client."""


async def websocket(side: Side, mark: int) -> Taken:
    """The upgrade, `initialize` and a ping."""
    assert side.websocket is not None, "the step needs it"
    messages = [initialize(mark), notification("notifications/initialized", None), request(1, "ping", None)]
    return Taken((await converse(side.websocket, "websocket", messages, 2),))


async def streams(side: Side, mark: int) -> Taken:
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


HANGS_S: Final = 10.0
"""A response still open after this counts as one that stays open."""


def _plan(side: Side, mark: int, moment: Moment) -> None:
    assert side.breaker is not None, "the step needs it"
    side.breaker.moments[mark] = moment


async def before_modern(side: Side, mark: int) -> Taken:
    """The connection breaks after the request, before the answer."""
    _plan(side, mark, "before")
    sending = modern_call(side, "call", "simple_tool", _slow(mark), mark=mark)
    return Taken((await side.ask(sending, HANGS_S),), facts=_facts(side, mark))


async def before_legacy(side: Side, mark: int) -> Taken:
    """The same in a session: the call goes on."""
    async with session(side, mark) as opened:
        _plan(side, mark, "before")
        got = await side.ask(in_session("call", call(side, "simple_tool", _slow(mark)), opened), HANGS_S)
    return Taken((*opened.opened, got), facts=_facts(side, mark))


def _facts(side: Side, mark: int) -> dict[str, bool]:
    return {"broken": side.breaker is not None and mark in side.breaker.broken}


def _slow(mark: int) -> dict[str, object]:
    return {"delayMs": 1500, "mark": mark}


async def after(side: Side, mark: int, moment: Moment = "after") -> Taken:
    """The connection breaks after the first event of a stream."""
    arguments = {"steps": 8, "step_ms": 200, "mark": mark}
    async with era_client(side, mark) as client:
        _plan(side, mark, moment)
        got = await side.ask(client.call("call", "progress", arguments, token=1), HANGS_S)
    return Taken((*client.opened, got), facts=_facts(side, mark))


async def later(side: Side, mark: int) -> Taken:
    """The connection breaks after the sixth event: a gateway that collects bytes has sent its head by then."""
    return await after(side, mark, "later")


_LEGACY: Final = frozenset({"legacy", "sessions"})
_BREAKER: Final = frozenset({"breaker", "tool:simple_tool", "tool:progress"})
STEPS: Final = (
    Step("resume", "return", resume, _LEGACY | {"tool:progress"}),
    Step("elicitation", "return", elicitation, _LEGACY | {"tool:elicit_simple_form"}),
    Step("tasks.legacy", "return", legacy_task, _LEGACY, beside=True),
    Step("tasks.modern", "return", modern_task, frozenset({"modern"})),
    Step("subscription", "return", subscription, frozenset({"modern", "tool:announce_list_change"})),
    Step(
        "draft",
        "return",
        draft_stream,
        _LEGACY | {"tool:progress"},
        settles_s=1.0,
        beside=True,
        profiles=("full", "idle"),
    ),
    Step("websocket", "transports", websocket, frozenset({"websocket"})),
    Step("streams", "transports", streams, frozenset({"modern", "h2", "tool:progress"}), profiles=("full", "idle")),
    Step("break.before.modern", "breaker", before_modern, _BREAKER | {"modern"}),
    Step("break.before.legacy", "breaker", before_legacy, _BREAKER | {"legacy"}),
    Step("break.after", "breaker", after, _BREAKER),
    Step("break.later", "breaker", later, _BREAKER),
)
