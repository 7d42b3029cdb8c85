"""Random lives of modern tasks, told to a whole engine over its ASGI application in virtual time.

Whatever is created, asked, answered, cancelled and waited for: a final status is final, a key names one question for
ever, an answer that was taken is the one the work gets, each task has exactly one outcome and is gone after its ttl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Ask, Tool, ToolResult, WorkCancelledError, failure, structured
from probe.wire.errors import McpError

from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import RpcError
from ..support.listening import bare, settle
from ..support.modern import Modern
from ..support.probe import Probe, running
from . import at_most

TTL_S = 20
FINAL = {"completed", "failed", "cancelled"}
FORM = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def steady(context: ToolContext) -> ToolResult:
    for step in range(1, 4):
        await context.sleep(1)
        context.report_progress(step, 3, f"step {step}")
    return structured({"answers": {}})


async def erring(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    return failure("as ever")


async def breaking(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    raise McpError(4711, "broken")


async def giving_up(context: ToolContext) -> ToolResult:
    await context.sleep(1)
    raise WorkCancelledError("the person said so")


async def endless(context: ToolContext) -> ToolResult:
    await context.sleep(10_000)
    return structured({"answers": {}})


async def one_by_one(context: ToolContext) -> ToolResult:
    """Questions without keys of their own; some time passes between them."""
    answers = {}
    for number in range(1, 4):
        answers[f"question_{number}"] = await context.elicit(f"{number}?", FORM)
        await context.sleep(0.5)
    return structured({"answers": answers})


async def in_pairs(context: ToolContext) -> ToolResult:
    """Two rounds of two questions."""
    answers: dict[str, Any] = {}
    for keys in (("a", "b"), ("c", "d")):
        asks = {key: Ask("elicitation/create", {"message": key, "requestedSchema": FORM}) for key in keys}
        answers |= await context.ask(asks)
    return structured({"answers": answers})


KINDS: dict[Callable[[ToolContext], Awaitable[ToolResult]], str] = {
    steady: "completed",
    erring: "completed",
    breaking: "failed",
    giving_up: "cancelled",
    endless: "cancelled",
    one_by_one: "completed",
    in_pairs: "completed",
}
"""How each of them ends when nobody interferes; an endless one ends by its ttl."""
TOOLS = Toolset(
    "lives",
    tuple(Tool(run.__name__, run.__name__, run.__name__, run, task_support="required") for run in KINDS),
)
ENDS = {run.__name__: end for run, end in KINDS.items()}

which = st.integers(0, 5)
keys = st.sets(st.sampled_from(["question_1", "question_2", "question_3", "a", "b", "c", "d", "never"]))
steps = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(sorted(ENDS))),
    st.tuples(st.just("create"), st.sampled_from(["one_by_one", "in_pairs"])),
    st.tuples(st.just("get"), which),
    st.tuples(st.just("update"), which, keys),
    st.tuples(st.just("answer"), which, st.booleans()),
    st.tuples(st.just("answer"), which, st.booleans()),
    st.tuples(st.just("spoil"), which, keys),
    st.tuples(st.just("cancel"), which),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 2.5, 8.0])),
    st.tuples(st.just("settle")),
)
stories = st.lists(steps, min_size=4, max_size=20)


@dataclass
class Life:
    """What a client knows of one task."""

    id: str
    kind: str
    created: float
    seen: dict[str, Any] = field(default_factory=dict)
    cancelled: bool = False
    gone: bool = False
    asked: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, Any] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.seen.get("status") in FINAL

    def see(self, task: dict[str, Any]) -> None:
        """One `tasks/get`, compared with all that were seen before."""
        if self.over:
            assert task == self.seen, "a final status is final, with all that belongs to it"
        assert task["createdAt"] == self.seen.get("createdAt", task["createdAt"])
        assert task["lastUpdatedAt"] >= self.seen.get("lastUpdatedAt", "")
        for key, request in task.get("inputRequests", {}).items():
            assert key not in self.answered, "a key is never used again"
            assert self.asked.setdefault(key, request) == request, "a key names one question for ever"
        assert ("inputRequests" in task) == (task["status"] == "input_required")
        assert task.get("inputRequests") != {}, "a task that needs input says which"
        self.seen = task
        if self.over:
            self._check_end(task)

    def _check_end(self, task: dict[str, Any]) -> None:
        if self.cancelled:
            assert task["status"] == "cancelled"
            return
        assert task["status"] == ENDS[self.kind]
        if task["status"] == "completed" and self.kind != "erring":
            assert task["result"]["structuredContent"]["answers"] == self.answered, "the first answers count"


class World:
    """One engine, one client, all its tasks. Each step is a method."""

    def __init__(self, probe: Probe, client: Modern) -> None:
        self.probe = probe
        self.client = client
        self.lives: list[Life] = []
        self._count = 0

    async def create(self, kind: str) -> None:
        """A task that exists once it has been answered."""
        handle = await self.client.tool(kind)
        life = Life(handle["taskId"], kind, trio.current_time())
        assert life.id not in {other.id for other in self.lives}
        life.see(bare(handle))
        self.lives.append(life)
        await self._look(life)

    async def get(self, at: int) -> None:
        if self.lives:
            await self._look(self.lives[at % len(self.lives)])

    async def answer(self, at: int, everything: bool) -> None:
        """Answer what is asked, or the first of it."""
        if self.lives:
            life = self.lives[at % len(self.lives)]
            await self._look(life)
            await self.update(at, set(list(life.seen.get("inputRequests", {}))[: None if everything else 1]))

    async def update(self, at: int, keys: set[str]) -> None:
        """Answer some keys, whether they are asked or not."""
        if not self.lives:
            return
        life = self.lives[at % len(self.lives)]
        await self._now(life)
        outstanding = set(life.seen.get("inputRequests", {}))
        responses = {key: self._fresh() for key in sorted(keys)}
        if await self._send(life, "tasks/update", inputResponses=responses):
            taken = outstanding & keys
            life.answered |= {key: responses[key] for key in taken}
            await self._look(life)
            left = set(life.seen.get("inputRequests", {}))
            assert life.over or outstanding - taken <= left, "what was not answered is still asked"
            assert (life.seen["status"] == "input_required") or not outstanding - taken or life.over

    async def spoil(self, at: int, keys: set[str]) -> None:
        """An answer that fits no question: nothing is taken if one of the keys is asked."""
        if not self.lives:
            return
        life = self.lives[at % len(self.lives)]
        await self._now(life)
        before, outstanding = life.seen, set(life.seen.get("inputRequests", {}))
        bad = sorted(keys & outstanding)[-1:]
        responses = {key: {"action": "maybe"} if key in bad else self._fresh() for key in sorted(keys)}
        if bad and not life.gone:
            error = await self._error(life, inputResponses=responses)
            assert error.code == -32602
            await self._look(life)
            assert life.seen == before

    async def cancel(self, at: int) -> None:
        """`tasks/cancel`, in time or too late."""
        if not self.lives:
            return
        life = self.lives[at % len(self.lives)]
        await self._now(life)
        over = life.over
        if await self._send(life, "tasks/cancel"):
            life.cancelled = life.cancelled or not over
            await self._look(life)
            assert life.over, "cancelled at once"

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def settle(self) -> None:
        await settle()

    async def finish(self) -> None:
        """Look at every task once more, and again after the last ttl."""
        for life in self.lives:
            await self._look(life)
        await trio.sleep(TTL_S + 1)
        for life in self.lives:
            await self._look(life)
            assert life.gone

    def _fresh(self) -> dict[str, Any]:
        self._count += 1
        return {"action": "accept", "content": {"n": self._count}}

    async def _now(self, life: Life) -> None:
        """Look once all that is due at this moment has happened: what comes next is not in a tie with it."""
        await settle()
        await self._look(life)

    async def _look(self, life: Life) -> None:
        try:
            life.see(bare(await self.client.get_task(life.id)))
        except RpcError as error:
            self._gone(life, error)

    async def _send(self, life: Life, method: str, **params: Any) -> bool:
        try:
            assert bare(await self.client.call(method, {"taskId": life.id, **params})) == {}
        except RpcError as error:
            self._gone(life, error)
        return not life.gone

    async def _error(self, life: Life, **params: Any) -> RpcError:
        try:
            await self.client.call("tasks/update", {"taskId": life.id, **params})
        except RpcError as error:
            return error
        raise AssertionError("a malformed answer was taken")

    def _gone(self, life: Life, error: RpcError) -> None:
        assert error.code == -32602
        assert trio.current_time() >= life.created + TTL_S - 0.01, "only the ttl takes a task away"
        life.gone = True


@at_most(700)
@given(story=stories)
def test_whatever_becomes_of_tasks_the_promises_hold(story: list[tuple[Any, ...]]) -> None:
    trio.run(tell, story, clock=MockClock(autojump_threshold=0))


async def tell(story: list[tuple[Any, ...]]) -> None:
    """One engine, one story."""
    async with running(toolsets=(TOOLS,), tools="lives", task_ttl_ms=TTL_S * 1000, keep_alive_s=600) as probe:
        world = World(probe, Modern(probe.app, "/mcp"))
        for name, *arguments in story:
            await getattr(world, name)(*arguments)
        await world.finish()
        check_log(probe, world.lives)
        assert (probe.engine.tasks.everyone(), engine_tasks()) == ([], SERVICES)


def check_log(probe: Probe, lives: list[Life]) -> None:
    """Each task has one outcome, told by its record as by its status, and was removed once."""
    settled = {event["task"]: event for event in probe.events("call.settled") if event["task"]}
    assert Counter(event["task"] for event in probe.events("call.settled")) == Counter(life.id for life in lives)
    assert Counter(event["task"] for event in probe.events("task.removed")) == Counter(life.id for life in lives)
    for life in lives:
        changes = [event["status"] for event in probe.events("task.changed") if event["task"] == life.id]
        assert changes[:2] == ["queued", "working"]
        (final,) = [status for status in changes if status in FINAL]
        assert final == changes[-1]
        outcome = settled[life.id]["outcome"]
        assert (outcome in ("completed", "tool_error")) == (final == "completed")
        assert (outcome == "protocol_error") == (final == "failed")
        assert (outcome == "cancelled") == (final == "cancelled")
        if life.cancelled:
            assert settled[life.id]["cancelled_by"] == "tasks_cancel"
