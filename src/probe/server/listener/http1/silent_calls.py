"""One task for all calls that wait for the end of their connection: it watches their sockets, and knows their times.

A task for each of them would take 5 kB of each open stream, and a nursery for it another one.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import closing
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Final

import trio

from ..calls import Contained

_epoll: Final[Callable[[], Any] | None] = getattr(select, "epoll", None)

READABLE: Final[int] = getattr(select, "EPOLLIN", 0)
FINISHED: Final[int] = getattr(select, "EPOLLRDHUP", 0)
"""The peer has ended its direction; that is told also while bytes before it have not been read."""
LEFT: Final[int] = getattr(select, "EPOLLHUP", 0) | getattr(select, "EPOLLERR", 0)
"""Nothing can be sent any more. The system tells this whether it is asked for or not."""

_MOST_AT_ONCE = 64
"""Sockets that are looked at before other tasks run."""

_FEW = 1000
"""So many times of watches that have ended are left to pass, beside one for each that goes on."""


class Watch:
    """The watch over one call: `noticed` hears what the system says of its socket, `look` when its time has come.

    `look` returns its next time, in seconds of trio's clock, which may be `inf`.
    """

    __slots__ = ("due", "events", "look", "noticed", "number")

    def __init__(self, number: int, noticed: Callable[[int], None], look: Callable[[], float]) -> None:
        self.number = number
        self.noticed = noticed
        self.look = look
        self.events = 0
        self.due = inf

    def __lt__(self, other: Watch) -> bool:
        """Whether its time comes first."""
        return self.due < other.due


class SilentCalls:
    """The watches of one listener, which `run` serves. Where it does not run, as without epoll, there are none.

    Whoever begins a watch ends it, before the socket is closed. Neither of them waits.
    """

    def __init__(self) -> None:
        self.runs = False
        """Whether watches may begin."""
        self._poll: Any = None
        self._watches: dict[int, Watch] = {}
        self._times: list[Watch] = []
        self._waiting = trio.CancelScope()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Returns at once where the system has no epoll."""
        if _epoll is None:
            task_status.started()
            return
        with closing(_epoll()) as poll:
            self._poll, self.runs = poll, True
            task_status.started()
            try:
                while True:
                    due = self._times[0].due if self._times else inf
                    with trio.CancelScope(deadline=due) as self._waiting:
                        await trio.lowlevel.wait_readable(poll.fileno())
                    self._look_at_sockets()
                    self._look_at_times()
            finally:
                self._poll, self.runs = None, False
                self._watches.clear()
                self._times.clear()

    def begin(self, watch: Watch, events: int) -> None:
        """Watch the socket for `events`, and for what is always told; begins with a look. To be called once.

        Does nothing when the server ends, which cancels the call. Raises `OSError` where the system can watch no more.
        """
        if not self.runs:
            return
        self._poll.register(watch.number, events)
        watch.events = events
        self._watches[watch.number] = watch
        self._expect(watch)

    def change(self, watch: Watch, events: int) -> None:
        """Watch the socket for other events from now on. Harmless when it has ended."""
        if events != watch.events and self._watches.get(watch.number) is watch:
            self._poll.modify(watch.number, events)
            watch.events = events

    def end(self, watch: Watch) -> None:
        """Watch no more. Harmless when it has ended."""
        if self._watches.get(watch.number) is watch:
            del self._watches[watch.number]
            self._poll.unregister(watch.number)
        # Its time is left to pass, and would keep what it tells.
        watch.noticed, watch.look = _nobody, _never

    def _expect(self, watch: Watch) -> None:
        with Contained("a call that is watched"):
            watch.due = watch.look()
            if watch.due < inf:
                heappush(self._times, watch)
                if len(self._times) > _FEW + 2 * len(self._watches):
                    self._times = [watch for watch in self._times if watch.look is not _never]
                    heapify(self._times)
                self._waiting.deadline = min(self._waiting.deadline, watch.due)

    def _look_at_sockets(self) -> None:
        for number, events in self._poll.poll(0, _MOST_AT_ONCE):
            # What one call is told may end the watch of another.
            if (watch := self._watches.get(number)) is not None:
                watch.noticed(events)

    def _look_at_times(self) -> None:
        now, due = trio.current_time(), list[Watch]()
        while self._times and self._times[0].due <= now:
            due.append(heappop(self._times))
        for watch in due:
            self._expect(watch)


def _nobody(_events: int) -> None:
    pass


def _never() -> float:
    return inf
