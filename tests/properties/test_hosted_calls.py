"""Calls through a tool host, in memory and in virtual time, told random stories of what host and clients do.

Whatever happens: each call ends once, at the right time, by whoever came first; the client has an answer or silence,
and progress that increases; the host is told to stop exactly what has ended otherwise, once, and why.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.hosts import ECHO, PLAIN, Call, Host, calling, connected, hosting
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.probe import Probe
from . import at_most

# Moves are made at multiples of this, of which none is one of the deadlines.
TICK_S = 0.7
TOOLS = {"plain": (30.0, 300.0), "echo": (30.0, 300.0), "short": (5.0, 20.0)}
"""The tools, with their deadlines."""
SHORT = {**PLAIN, "name": "short", "idleMs": 5000, "ceilingMs": 20_000}
FITTING = {"plain": {"text": "done"}, "echo": {"output": {"word": "done"}}, "short": {"output": {}}}
UNFIT = {"plain": {"content": []}, "echo": {"text": "done"}, "short": "done"}

which = st.integers(0, 2)
GOOD = st.tuples(st.just("report"), which, st.sampled_from(["+1", "+0.5"]), st.sampled_from([None, 10, 2.5]))
ODD = st.tuples(
    st.just("report"),
    which,
    st.sampled_from(["equal", "equal", "smaller", "2**70", "10**400", "0.1", "text", "+1"]),
    st.sampled_from([None, 10, 10**400]),
)
# What waits for its turn stands more often than it would by chance, and so does what ends a call in that moment.
moves = st.one_of(
    GOOD,
    GOOD,
    ODD,
    ODD,
    st.tuples(st.just("flood"), which, st.integers(2, 30)),
    st.tuples(st.just("finish"), which, st.integers(2, 5)),
    st.tuples(st.sampled_from(["answer", "unfit", "garbage"]), which),
    st.tuples(st.just("fail"), which, st.sampled_from([1, 2, 5, -32601])),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("update"), st.booleans()),
    st.tuples(st.sampled_from(["unknown", "delete"])),
)
endings = st.sampled_from([None, None, None, ("go",), ("replace",), ("drain",)])
pauses = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2, 7, 14, 28, 42, 43])
stories = st.tuples(
    st.lists(st.tuples(st.sampled_from(sorted(TOOLS)), st.booleans(), st.booleans()), min_size=2, max_size=3),
    st.lists(st.tuples(pauses, moves), min_size=12, max_size=30),
    st.tuples(pauses, endings),
)


@dataclass
class Model:
    """What must become of one call: `cause` is who stopped it, `code` what fails it; with neither it has a result."""

    tool: str
    legacy: bool
    token: str | None
    began: float
    id: str = ""
    idle_at: float = field(init=False)
    ended_at: float | None = None
    cause: str | None = None
    code: str | None = None
    valid: list[Any] = field(default_factory=list)
    invalid: int = 0
    late: Counter[str] = field(default_factory=Counter)
    host_done: bool = False

    def __post_init__(self) -> None:
        self.idle_at = self.began + TOOLS[self.tool][0]

    @property
    def due(self) -> float:
        return min(self.idle_at, self.began + TOOLS[self.tool][1])

    @property
    def stopped(self) -> bool:
        return self.cause is not None

    def advance(self, now: float) -> None:
        if self.ended_at is None and self.due <= now:
            self.end(self.due, cause="deadline")

    def end(self, at: float, *, cause: str | None = None, code: str | None = None) -> None:
        if self.ended_at is None:
            self.ended_at, self.cause, self.code = at, cause, code

    def report(self, value: Any, total: Any, now: float) -> None:
        """The host reports."""
        if not isinstance(value, int | float):
            self.invalid += self.ended_at is None
            return
        if self.ended_at is not None:
            self.late["progress"] += 1
            return
        finite = all(abs(number) <= sys.float_info.max for number in (value, total) if number is not None)
        if finite and (not self.valid or value > self.valid[-1]):
            self.valid.append(value)
            self.idle_at = max(self.idle_at, now + TOOLS[self.tool][0])
        else:
            self.invalid += 1

    def answer(self, what: str, now: float, *, code: str | None) -> None:
        """The host answers."""
        if self.ended_at is None:
            self.end(now, code=code)
        elif self.host_done or what == "result" or code != "host_stopped":
            self.late[what] += 1
        self.host_done = True


def values(model: Model, kind: str) -> Any:
    """What a report of a kind says."""
    latest = model.valid[-1] if model.valid else 0
    known = {"equal": latest, "smaller": latest - 1, "2**70": 2**70, "10**400": 10**400, "0.1": 0.1, "text": "1"}
    return known[kind] if kind in known else latest + float(kind) if "." in kind else latest + int(kind)


@at_most(300)
@given(story=stories, burst=st.sampled_from([1, 100]))
def test_whatever_host_and_clients_do_each_call_ends_once_and_rightly(story: Any, burst: int) -> None:
    trio.run(tell, *story, burst, clock=MockClock(autojump_threshold=0))


async def tell(calls: Any, moves: Any, last: Any, burst: int) -> None:
    rates = {"progress_burst": burst, "progress_per_second": 1}
    async with hosting(**rates, grace_s=1.05, toolhost_linger_s=1000) as (probe, host):
        await host.update(PLAIN, ECHO, SHORT)
        legacy, modern = await probe.client(tools="hosts"), probe.modern(tools="hosts")
        async with trio.open_nursery() as nursery:
            stage = Stage(probe, host, legacy, modern)
            for tool, old, told in calls:
                await stage.begin(nursery, tool, old, "t" if told else None)
            for pause, move in moves:
                await stage.make(pause, *move)
            pause, ending = last
            await stage.make(pause, *(ending or ("nothing",)))
            await trio.sleep(400)
            heard = await host.hear_all()
        stage.check(heard)


class Stage:
    """The calls, and who makes the moves."""

    def __init__(self, probe: Probe, host: Host, legacy: Legacy, modern: Modern) -> None:
        self.probe, self.host, self.legacy, self.modern = probe, host, legacy, modern
        self.calls: list[tuple[Call, Model]] = []

    async def begin(self, nursery: trio.Nursery, tool: str, old: bool, token: str | None) -> None:
        """Start a call and wait until the host has it."""
        model = Model(tool, old, token, trio.current_time())
        ready = trio.Event()

        async def live() -> None:
            async with calling(self.legacy if old else self.modern, f"demo__{tool}", token=token) as call:
                self.calls.append((call, model))
                ready.set()

        nursery.start_soon(live)
        await ready.wait()
        model.id, params = await self.host.dispatched()
        assert params["tool"] == tool

    async def make(self, pause: int, kind: str, *how: Any) -> None:
        """One move, after a pause of so many ticks."""
        await trio.sleep(pause * TICK_S)
        await wait_all_tasks_blocked()
        now = trio.current_time()
        for _, model in self.calls:
            model.advance(now)
        if kind in ("report", "flood", "finish", "answer", "unfit", "garbage", "fail", "cancel"):
            call, model = self.calls[how[0] % len(self.calls)]
            await getattr(self, kind)(call, model, now, *how[1:])
        else:
            await getattr(self, kind)(now, *how)
        await wait_all_tasks_blocked()

    async def report(self, call: Call, model: Model, now: float, value: str, total: Any) -> None:
        said = values(model, value)
        model.report(said, total, now)
        await self.host.progress(model.id, said, **({} if total is None else {"total": total}))

    async def flood(self, call: Call, model: Model, now: float, count: int) -> None:
        for _ in range(count):
            await self.report(call, model, now, "+1", None)

    async def finish(self, call: Call, model: Model, now: float, count: int) -> None:
        await self.flood(call, model, now, count)
        await self.answer(call, model, now)

    async def answer(self, call: Call, model: Model, now: float) -> None:
        await self.host.answer(model.id, **FITTING[model.tool])
        model.answer("result", now, code=None)

    async def unfit(self, call: Call, model: Model, now: float) -> None:
        await self.host.say({"jsonrpc": "2.0", "id": model.id, "result": UNFIT[model.tool]})
        model.answer("result", now, code="invalid_output")

    async def garbage(self, call: Call, model: Model, now: float) -> None:
        await self.host.say_text("{")
        await self.host.say({"jsonrpc": "2.0", "id": "d99", "result": {"text": "nobody's"}})

    async def fail(self, call: Call, model: Model, now: float, code: int) -> None:
        await self.host.fail(model.id, code, "no", {"code": "failed"})
        model.answer("error", now, code={1: "failed", 2: "host_stopped"}.get(code, "host_error"))

    async def cancel(self, call: Call, model: Model, now: float) -> None:
        if model.legacy:
            await self.legacy.cancel(call.id, "stop")
        else:
            call.leave()
        model.end(now, cause="notification" if model.legacy else "disconnect")

    async def delete(self, now: float) -> None:
        if any(model.legacy for _, model in self.calls):
            await self.legacy.delete()
            for _, model in self.calls:
                if model.legacy:
                    model.end(now, cause="session_end")
            # Whoever cancels then has no session, so there is a new one for what may follow.
            self.legacy = await self.probe.client(tools="hosts")

    async def update(self, now: float, fewer: bool) -> None:
        await self.host.send("host.update", {"tools": [PLAIN] if fewer else [PLAIN, ECHO, SHORT]})

    async def unknown(self, now: float) -> None:
        await self.host.send("tools/list")

    async def nothing(self, now: float) -> None:
        pass

    async def go(self, now: float) -> None:
        await self.host.go()
        for _, model in self.calls:
            model.end(now, code="host_gone")

    async def drain(self, now: float) -> None:
        await self.probe.engine.drain()
        for _, model in self.calls:
            model.advance(trio.current_time())
            model.end(trio.current_time(), cause="shutdown")

    async def replace(self, now: float) -> None:
        async with connected(self.probe.app) as again:
            await again.register()
        for _, model in self.calls:
            model.end(now, code="host_gone")

    def check(self, heard: list[dict[str, Any]]) -> None:
        """Everybody has seen what the models say."""
        settled = {event["call"]: event for event in self.probe.events("call.settled")}
        ended = {event["call"]: event for event in self.probe.events("dispatch.settled")}
        for kind in ("call.settled", "dispatch.settled"):
            assert Counter(event["call"] for event in self.probe.events(kind)) == dict.fromkeys(settled, 1)
        sent = {event["dispatch"]: event["call"] for event in self.probe.events("dispatch.sent")}
        late = Counter((event["dispatch"], event["what"]) for event in self.probe.events("dispatch.late"))
        assert late == {(model.id, what): 1 for _, model in self.calls for what in model.late if model.late[what]}
        for call, model in self.calls:
            model.advance(math.inf)
            check_client(call, model)
            check_host(model, [message["params"] for message in heard if message.get("method") == "tool.cancel"])
            check_log(model, settled[sent[model.id]], ended[sent[model.id]])
        for closed in self.probe.events("host.closed")[:1]:
            assert closed["late"] == sum(model.late.total() for _, model in self.calls)


def check_client(call: Call, model: Model) -> None:
    """An answer or silence, of the right kind; and progress that increases, up to the last valid report."""
    silent = model.cause in ("notification", "disconnect", "session_end")
    assert (call.response is None) is silent
    reports = [report["progress"] for report in call.progress]
    assert all(one < other for one, other in pairwise(reports))
    assert set(reports) <= set(model.valid)
    if model.token is None:
        assert reports == []
    elif not silent and model.cause != "shutdown":
        assert reports[-1:] == model.valid[-1:], "the last one is never lost"
    if model.cause == "deadline":
        assert call.result["_meta"]["mcp-probe/deadline"]["progressCount"] == len(model.valid)
    elif model.code is not None:
        told = call.failure
        assert told["code"] == model.code
        assert told.get("progress") == (model.valid[-1] if model.valid else None)
    elif model.cause is None:
        assert not call.result.get("isError")


def check_host(model: Model, cancels: list[dict[str, Any]]) -> None:
    """The host was told to stop what ended otherwise, once, and why."""
    causes = [params["cause"] for params in cancels if params["dispatch"] == model.id]
    assert causes == ([model.cause] if model.stopped else [])


def check_log(model: Model, settled: dict[str, Any], dispatch: dict[str, Any]) -> None:
    """The log has the same story."""
    assert settled["cancelled_by"] == model.cause
    assert settled["duration_ms"] == round((model.ended_at - model.began) * 1000, 3)
    assert settled["sent_after_cancel"] == 0
    assert settled["answered"] == (model.cause not in ("notification", "disconnect", "session_end"))
    assert (dispatch["reports"], dispatch["invalid"]) == (len(model.valid), model.invalid)
    assert settled["steps_done"] == (model.valid[-1] if model.valid else None)
