"""The audit's writer: one service that writes tool calls and their evidence into a file, beside the protocol.

    log -> observer: records, evidence -> unwritten calls -> a batch (encoded here, in pieces) -> a thread -> SQLite

Calls never wait for it. While the file cannot be written, the unwritten calls are bounded and the writer tries again.
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
from ..services import Turns
from .call_store import FileCalls, MemoryCalls, Unwritten
from .file import FIELDS, UNUSABLE, AuditFile, AuditFileError, AuditStatus, Written, in_thread, why

logger = logging.getLogger(__name__)

# A deleted or replaced file has lost its earlier rows, and readers must see that it is not complete.
_ANEW: Final = "the file was opened anew; the calls in memory are written to it again"
# One transaction: the amount that a disk writes in a moment, and that is encoded in memory at a time.
_BATCH_ROWS: Final = 200
_BATCH_BYTES: Final = 4 * 1024 * 1024
# The time for the last rows when the server ends, in seconds.
FINAL_S: Final = 3.0
# The time for a slow disk to close a file after that, in seconds.
_ABANDON_S: Final = 1.0
# The longest pause between two attempts on a file that cannot be written, and the pause at the end of the server.
_LONGEST_PAUSE_S: Final = 5.0
_FINAL_PAUSE_S: Final = 0.05

_fields_of = attrgetter(*FIELDS)


class Audit:
    """The audit of one engine. `calls` answers queries, from memory or from the file.

    `serve` owns the file. It goes on after the cancellation of the engine, to write the effects of that, and ends
    within `FINAL_S` seconds after `finish`.
    """

    def __init__(self, settings: Settings, run: str, clock: Clock, log: EventLog, observer: Observer) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._observer = observer
        self._unwritten = Unwritten(observer.records, settings.limits.call_records)
        self._file = AuditFile(Path(settings.audit_db), run, clock.wall()) if settings.audit_db else None
        # Only one thread at a time may use SQLite's connection.
        self._one = trio.CapacityLimiter(1)
        self._scope = trio.CancelScope(shield=True)
        self._write_now = trio.Event()
        self._outgrown = trio.Event()
        self._finished = False
        self._failures = 0
        self._state: tuple[Literal["ok", "failing"], str | None] = ("ok", None)
        self._since: float | None = None
        self._lost_recorded = 0
        memory = MemoryCalls(run, observer, log)
        self._written_calls: FileCalls | None = None
        if self._file is not None:
            self._written_calls = FileCalls(self._file, run, memory, self._unwritten, observer)
            observer.follow(self)
        self.calls: MemoryCalls | FileCalls = self._written_calls or memory

    @property
    def status(self) -> AuditStatus:
        store: Literal["memory", "file"] = "memory" if self._file is None else "file"
        return AuditStatus(store, self._state[0], self._since, self._state[1], self._unwritten.lost)

    def take(self, calls: Sequence[Call], entry: Entry) -> None:
        if calls:
            for call in calls:
                self._unwritten.note(call.name)
            self._write_soon()

    def missed(self, first: int, last: int) -> None:
        self._unwritten.missed()
        self._write_soon()

    def _write_soon(self) -> None:
        # Early enough, so that no call is dropped.
        if 2 * len(self._unwritten) > self._settings.limits.call_records and not self._failures:
            self._write_now.set()

    def finish(self) -> None:
        self._finished = True
        self._write_now.set()
        self._scope.deadline = trio.current_time() + FINAL_S

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write until `finish`. Raises `AuditFileError` for a file that cannot be used; the file is then unchanged.

        Without a file it returns at once.
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
            # To the end of the work: a thread that was left behind would keep the file.
            await in_thread(file.ensure, self._one, to_its_end=True)
        except AuditFileError:
            raise
        except UNUSABLE as error:
            raise AuditFileError(file.path, f"cannot be used: {getattr(error, 'strerror', None) or error}") from None

    async def _close(self, file: AuditFile) -> None:
        try:
            await in_thread(file.close, self._one)
        except UNUSABLE as error:
            # All is written, and the end of the process closes the file too.
            logger.error("the audit file cannot be closed: %s", error)  # noqa: TRY400 - no defect of this program

    async def _abandon(self, file: AuditFile) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _ABANDON_S):
            try:
                # The other thread still has the one place of `_one`.
                await in_thread(file.abandon, trio.CapacityLimiter(1))
            except UNUSABLE as error:
                logger.info("the audit file cannot be closed: %s", error)

    async def _keep_short(self, file: AuditFile, calls: FileCalls) -> None:
        """Cut back the grown WAL without readers: with a reader at every moment it would grow without end."""
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
            await self._write_now.wait()
        if not self._finished:
            self._write_now = trio.Event()

    async def _write_the_rest(self, file: AuditFile) -> None:
        self._observer.catch_up()
        self._unwritten.sweep()
        while len(self._unwritten):
            if not await self._flush(file):
                await trio.sleep(_FINAL_PAUSE_S)

    async def _flush(self, file: AuditFile) -> bool:
        try:
            anew = await in_thread(file.ensure, self._one)
            if anew:
                self._unwritten.forget_written()
                # Each new file is recorded, even if the state has not changed.
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
            self._record_state("failing", why(error))
            return False
        self._failures = 0
        before, reason = self._state
        self._record_state("ok", _ANEW if anew else reason if before == "ok" else None)
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

    def _record_state(self, state: Literal["ok", "failing"], why: str | None) -> None:
        lost = self._unwritten.lost
        if (state, why) == self._state and (state == "failing" or lost == self._lost_recorded):
            return
        if state != self._state[0]:
            self._since = None if state == "ok" else self._clock.wall()
        self._state, self._lost_recorded = (state, why), lost
        self._log.append(AuditState(state, why, lost))
