"""Follows the event log with a cursor of its own and feeds who counts or tells what is in it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from ..observe.log import Entry, EventLog

logger = logging.getLogger(__name__)

# As the observer's, and for its reasons: seldom enough to cost nothing beside the calls, often enough to lose nothing.
_INTERVAL_S: Final = 0.1
_PIECE: Final = 250
_PIECE_BYTES: Final = 1024 * 1024
# What a defect in the code behind the pump raises.
_DEFECTS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Pump:
    """Gives each entry to `take` once, in order, and the number of those that were pushed out before to `missed`.

    A defect in `take` is logged and costs that entry: what only watches must not end what it watches. `pause` is
    awaited behind each piece; nothing is read meanwhile.
    """

    def __init__(
        self,
        log: EventLog,
        take: Callable[[Entry], None],
        missed: Callable[[int], None],
        pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self._log = log
        self._take = take
        self._missed = missed
        self._pause = pause
        self._position = log.last

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the log until cancelled."""
        task_status.started()
        while True:
            await self._log.wait_beyond(self._position)
            await self.reach(self._log.last)
            await trio.sleep(_INTERVAL_S)

    async def reach(self, seq: int) -> None:
        """Go on up to this entry, which is there; others run meanwhile."""
        while self._position < seq:
            self._piece()
            await self._pause()

    def _piece(self) -> None:
        page = self._log.since(self._position, _PIECE)
        if page.gap is not None:
            self._position = page.gap.last
            self._missed(page.gap.last - page.gap.first + 1)
        size = 0
        for entry in page.entries:
            # Before it is taken: nobody comes to an entry twice, whatever becomes of it.
            self._position = entry.seq
            try:
                self._take(entry)
            except _DEFECTS:
                logger.exception("the telemetry cannot take the entry %d of the log", entry.seq)
            size += len(getattr(entry.event, "message", None) or ())
            if size > _PIECE_BYTES:
                return
