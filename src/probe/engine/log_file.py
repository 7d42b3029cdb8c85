"""The event log of a server as a file that grows with it: one file for each run of a server, in a folder.

The file has the content of `GET /api/events.ndjson`. A thread writes it, at most a tenth of a second behind the log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import trio

from ..log import ndjson
from ..log.event_log import Entry, Gap
from ..log.follower import LogFollower
from ..log.ndjson import End
from .engine import Engine

logger = logging.getLogger(__name__)


class LogFileError(Exception):
    """The file of a log cannot be made; the message has the reason."""


@asynccontextmanager
async def log_kept(engine: Engine, folder: Path | None) -> AsyncIterator[None]:
    """Keep the log of an engine in `FOLDER/RUN.ndjson` for the time of the block; without a folder, do nothing.

    The end of the block writes the rest and the last line. Owns the file. A full disk ends the file, and only that.
    Raises `LogFileError`.
    """
    if folder is None:
        yield
        return
    with _new(folder, f"{engine.run}.ndjson") as file:
        keeper = _Keeper(engine, file)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(keeper.follower.serve)
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

    def __init__(self, engine: Engine, file: BinaryIO) -> None:
        self._log = engine.log
        self._file = file
        self._lines = [ndjson.header(engine.header())]
        self._broken = False
        self.follower = LogFollower(engine.log, self._take, self._miss, pause=self._write)

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
        """Write the rest and the last line; blocks until that is done."""
        self.follower.catch_up()
        self._lines.append(ndjson.line(End(self._log.last)))
        self._put()
