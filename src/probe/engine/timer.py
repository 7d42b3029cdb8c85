"""A timer wakes tasks, and calls functions, at their times: one cancel scope serves all that are due together.

A sleep of trio's enters a cancel scope of its own. To make, enter, cancel and leave it is most of what trio does for a
message of a tool that reports at an even pace. A server with thousands of them finds several due in each pass of the
scheduler. The timer rings its alarms where trio looks at deadlines, so a task wakes in the same pass as from a sleep of
trio's, or in the one before: the timer looks at the clock again, when trio may have cancelled other scopes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, TypeAlias

import trio
from trio.lowlevel import Abort

# Alarms that are kept before those that were cancelled are looked for. They are small, and most are cancelled by calls
# that settle long before their deadline.
_FEW: Final = 1000

MANY: Final = 250
"""Tasks that sleep at once before they share a scope. Where only one is due at a time, the task that serves the timer
would wake with each of them, which costs more than the scope."""

Ring: TypeAlias = Callable[[], None]


class Alarm:
    """One function that is to be called. `cancel` is harmless when repeated, and after the call."""

    __slots__ = ("ring",)

    def __init__(self, ring: Ring) -> None:
        self.ring: Ring | None = ring

    def cancel(self) -> None:
        """Call it no more, and let go of it."""
        self.ring = None


class Timer:
    """The alarms and the sleeping tasks of one engine. `serve` waits for the earliest alarm.

    With `many` tasks asleep, those that come have an alarm and no scope of their own.
    """

    def __init__(self, many: int = MANY) -> None:
        # A heap. As many alarms as there are calls that sleep or report, and such as were cancelled and have not come:
        # at most as many as there were alarms when these were last looked for, or `_FEW`.
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._prune_at = _FEW
        self._scope: trio.CancelScope | None = None
        self._many = many
        self._asleep = 0

    def __len__(self) -> int:
        """The number of alarms that are kept, some of which may have been cancelled."""
        return len(self._alarms)

    def at(self, when: float, ring: Ring) -> Alarm | None:
        """Have `ring` called when trio's clock is at `when`. None where nothing serves the timer; then it never is.

        It is called while trio looks at deadlines: it may change deadlines and reschedule tasks, and must not raise.
        When the timer ends it is called too early.
        """
        scope = self._scope
        if scope is None:
            return None
        if len(self._alarms) >= self._prune_at:
            self._prune()
        alarm = Alarm(ring)
        heappush(self._alarms, (when, next(self._numbers), alarm))
        if self._alarms[0][2] is alarm:
            scope.deadline = when
        return alarm

    async def sleep_until(self, deadline: float) -> None:
        """Let time pass until `deadline`, as `trio.sleep_until` does. A checkpoint, also where it has passed already.

        In `trio.sleep_until` the deadline raises a `Cancelled`, which is made, raised and caught there with each
        message of a tool that reports at an even pace. Here the deadline wakes the task, and raises nothing.
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
            # Before its time the alarm rings where nothing serves the timer any more.
            if alarm is None or trio.current_time() < deadline:
                await _wake_at(deadline, task)
        finally:
            self._asleep -= 1
        # A cancellation that came at the same time, or before.
        await trio.lowlevel.checkpoint_if_cancelled()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ring alarms until cancelled."""
        task = trio.lowlevel.current_task()

        def come(_raise_cancel: object) -> Abort:
            if not scope.cancel_called:
                # A cancellation from outside.
                return Abort.SUCCEEDED
            self._ring_due(trio.current_time())
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
            self._ring_due(inf)

    def _ring_due(self, now: float) -> None:
        # A ring may set another alarm, and so begin another heap.
        while self._alarms and self._alarms[0][0] <= now:
            alarm = heappop(self._alarms)[2]
            ring, alarm.ring = alarm.ring, None
            if ring is not None:
                ring()

    def _prune(self) -> None:
        self._alarms = [each for each in self._alarms if each[2].ring is not None]
        heapify(self._alarms)
        self._prune_at = max(_FEW, 2 * len(self._alarms))


async def _wake_at(deadline: float, task: trio.lowlevel.Task) -> None:
    """Sleep in a scope of its own."""

    def wake(_raise_cancel: object) -> Abort:
        if trio.current_time() < deadline:
            # A cancellation from outside.
            return Abort.SUCCEEDED
        trio.lowlevel.reschedule(task)
        return Abort.FAILED

    with trio.CancelScope(deadline=deadline):
        await trio.lowlevel.wait_task_rescheduled(wake)
