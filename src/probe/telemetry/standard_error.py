"""Writes to a descriptor in a thread, so that a reader that has stopped does not block this process."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from typing import Final

_MOST_BYTES: Final = 1024 * 1024
"""The bytes queued at most, thousands of lines. Beyond it `write` drops lines and `write_all` waits."""


class StandardError:
    """The descriptor of standard error, or another one, which the caller keeps open.

    The thread starts with the first write and ends with the process, since a write may block for ever. Errors of the
    descriptor are ignored: the parent process need not read the lines.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self.lines = 0
        """The number of lines queued so far, without dropped ones."""
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Queue whole lines. Never waits. Without room they are dropped, and a later line has their number."""
        with self._changed:
            if self._bytes + len(data) > _MOST_BYTES:
                self._lost += data.count(b"\n")
            else:
                self._put(data)

    def write_all(self, data: bytes) -> None:
        """Queue whole lines after waiting for room; for threads only."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._bytes + len(data) <= _MOST_BYTES)
            self._put(data)

    def flush(self, seconds: float) -> None:
        """Wait until all is written, at most these seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, seconds)

    def _put(self, data: bytes) -> None:
        if self._lost:
            data = b"%d lines were lost here: nobody read them\n" % self._lost + data
            self._lost = 0
        self.lines += data.count(b"\n")
        self._waiting.append(data)
        self._bytes += len(data)
        self._changed.notify_all()
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="standard error", daemon=True)
            # "can't start new thread": a later write may succeed.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            left = data
            with suppress(OSError):
                while left:
                    left = left[os.write(self._descriptor, left) :]
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()
