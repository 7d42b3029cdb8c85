"""Events of the standard streams and of their process, for the event log."""

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

# Node.js sends a child its signal at once, and closes the child's input on the next turn of its event loop.
_LOOK_S: Final = 0.1


class StdioFacts:
    """Records events of one connection on standard streams after `opened`.

    `stderr_lines` returns the number of lines that this process has written to standard error.
    """

    def __init__(self, stderr_lines: Callable[[], int] = int) -> None:
        self._stderr_lines = stderr_lines
        self._recorder: Recorder | None = None
        self._noted: set[StdioChange] = set()
        self._input_ended = trio.Event()

    def opened(self, recorder: Recorder) -> None:
        """The connection is open; the recorder's cause is its `connection.opened`."""
        self._recorder = recorder

    def note(self, what: StdioChange, status: int | None = None) -> None:
        """Record a change. `status` is the exit status, for `exit`."""
        if self._recorder is not None:
            self._noted.add(what)
            if what == "end_of_input":
                self._input_ended.set()
            self._recorder.append(StdioChanged(what, os.getpid(), status, self._stderr_lines()))

    def note_once(self, what: StdioChange, status: int | None = None) -> None:
        """Record a change unless it is recorded already."""
        if what not in self._noted:
            self.note(what, status)

    def signalled(self, number: int) -> None:
        """The process got a signal to end."""
        self.note(_SIGNALS[number])

    async def input_looked_at(self) -> None:
        """Return when the input has ended, or after a tenth of a second.

        A client may close its end and signal at once, and the two can arrive in either order. It differs from a client
        that only signals.
        """
        with trio.move_on_after(_LOOK_S):
            await self._input_ended.wait()
