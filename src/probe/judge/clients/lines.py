"""Lines of standard streams that are no messages: several of them may be one message together."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct, field

from ...log.bounded import Newest
from ...views.clients import Connection
from ...views.values import Message
from ..retention import BOUNDS
from .moments import Unreadable
from .series import NEVER

Line: TypeAlias = Unreadable | Message
"""A line that is no message: no JSON, or JSON that is no message."""


class Run(Struct, eq=False):
    """Lines of a pipe that follow one another and are no messages; `over` is the time of the next line or the end.

    `before` are the times of the lines in front of each of them. The last line of a run that `is_cut` has no end.
    """

    pipe: Connection
    is_cut: bool = False
    lines: list[Line] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    over: float | None = None


class Lines:
    """Fed with the lines of the standard streams of one client, in order."""

    def __init__(self) -> None:
        self._runs: Newest[int, Run] = Newest(BOUNDS.views)
        self._open: dict[Connection, Run] = {}
        self._last: dict[Connection, float] = {}

    def add(self, line: Line, pipe: Connection, *, is_bad: bool) -> None:
        """One more line, which is a message unless it `is_bad`."""
        before, self._last[pipe] = self._last.get(pipe, NEVER), line.at
        run = self._open.get(pipe)
        if run is not None and (not is_bad or len(run.lines) >= BOUNDS.parts):
            self.end(pipe, line.at)
            run = None
        if is_bad:
            if run is None:
                run = self._open[pipe] = Run(pipe)
            run.lines.append(line)
            run.before.append(before)
            self._runs.store(line.seq, run)

    def end(self, pipe: Connection, at: float, *, is_cut: bool = False) -> None:
        """A run is over; with `is_cut` the next line is the last one, and has no end."""
        run = self._open.pop(pipe, None)
        if run is not None:
            run.over = at
        if is_cut:
            self._open[pipe] = Run(pipe, True)

    def close(self, pipe: Connection, at: float) -> None:
        self.end(pipe, at)
        self._last.pop(pipe, None)

    def run_of(self, line: Line) -> Run | None:
        return self._runs.get(line.seq)
