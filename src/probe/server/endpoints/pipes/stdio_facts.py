"""Facts about the standard streams and their process, for the event log."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Final

import trio

from ....log.context import Recorder
from ....log.events import StdioChange, StdioChanged

_SIGNALS: Final[Mapping[int, StdioChange]] = {
    signal.SIGTERM: "SIGTERM",
    signal.SIGINT: "SIGINT",
    signal.SIGHUP: "SIGHUP",
}

# Node.js hands a child its signal at once, and closes the child's input on the next turn of its loop.
_LOOK_S: Final = 0.1


class StdioFacts:
    """Records facts about one connection on standard streams, from the moment when that is `opened`.

    `stderr_lines` gives how many lines this process has written to standard error.
    """

    def __init__(self, stderr_lines: Callable[[], int] = int) -> None:
        self._stderr_lines = stderr_lines
        self._recorder: Recorder | None = None
        self._noted: set[StdioChange] = set()
        self._input_ended = trio.Event()

    def opened(self, recorder: Recorder) -> None:
        """The connection is open; the cause of the recorder is its `connection.opened`."""
        self._recorder = recorder

    def note(self, what: StdioChange, status: int | None = None) -> None:
        """Record something. `status` is the exit status, at `exit`."""
        if self._recorder is not None:
            self._noted.add(what)
            if what == "end_of_input":
                self._input_ended.set()
            self._recorder.append(StdioChanged(what, os.getpid(), status, self._stderr_lines()))

    def note_once(self, what: StdioChange, status: int | None = None) -> None:
        """Record something, unless it is recorded already."""
        if what not in self._noted:
            self.note(what, status)

    def signalled(self, number: int) -> None:
        """A signal came that ends this process."""
        self.note(_SIGNALS[number])

    async def input_looked_at(self) -> None:
        """Returns once the input has ended, or not within a tenth of a second.

        A client that closes its end and signals at once is not one that only signals; the two can arrive in any order.
        """
        with trio.move_on_after(_LOOK_S):
            await self._input_ended.wait()
