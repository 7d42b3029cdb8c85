"""The processes that a client has started, whatever groups and sessions they have made for themselves.

Each inherits the environment of the one that started it, and so a mark that only this run of the judge has. Where the
system has a `/proc` with the environment of each process, as Linux has, they are found by it; elsewhere none are.
A process is named by a file descriptor before its mark is read, so that no other one that gets its number is signalled.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

_PROC: Final = Path("/proc")
_NAME: Final = "MCP_PROBE_JUDGED_RUN"


class Descendants:
    """The processes that were started with `mark` in their environment, and all that these have started.

    A process that empties its environment is not found.
    """

    def __init__(self) -> None:
        self.mark = {_NAME: uuid4().hex}
        self._line = f"{_NAME}={self.mark[_NAME]}".encode()

    def end(self, how: signal.Signals) -> int:
        """Send a signal to each one that runs; returns how many there were."""
        return sum(self._signal(number, how) for number in _numbers())

    @property
    def any(self) -> bool:
        """Whether one runs."""
        return any(self._is_marked(number) for number in _numbers())

    def _is_marked(self, number: int) -> bool:
        # The environment of a process that is over, and not yet waited for, is empty.
        try:
            return self._line in (_PROC / str(number) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def _signal(self, number: int, how: signal.Signals) -> bool:
        if not self._is_marked(number):
            return False
        try:
            process = os.pidfd_open(number)
        except OSError:
            return False
        try:
            # Only now does the number mean the same process until the descriptor is closed.
            if not self._is_marked(number):
                return False
            signal.pidfd_send_signal(process, how)
        except OSError:
            return False
        finally:
            os.close(process)
        return True


def _numbers() -> Iterator[int]:
    try:
        names = [path.name for path in _PROC.iterdir()]
    except OSError:
        return
    own = os.getpid()
    yield from (int(name) for name in names if name.isdecimal() and int(name) != own)
