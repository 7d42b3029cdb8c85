"""A bell wakes the one task that waits for it, such as the writer of a connection."""

from __future__ import annotations

import trio


class Bell:
    """Wakes the one task that waits. Without a waiting task, a ring has no effect.

    A parking lot is for many tasks, and costs more here. An empty one has a dictionary of 0.4 kB for each open stream,
    and to wake a task takes five calls for each message.
    """

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None

    def ring(self) -> None:
        """Wake the task that waits."""
        task = self._task
        if task is not None:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def wait(self) -> None:
        """Wait for the next ring."""
        assert self._task is None, "another task waits for this bell"
        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._leave)

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
