"""Time for the engine: trio's clock, so that tests run in virtual time, and a wall clock derived from it.

The `Timer` calls functions, and wakes tasks, at their times. One cancel scope serves all alarms.

    serve     sleeps in a scope with the earliest alarm as deadline
    at        adds an alarm, and moves the deadline if the alarm is the earliest
    trio      cancels the scope at the deadline; `come` runs inside this cancellation and calls all due alarms
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, TypeAlias

import trio
from trio.lowlevel import Abort

# Alarms before cancelled ones are removed. They are small, and most belong to calls that settle before their deadline.
_FEW: Final = 1000

MANY: Final = 250
"""The number of sleeping tasks above which they share a scope; with few, the timer's task would cost more than a scope.
"""

Function: TypeAlias = Callable[[], None]


class Alarm:
    """One function to call at its time."""

    __slots__ = ("call",)

    def __init__(self, call: Function) -> None:
        self.call: Function | None = call

    def cancel(self) -> None:
        """Do not call it any more, and drop the reference to it. Harmless when repeated, and after the call."""
        self.call = None


class Timer:
    """The alarms and the sleeping tasks of one engine. `serve` waits for the earliest alarm.

    With `many` tasks asleep, further ones have an alarm and no scope of their own.
    """

    def __init__(self, many: int = MANY) -> None:
        # A heap. Of cancelled alarms that are not yet due there are at most as many as alarms at the last removal, or
        # `_FEW`.
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._prune_at = _FEW
        self._scope: trio.CancelScope | None = None
        self._many = many
        self._asleep = 0

    def __len__(self) -> int:
        return len(self._alarms)

    def at(self, when: float, call: Function) -> Alarm | None:
        """Call a function when trio's clock is at `when`. Returns None, and never calls it, if `serve` does not run.

        It is called while trio processes deadlines: it may change deadlines and reschedule tasks, and must not raise.
        At the end of the timer, all are called early.
        """
        scope = self._scope
        if scope is None:
            return None
        if len(self._alarms) >= self._prune_at:
            self._prune()
        alarm = Alarm(call)
        heappush(self._alarms, (when, next(self._numbers), alarm))
        if self._alarms[0][2] is alarm:
            scope.deadline = when
        return alarm

    async def sleep_until(self, deadline: float) -> None:
        """Let time pass until `deadline`, as `trio.sleep_until` does. A checkpoint, also if it has passed already.

        `trio.sleep_until` raises and catches a `Cancelled` at the deadline. Here the deadline wakes the task, which is
        cheaper: a tool that reports at an even pace sleeps once for each message.
        """
        task = trio.lowlevel.current_task()
        shared = self._asleep >= self._many
        self._asleep += 1
        try:
            alarm = self.at(deadline, partial(trio.lowlevel.reschedule, task)) if shared else None
            if alarm is not None:

                def leave(_raise_cancel: object) -> Abort:
                    alarm.cancel()
                    return Abort.SUCCEEDED

                await trio.lowlevel.wait_task_rescheduled(leave)
            # The alarm rings early if the timer ends.
            if alarm is None or trio.current_time() < deadline:
                await _wake_at(deadline, task)
        finally:
            self._asleep -= 1
        # A cancellation that came before, or in the same pass.
        await trio.lowlevel.checkpoint_if_cancelled()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task = trio.lowlevel.current_task()

        def come(_raise_cancel: object) -> Abort:
            if not scope.cancel_called:
                # A cancellation from outside.
                return Abort.SUCCEEDED
            self._call_due(trio.current_time())
            trio.lowlevel.reschedule(task)
            return Abort.FAILED

        task_status.started()
        try:
            while True:
                scope = self._scope = trio.CancelScope(deadline=self._alarms[0][0] if self._alarms else inf)
                with scope:
                    await trio.lowlevel.wait_task_rescheduled(come)
                await trio.lowlevel.checkpoint_if_cancelled()
        finally:
            self._scope = None
            self._call_due(inf)

    def _call_due(self, now: float) -> None:
        # A called function may add an alarm, and so replace the list.
        while self._alarms and self._alarms[0][0] <= now:
            alarm = heappop(self._alarms)[2]
            call, alarm.call = alarm.call, None
            if call is not None:
                call()

    def _prune(self) -> None:
        self._alarms = [each for each in self._alarms if each[2].call is not None]
        heapify(self._alarms)
        self._prune_at = max(_FEW, 2 * len(self._alarms))


async def _wake_at(deadline: float, task: trio.lowlevel.Task) -> None:
    def wake(_raise_cancel: object) -> Abort:
        if trio.current_time() < deadline:
            return Abort.SUCCEEDED
        trio.lowlevel.reschedule(task)
        return Abort.FAILED

    with trio.CancelScope(deadline=deadline):
        await trio.lowlevel.wait_task_rescheduled(wake)


class Clock:
    """`now` is trio's monotonic clock in seconds; `wall` is seconds since the epoch, and moves with it.

    Made inside a trio run. The two clocks are compared once, so timestamps stay in order when the system clock is set.
    The engine serves its `timer`.
    """

    def __init__(self, epoch: float) -> None:
        # `trio.current_time` finds this clock through the run, which costs time for each entry of the event log.
        self._clock = trio.lowlevel.current_clock()
        self._offset = epoch - self._clock.current_time()
        self.timer = Timer()

    def now(self) -> float:
        return self._clock.current_time()

    def wall(self) -> float:
        return self._clock.current_time() + self._offset

    def until_tick(self, every_s: float) -> float:
        """Seconds until the wall clock is at the next multiple of `every_s`."""
        return every_s - self.wall() % every_s

    def both(self) -> tuple[float, float]:
        now = self._clock.current_time()
        return now + self._offset, now


def iso(wall: float) -> str:
    """An ISO 8601 timestamp in UTC with milliseconds."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
