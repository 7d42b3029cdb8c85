"""Random subscriptions to random changes, told to a whole engine over its ASGI application in virtual time.

Whatever the filters, however slow the readers and whoever ends it: nothing comes that was not asked for, the order is
that of the changes, nothing is missing before the end, and the end is a defined one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from ..support.inside import SERVICES, engine_tasks
from ..support.listening import Ear, Reluctant, bare, settle
from ..support.modern import Modern
from ..support.probe import EPOCH, Probe, running
from . import at_most

TARGET = "/mcp?tools=all"
OTHER = "/mcp?tools=features"
MAX_QUEUE = 6
TICKING = {"probe://clock": 2, "test://watched-resource": 3}
URIS = [*TICKING, "probe://text", "no:thing"]
LISTS = ["tools", "prompts", "resources"]
TASKS: dict[str, dict[str, Any]] = {
    "pure_task": {"durationMs": 1000},
    "task_with_progress": {"itemCount": 4, "delayPerItemMs": 700},
    "failing_task": {"failAfterMs": 1000},
    "cancellable_task": {},
    "pausable_task": {"itemCount": 2, "pauseAfterItem": 1},
}
LISTEN = "subscriptions/listen"

which = st.integers(0, 5)
filters = st.tuples(
    st.sets(st.sampled_from(LISTS)),
    st.lists(st.sampled_from(URIS), max_size=3, unique=True),
    st.lists(which, max_size=3, unique=True),
)
steps = st.one_of(
    st.tuples(st.just("open"), filters, st.booleans(), st.sampled_from([TARGET, TARGET, OTHER])),
    st.tuples(st.just("announce"), st.sampled_from(LISTS), st.sampled_from([TARGET, TARGET, OTHER])),
    st.tuples(st.just("announce"), st.sampled_from(LISTS), st.just(TARGET)),
    st.tuples(st.just("create"), st.sampled_from(sorted(TASKS))),
    st.tuples(st.just("cancel_task"), which),
    st.tuples(st.just("answer_task"), which),
    st.tuples(st.just("pause"), which),
    st.tuples(st.just("read"), which),
    st.tuples(st.just("hang_up"), which),
    # No sum of these is a whole number of seconds before the story is over, so no tick falls on a step.
    st.tuples(st.just("wait"), st.sampled_from([0.313, 1.117, 2.719, 5.531])),
)
EVERYTHING = ("open", ({"tools", "prompts", "resources"}, [*TICKING], [0, 1]), True, TARGET)
OPENING = [("create", "task_with_progress"), ("create", "cancellable_task"), EVERYTHING]
stories = st.lists(steps, min_size=4, max_size=18).map(lambda rest: [*OPENING, *rest])


@dataclass
class Listener:
    """One subscription: what was asked, what should have been told since, and what was."""

    app: Reluctant
    request: dict[str, Any]
    target: str
    honoured: dict[str, Any]
    expected: list[tuple[Any, ...]]
    since: float
    gone: bool = False
    until: float | None = None
    paused: bool = False
    slow: bool = False
    ear: Ear | None = None

    def wants(self, change: tuple[Any, ...]) -> bool:
        """Whether a change is one for this subscription."""
        kind, what, *_ = change
        if kind == "list":
            return bool(self.honoured.get(f"{what}ListChanged")) and change[2] == self.target
        return what in self.honoured.get("taskIds", ())

    @property
    def open(self) -> bool:
        return self.until is None


class World:
    """One engine, its subscriptions, and the changes there were. Each step is a method."""

    def __init__(self, probe: Probe, nursery: trio.Nursery) -> None:
        self.probe = probe
        self.client = Modern(probe.app, TARGET)
        self.listeners: list[Listener] = []
        self.tasks: list[str] = []
        self._nursery = nursery
        self._logged = 0

    # Steps of a story.

    async def open(self, asked: tuple[set[str], list[str], list[int]], reads: bool, target: str) -> None:
        """A subscription; one whose reader is slow from the beginning gets its acknowledgement later."""
        lists, uris, tasks = asked
        ids = [self.tasks[at % len(self.tasks)] for at in tasks]
        wanted = {
            **{f"{kind}ListChanged": True for kind in sorted(lists)},
            "resourceSubscriptions": uris,
            "taskIds": [*ids, "no-task"],
        }
        app = Reluctant(self.probe.app)
        client = Modern(app, target)
        request = client.request(LISTEN, {"notifications": wanted}, id=f"L{len(self.listeners)}")
        known = [uri for uri in uris if uri != "no:thing" and (target == TARGET or uri.startswith("probe:"))]
        living = list(dict.fromkeys(id for id in ids if self.probe.engine.tasks.find(id, "modern") is not None))
        honoured = {**wanted, "resourceSubscriptions": known, "taskIds": living}
        shown = {key: value for key, value in honoured.items() if value}
        told = [await self._state(id) for id in living]
        listener = Listener(app, request, target, shown, told, trio.current_time())
        self.listeners.append(listener)
        self._nursery.start_soon(self._listen, listener, client)
        listener.paused = listener.slow = not reads
        if reads:
            app.read()

    async def announce(self, kind: str, target: str) -> None:
        """A list changes, for those who see it by this URL."""
        await Modern(self.probe.app, target).tool("announce_list_change", {"list": kind})
        self._happened(("list", kind, target))

    async def create(self, name: str) -> None:
        self.tasks.append((await self.client.tool(name, TASKS[name]))["taskId"])

    async def cancel_task(self, at: int) -> None:
        await self.client.call("tasks/cancel", {"taskId": self.tasks[at % len(self.tasks)]})

    async def answer_task(self, at: int) -> None:
        """`tasks/update`, whether anything is asked or not."""
        id = self.tasks[at % len(self.tasks)]
        asked = (await self.client.get_task(id)).get("inputRequests", {})
        responses = {key: {"action": "accept", "content": {"continue": True}} for key in asked}
        await self.client.call("tasks/update", {"taskId": id, "inputResponses": responses})

    async def pause(self, at: int) -> None:
        """A reader stops reading; what is on its way is still taken."""
        if self.listeners and not self.listeners[at % len(self.listeners)].gone:
            listener = self.listeners[at % len(self.listeners)]
            listener.app.pause()
            listener.paused = listener.slow = True

    async def read(self, at: int) -> None:
        """A reader reads on."""
        if self.listeners:
            listener = self.listeners[at % len(self.listeners)]
            listener.app.read()
            listener.paused = listener.gone and listener.paused

    async def hang_up(self, at: int) -> None:
        """A client goes."""
        if self.listeners:
            listener = self.listeners[at % len(self.listeners)]
            listener.until = listener.until or trio.current_time()
            assert listener.ear is not None
            listener.gone = True
            listener.ear.answer.hang_up()

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def step(self, name: str, *arguments: Any) -> None:
        """One step, and everything that follows from it at this moment."""
        await getattr(self, name)(*arguments)
        await settle()
        self._collect()

    async def finish(self) -> None:
        """The server shuts down while some of the readers are slow; then all of them read."""
        ended = trio.current_time()
        await self.probe.engine.drain()
        await settle()
        self._collect()
        for listener in self.listeners:
            listener.until = listener.until or ended
            listener.app.read()
        await settle()

    # What the clients do, and what they should hear.

    async def _listen(self, listener: Listener, client: Modern) -> None:
        async with client.post(listener.request) as answer:
            assert answer.status == 200
            ear = listener.ear = Ear(client, listener.request["id"], answer)
            await ear.read()

    async def _state(self, id: str) -> tuple[Any, ...]:
        task = await self.client.get_task(id)
        return ("task", id, task["status"], task["statusMessage"])

    def _collect(self) -> None:
        """The changes of tasks since the last look, in the order in which they were made."""
        for event in self.probe.events("task.changed")[self._logged :]:
            self._logged += 1
            # The first status is told by the handle; nobody can listen to a task before it is there.
            if event["status"] != "queued":
                self._happened(("task", event["task"], event["status"], event["message"]))

    def _happened(self, change: tuple[Any, ...]) -> None:
        for listener in self.listeners:
            if listener.open and listener.wants(change):
                listener.expected.append(change)


@at_most(500)
@given(story=stories)
def test_whatever_changes_each_subscription_hears_its_own(story: list[tuple[Any, ...]]) -> None:
    trio.run(tell, story, clock=MockClock(autojump_threshold=0))


async def tell(story: list[tuple[Any, ...]]) -> None:
    """One engine, one story. The clock's odd beginning keeps ticks away from the steps."""
    async with running(max_listen_queue=MAX_QUEUE, keep_alive_s=600, grace_s=0.01) as probe:
        await trio.sleep(0.0517)
        async with trio.open_nursery() as nursery:
            world = World(probe, nursery)
            for step in story:
                await world.step(*step)
            await world.finish()
        overflown = ended_by_overflow(probe, world.listeners)
        for listener in world.listeners:
            check(listener, overflown)
        assert len(probe.engine.modern.listeners) == 0
        assert probe.app.mcp._open == 0
        assert [name for name in engine_tasks() if name not in SERVICES and "TaskService" not in name] == []


