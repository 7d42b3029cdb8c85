"""Looks at the engine from inside trio: which tasks run, and the moment at which each await of some work begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self

import trio
from trio.abc import Instrument
from trio.lowlevel import Task, current_root_task

from probe.engine.engine import Engine
from probe.engine.messages import Received, RequestContext
from probe.engine.streams.reading import Reading
from probe.engine.streams.stream import Emitted
from probe.wire.jsonrpc import classify

CALL = "RunningRequest.run"
"""The trio task of one legacy request that waits."""
MODERN_CALL = CALL
"""The trio task of one modern request that waits."""
TASK = "TaskService.create.<locals>.job"
"""The trio task of one MCP task."""
SERVICES = [
    "engine.clock.Timer.serve",
    "engine.host_tools.hosted.HostedTools.serve",
    "engine.observer.Observer.serve",
    "engine.sessions.SessionService.serve",
    "engine.streams.draft_streams.DraftStreams._watch",
    "engine.streams.draft_streams.DraftStreams.serve",
    "engine.tasks.TaskService.serve",
]
"""What an engine without sessions runs."""


def receive(engine: Engine, value: dict[str, Any]) -> list[Emitted] | None:
    """A message of the client of the one session arrives at this very moment, without any await."""
    (session,) = engine.sessions
    one = Received(classify(value), RequestContext(session.recorder))
    return engine.legacy.receive(session, [one], Reading(session.recorder))


def _below(task: Task) -> Iterator[Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _below(child)


def engine_tasks() -> list[str]:
    """The names of all trio tasks that the engine owns at this moment, sorted."""
    root = current_root_task()
    assert root is not None
    engines = [task for task in _below(root) if task.name.endswith("Engine.serve")]
    return sorted(task.name.rpartition("probe.")[2] for engine in engines for task in _below(engine))


def _within(task: Task, job: str) -> bool:
    while not task.name.endswith(job):
        if task.parent_nursery is None:
            return False
        task = task.parent_nursery.parent_task
    return True


class AtAwait(Instrument):
    """Calls `act` once, at the moment when the n-th await of the work has begun and before anything else runs.

    The work is the first trio task whose name ends with `job`, and its children. The 0th await is the moment of its
    birth. The exit of a trio task counts as an await: something else runs next. `awaits` tells how many there were.
    """

    def __init__(self, job: str, n: int, act: Callable[[], None]) -> None:
        self.awaits = 0
        self.error: Exception | None = None
        self._job = job
        self._n = n
        self._act = act

    def task_spawned(self, task: Task) -> None:
        """trio tells of a new task."""
        if self._n == 0 and task.name.endswith(self._job):
            self._reached()

    def after_task_step(self, task: Task) -> None:
        """trio tells that a task has given way."""
        if _within(task, self._job):
            self.awaits += 1
            if self.awaits == self._n:
                self._reached()

    def _reached(self) -> None:
        try:
            self._act()
        except Exception as error:  # noqa: BLE001 - trio would only log it
            self.error = error

    def __enter__(self) -> Self:
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)
        if self.error is not None:
            raise self.error


async def until_it_gets_through(least: int, once: Callable[[int], Awaitable[bool]]) -> None:
    """Run with n = 0, 1, 2, … until one run gets through; the tool's own awaits must have been among them."""
    for n in range(200):
        with trio.fail_after(10_000):
            if await once(n):
                assert n > least, "the awaits of the tool itself were among those tried"
                return
    raise AssertionError("the tool never gets through")
