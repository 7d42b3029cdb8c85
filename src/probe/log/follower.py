"""Loops over the entries of the event log as they come, and the file of a log that grows with it.

The file has the content of `GET /api/events.ndjson`. A thread writes it, 10 ms behind the log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import trio

from ..core.callbacks import nothing
from . import events, ndjson
from .event_log import Entry, EventLog, Gap
from .ndjson import End, Header

logger = logging.getLogger(__name__)

# Short enough that no entry is evicted unread and catching up takes a few milliseconds; long enough to cost little.
_INTERVAL_S: Final = 0.1
# A client may kill its server on standard streams, and what is not in the file by then is lost. A hundred writes a
# second take about 1 % of a processor.
_FILE_INTERVAL_S: Final = 0.01
# Entries between two checkpoints, and the bytes of their messages: about a millisecond.
_PIECE: Final = 100
_PIECE_BYTES: Final = 1024 * 1024
_MESSAGES: Final = frozenset({events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage})
DEFECTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
)
"""The errors that a defect in the code of a reader of the log raises. It must not end the server, which logs it."""


class LogFollower:
    """Passes each entry after the number `after` to `take` once, in order.

    `missed` gets the range of entries evicted before they were read, both ends included, and an entry for which `take`
    raised one of `DEFECTS`. That error is logged, since an observer must not end the server. `missed_entries` counts
    both. `begin` is called before each piece of entries; a defect in it is logged, too. `pause` is awaited behind the
    piece and must be a checkpoint. With `kinds`, only facts of these classes are taken.
    """

    def __init__(
        self,
        log: EventLog,
        take: Callable[[Entry], None],
        missed: Callable[[int, int], None],
        *,
        after: int = 0,
        begin: Callable[[], None] = nothing,
        kinds: Collection[type] | None = None,
        pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self.missed_entries = 0
        self._log = log
        self._take = take
        self._missed = missed
        self._begin = begin
        self._kinds = kinds
        self._pause = pause
        self._position = after
        # `begin` was called for the entries up to this one that have left the log.
        self._begun_for = after

    async def serve(
        self, interval_s: float = _INTERVAL_S, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Look for new entries every `interval_s`, until cancelled.

        A log that shares a bound with others gives up entries though it gets none. `begin` is called for each piece of
        these, too.
        """
        task_status.started()
        log = self._log
        while True:
            await log.wait_beyond(self._position, self._begun_for + _PIECE + 1)
            await self.reach(log.last)
            while log.first > self._begun_for + _PIECE and self._position >= log.last:
                self._begin_piece()
                await self._pause()
            await trio.sleep(interval_s)

    async def reach(self, seq: int) -> None:
        """Take the entries up to this one, which must be in the log. Other tasks run meanwhile."""
        while self._position < seq:
            self._take_piece()
            await self._pause()

    def catch_up(self) -> None:
        """Take the entries up to the end of the log at once. Not to be called by `take` or `missed`."""
        while self._position < self._log.last:
            self._take_piece()

    def _begin_piece(self) -> None:
        self._begun_for = min(self._begun_for + _PIECE, max(self._begun_for, self._log.first - 1))
        try:
            self._begin()
        except DEFECTS:
            logger.exception("the entries of the event log after %d cannot be prepared for", self._position)

    def _take_piece(self) -> None:
        self._begin_piece()
        page = self._log.since(self._position, _PIECE)
        if page.gap is not None:
            # There is nothing to let go of entries that were not taken.
            self._begun_for += page.gap.last - page.gap.first + 1
            self._miss(page.gap.first, page.gap.last)
        entries, kinds, size = page.entries, self._kinds, 0
        if kinds is not None:
            entries = [entry for entry in entries if type(entry.fact) in kinds]
        for entry in entries:
            # Set before the entry is taken, so that no entry is taken twice, whatever `take` raises.
            self._position = entry.seq
            try:
                self._take(entry)
            except DEFECTS:
                logger.exception("entry %d of the event log cannot be taken", entry.seq)
                self._miss(entry.seq, entry.seq)
            fact: Any = entry.fact
            if type(fact) in _MESSAGES:
                size += len(fact.message)
                if size > _PIECE_BYTES:
                    return
        # A file may leave out numbers.
        self._position = max(self._position, page.next)

    def _miss(self, first: int, last: int) -> None:
        self._position = last
        self.missed_entries += last - first + 1
        self._missed(first, last)


class LogFileError(Exception):
    """The file of a log cannot be made; the message has the reason."""


@asynccontextmanager
async def log_kept(log: EventLog, header: Header, folder: Path | None) -> AsyncIterator[None]:
    """Keep a log in `FOLDER/RUN.ndjson` for the time of the block; without a folder, do nothing.

    The end of the block writes the rest and the last line. Owns the file. A full disk ends the file alone. Raises
    `LogFileError`.
    """
    if folder is None:
        yield
        return
    with _new(folder, f"{header.run}.ndjson") as file:
        keeper = _Keeper(log, header, file)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(keeper.follower.serve, _FILE_INTERVAL_S)
                yield
                nursery.cancel_scope.cancel()
        finally:
            keeper.finish()


def _new(folder: Path, name: str) -> BinaryIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / name).open("xb")
    except OSError as error:
        raise LogFileError(f"the event log cannot be kept in {folder}: {error.strerror}") from None


class _Keeper:
    """The entries of the log that are not yet in the file."""

    def __init__(self, log: EventLog, header: Header, file: BinaryIO) -> None:
        self._log = log
        self._file = file
        self._lines = [ndjson.header(header)]
        self._broken = False
        self.follower = LogFollower(log, self._take, self._miss, pause=self._write)

    def _take(self, entry: Entry) -> None:
        self._lines.append(ndjson.line(entry))

    def _miss(self, first: int, last: int) -> None:
        self._lines.append(ndjson.line(Gap(first, last)))

    async def _write(self) -> None:
        # To the end: a thread that was left behind might write half of a line.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._put)
        await trio.lowlevel.checkpoint_if_cancelled()

    def _put(self) -> None:
        lines, self._lines = self._lines, []
        if self._broken:
            return
        try:
            self._file.writelines(lines)
            self._file.flush()
        except OSError as error:
            # Lines are missing from now on. Without the last line, the file does not look like a whole log.
            self._broken = True
            logger.error("the event log cannot be written to %s any more: %s", self._file.name, error)  # noqa: TRY400

    def finish(self) -> None:
        self.follower.catch_up()
        self._lines.append(ndjson.line(End(self._log.last)))
        self._put()