def ended_by_overflow(probe: Probe, listeners: list[Listener]) -> set[Any]:
    """The subscriptions whose queue was full.

    Before the shutdown that is the only reason for the server to end one. What the shutdown itself tells may fill a
    queue as well; then the change that found no room is missing.
    """
    (draining,) = [event["seq"] for event in probe.events("server.state") if event["state"] == "draining"]
    ids = {event["call"]: event["request_id"] for event in probe.events("call.started") if event["method"] == LISTEN}
    ended = [event for event in probe.events("call.settled") if event["call"] in ids and event["seq"] < draining]
    early = {event["request_id"] for event in ended if event["answered"]}
    limits = [event["seq"] < draining for event in probe.events("limit.reached")]
    assert len(early) == limits.count(True)
    rest = [(item, item.ear) for item in listeners if not item.gone and item.request["id"] not in early]
    late = {item.request["id"] for item, ear in rest if ear is not None and sort(ear)[0] != item.expected}
    assert len(late) == limits.count(False)
    return early | late


def check(listener: Listener, overflown: set[Any]) -> None:
    """What one client heard, against what there was to hear."""
    ear = listener.ear
    assert ear is not None
    assert ear.over
    if not ear.heard:
        assert listener.gone
        return
    assert ear.honoured == listener.honoured
    told, ticks = sort(ear)
    assert told == listener.expected[: len(told)], "nothing unasked, nothing missing in between, nothing out of order"
    whole = ear.id not in overflown and not (listener.gone and listener.paused)
    if whole:
        assert told == listener.expected, "nothing is missing before the end"
    check_ticks(listener, ticks, whole=whole)
    check_end(listener, ear, overflown)


