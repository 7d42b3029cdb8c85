"""The tasks of the telemetry beside one engine: the measure of lateness, and the follower of the log for lines.

Counters and spans are fed by the engine's observer. The block encloses the engine's services, so their last entries are
included.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from ..engine.engine import Engine
from ..log.event_log import Entry
from ..log.follower import LogFollower
from .lines import OperatorLines, Printer
from .requests import Source

if TYPE_CHECKING:
    from .counters import Counters, Families, MetricsText

# The longest waits at the server's end, in seconds: for the last entries and lines, then for a collector.
_FINAL_S: Final = 1.0
_EXPORT_S: Final = 3.0


@asynccontextmanager
async def following(
    engine: Engine,
    printer: Printer | None = None,
    more: Families = tuple,
    rooms: Callable[[Callable[[Engine, Source], None]], None] | None = None,
) -> AsyncIterator[MetricsText | None]:
    """Run the telemetry enabled by the engine's settings during the block. Yields `/metrics` if enabled.

    `printer` gets the lines; `more` returns metrics beside those of the engine; `rooms` is given the function that
    exports the spans and log records of one more engine. Raises `TelemetryError` before any part has started. The end
    of the block takes `_FINAL_S` and `_EXPORT_S` seconds at most.
    """
    settings = engine.settings
    counters = _counters(engine, more) if settings.metrics or settings.telemetry else None
    if counters is not None and settings.telemetry and rooms is not None:
        rooms(counters.follow)
    lines = _LogLines(engine, printer) if printer is not None and printer.level != "off" else None
    if counters is None and lines is None:
        yield None
        return
    try:
        async with trio.open_nursery() as nursery:
            if lines is not None:
                await nursery.start(lines.follower.serve)
            if counters is not None:
                nursery.start_soon(counters.measure)
            try:
                yield counters.page if counters is not None else None
            finally:
                nursery.cancel_scope.cancel()
    finally:
        await _finish(engine, lines, counters)


def _counters(engine: Engine, more: Families) -> Counters:
    # A part that is off is not imported.
    from .counters import Counters

    return Counters.start(engine, more)


async def _finish(engine: Engine, lines: _LogLines | None, counters: Counters | None) -> None:
    with trio.CancelScope(shield=True, deadline=trio.current_time() + _FINAL_S):
        # In this order: lines may wait for their reader, counters never wait.
        if counters is not None:
            await engine.observer.reach(engine.log.last)
        if lines is not None:
            await lines.finish(engine.log.last)
    if counters is not None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _EXPORT_S):
            await counters.close()


class _LogLines:
    """Lines written by a thread. While their reader is slow, the entries wait in the log."""

    def __init__(self, engine: Engine, printer: Printer) -> None:
        self._lines = OperatorLines(printer.level)
        self._printer = printer
        self._clock = engine.clock
        self._waiting: list[bytes] = []
        # Held by the thread that writes: one that was abandoned at the end of `serve` writes before the next one.
        self._writing = threading.Lock()
        kinds = self._lines.kinds
        self.follower = LogFollower(
            engine.log, self._take, self._missed, after=engine.log.last, pause=self._write, kinds=kinds
        )

    def _take(self, entry: Entry) -> None:
        line = self._lines.of(entry)
        if line is not None:
            self._waiting.append(self._printer.line(line))

    def _missed(self, first: int, last: int) -> None:
        line = self._lines.missed(self._clock.wall(), last - first + 1)
        if line is not None:
            self._waiting.append(self._printer.line(line))

    async def finish(self, seq: int) -> None:
        """Write the lines up to this entry, and wait for those that a thread still writes."""
        await self.follower.reach(seq)
        await self._write_waiting()

    async def _write(self) -> None:
        if self._waiting:
            await self._write_waiting()
        else:
            await trio.lowlevel.checkpoint()

    async def _write_waiting(self) -> None:
        try:
            # A reader that has stopped would block the thread for ever, so it is not joined.
            await trio.to_thread.run_sync(self._put, abandon_on_cancel=True)
        except RuntimeError:
            # "can't start new thread": an exhausted system loses lines, not its server.
            self._waiting.clear()

    def _put(self) -> None:
        with self._writing:
            count = len(self._waiting)
            if count:
                text = b"".join(self._waiting[:count])
                del self._waiting[:count]
                self._printer.write_all(text)
