"""The audit's writer: one service that brings tool calls and their evidence into a file, beside the protocol.

    log -> observer: records, evidence -> what is unwritten -> a batch (encoded here, in pieces) -> a thread -> SQLite

Calls never wait for it. While the file cannot be written, what waits is bounded; the file is tried again, and the event
log says since when and why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal

import trio

from ...log.event_log import Entry, EventLog
from ...log.events import AuditState
from ...settings import Settings
from ...views.records import CallRecord
from ...views.work import Call
from ..clock import Clock
from ..observer import Observer
from ..turns import Turns
from .blocking import UNUSABLE, in_thread, why
from .call_store import FileCalls, MemoryCalls
from .claim import AuditFileError
from .db import FIELDS, Written
from .file import AuditFile
from .kept_calls import CallStore
from .status import AuditStatus
from .unwritten import Unwritten

logger = logging.getLogger(__name__)

# A file that was deleted or replaced has lost its earlier rows with it; nobody may take it for the whole.
_ANEW: Final = "the file was opened anew; the calls in memory are written to it again"
# One transaction: as much as a disk takes in a moment, and what is encoded at the same time in memory.
_BATCH_ROWS: Final = 200
_BATCH_BYTES: Final = 4 * 1024 * 1024
# The end of the server waits so long for the last rows.
FINAL_S: Final = 3.0
# And so long for a disk that takes its time to close a file.
_ABANDON_S: Final = 1.0
# Between two attempts on a file that cannot be written, at most; and at the end of the server.
_LONGEST_PAUSE_S: Final = 5.0
_FINAL_PAUSE_S: Final = 0.05

_fields_of = attrgetter(*FIELDS)


class Audit:
    """The audit of one engine. `calls` answers what is asked of it, from memory or from the file.

    `serve` owns the file. It goes on through the cancellation of the engine, to write what that brings about, and ends
    within `FINAL_S` seconds after `finish`.
    """

    def __init__(self, settings: Settings, run: str, clock: Clock, log: EventLog, observer: Observer) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._observer = observer
        self._unwritten = Unwritten(observer.records, settings.limits.call_records)
        self._file = AuditFile(Path(settings.audit_db), run, clock.wall()) if settings.audit_db else None
        # SQLite's connection is for one thread at a time.
        self._one = trio.CapacityLimiter(1)
        self._scope = trio.CancelScope(shield=True)
        self._bell = trio.Event()
        self._outgrown = trio.Event()
        self._finished = False
        self._failures = 0
        self._state: tuple[Literal["ok", "failing"], str | None] = ("ok", None)
        self._since: float | None = None
        self._lost_told = 0
        memory = MemoryCalls(run, observer, log)
        self._written_calls: FileCalls | None = None
        if self._file is not None:
            self._written_calls = FileCalls(self._file, run, memory, self._unwritten, observer)
            observer.follow(self)
        self.calls: CallStore = self._written_calls or memory

    @property
    def status(self) -> AuditStatus:
        """The state of the audit."""
        store: Literal["memory", "file"] = "memory" if self._file is None else "file"
        return AuditStatus(store, self._state[0], self._since, self._state[1], self._unwritten.lost)

    def take(self, calls: Sequence[Call], entry: Entry) -> None:
        """See `observer.CallFollower.take`."""
        for call in calls:
            self._unwritten.note(call.name)
        self._write_soon()

    def missed(self) -> None:
        """See `observer.CallFollower.missed`."""
        self._unwritten.missed()
        self._write_soon()

    def _write_soon(self) -> None:
        # Well before the oldest would have to make room.
        if 2 * len(self._unwritten) > self._settings.limits.call_records and not self._failures:
            self._bell.set()

    def finish(self) -> None:
        """Nothing more will happen: write the rest, and end."""
        self._finished = True
        self._bell.set()
        self._scope.deadline = trio.current_time() + FINAL_S

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write until `finish`. Raises `AuditFileError` for a file that cannot be used; it is then as it was before.

        Without a file there is nothing to do.
        """
        if self._file is None or self._written_calls is None:
            task_status.started()
            return
        await self._open(self._file)
        task_status.started()
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_short, self._file, self._written_calls)
                while not self._finished:
                    await self._pause()
                    await self._flush(self._file)
                await self._write_the_rest(self._file)
                nursery.cancel_scope.cancel()
            await self._close(self._file)
        if self._scope.cancelled_caught:
            await self._abandon(self._file)
            logger.error("the audit ends with %d calls that could not be written", len(self._unwritten.pending()))

    async def _open(self, file: AuditFile) -> None:
        try:
            # To its end: a thread that was left behind would go on to hold the file.
            await in_thread(file.ensure, self._one, to_its_end=True)
        except AuditFileError:
            raise
        except UNUSABLE as error:
            raise AuditFileError(file.path, f"cannot be used: {getattr(error, 'strerror', None) or error}") from None

    async def _close(self, file: AuditFile) -> None:
        try:
            await in_thread(file.close, self._one)
        except UNUSABLE as error:
            # All is written, and the end of the process closes it as well.
            logger.error("the audit file cannot be closed: %s", error)  # noqa: TRY400 - no defect of this program

    async def _abandon(self, file: AuditFile) -> None:
        """Have the file closed by the thread that is left behind with it, if there is one."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _ABANDON_S):
            try:
                # That thread has the place of `_one`.
                await in_thread(file.abandon, trio.CapacityLimiter(1))
            except UNUSABLE as error:
                logger.info("the audit file cannot be closed: %s", error)

    async def _keep_short(self, file: AuditFile, calls: FileCalls) -> None:
        """Cut back the WAL whenever it has grown, in a moment without readers: with them it would grow for ever."""
        while True:
            await self._outgrown.wait()
            try:
                async with calls.closed():
                    await in_thread(file.shorten, self._one)
            except UNUSABLE as error:
                logger.info("the audit file cannot be cut back now: %s", error)
            self._outgrown = trio.Event()

    async def _pause(self) -> None:
        delay = self._settings.audit_flush_s
        if self._failures:
            delay = max(delay, min(_LONGEST_PAUSE_S, delay * 2**self._failures))
        with trio.move_on_after(delay):
            await self._bell.wait()
        if not self._finished:
            self._bell = trio.Event()

    async def _write_the_rest(self, file: AuditFile) -> None:
        self._observer.catch_up()
        self._unwritten.sweep()
        while len(self._unwritten):
            if not await self._flush(file):
                await trio.sleep(_FINAL_PAUSE_S)

    async def _flush(self, file: AuditFile) -> bool:
        """Write what waits now; returns whether that could be done."""
        try:
            anew = await in_thread(file.ensure, self._one)
            if anew:
                self._unwritten.forget_written()
                # To be told of each time, though nothing else has changed.
                self._state = self._state[0], None
            await self._observer.reach(self._log.last)
            self._unwritten.sweep()
            left = len(self._unwritten)
            while left > 0:
                batch = await self._next_batch(left)
                left -= len(batch)
                limits = self._settings.limits
                write = partial(file.write, batch, limits.audit_rows, limits.audit_bytes)
                if await in_thread(write, self._one):
                    self._outgrown.set()
                self._unwritten.commit()
        except UNUSABLE as error:
            self._unwritten.put_back()
            self._failures = min(self._failures + 1, 10)
            self._tell("failing", why(error))
            return False
        self._failures = 0
        before, said = self._state
        self._tell("ok", _ANEW if anew else said if before == "ok" else None)
        return True

    async def _next_batch(self, most: int) -> list[Written]:
        batch: list[Written] = []
        size = 0
        turns = Turns()
        while len(batch) < min(most, _BATCH_ROWS) and size < _BATCH_BYTES:
            taken = self._unwritten.take()
            if taken is None:
                break
            written = await self._written(*taken, turns)
            size += len(written.row) + sum(len(entry) for _, entry in written.entries)
            batch.append(written)
        return batch

    async def _written(self, record: CallRecord, before: int, turns: Turns) -> Written:
        """The record as it is now, with the evidence that was found after its first `before` entries."""
        call = self._observer.call(record.call)
        places = [] if call is None else call.found(before)
        complete = call is not None and not call.cut
        self._unwritten.taken_as(record, before + len(places))
        row, fields = record.encoded(), _fields_of(record)
        entries: list[tuple[int, bytes]] = []
        for seq in places:
            entry = self._log.entry(seq)
            if entry is None:
                complete = False
                continue
            body = entry.encoded()
            entries.append((seq, body))
            await turns.done(len(body))
        await turns.done(len(row))
        return Written(record.seq, record.id, fields, row, entries, complete, continues=before > 0)

    def _tell(self, state: Literal["ok", "failing"], why: str | None) -> None:
        lost = self._unwritten.lost
        if (state, why) == self._state and (state == "failing" or lost == self._lost_told):
            return
        if state != self._state[0]:
            self._since = None if state == "ok" else self._clock.wall()
        self._state, self._lost_told = (state, why), lost
        self._log.append(AuditState(state, why, lost))