def check_end(listener: Listener, ear: Ear, overflown: set[Any]) -> None:
    """The server ends a subscription with its result; the client by its going."""
    if ear.result is None:
        assert listener.gone
    else:
        assert not listener.gone or ear.id in overflown
    if ear.id in overflown:
        assert listener.slow or len(ear.heard) > MAX_QUEUE, "only who has so much to read is too slow"


def sort(ear: Ear) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Changes in their order, and ticks."""
    told: list[tuple[Any, ...]] = []
    ticks = []
    for method, params in ear.told:
        match method:
            case "notifications/resources/updated":
                ticks.append(params["uri"])
            case "notifications/tasks":
                told.append(("task", params["taskId"], params["status"], params["statusMessage"]))
            case "notifications/cancelled":
                assert bare(params)["requestId"] == ear.id
            case _:
                told.append(("list", method.split("/")[1], ear.client.target))
    return told, ticks


def check_ticks(listener: Listener, ticks: list[str], *, whole: bool) -> None:
    """One for each multiple of the period while the subscription was open, and no other."""
    assert listener.until is not None
    honoured = listener.honoured.get("resourceSubscriptions", ())
    assert set(ticks) <= set(honoured)
    for uri in set(honoured) & set(TICKING):
        every = TICKING[uri]
        due = int((EPOCH + listener.until) // every) - int((EPOCH + listener.since) // every)
        assert ticks.count(uri) == due if whole else ticks.count(uri) <= due
