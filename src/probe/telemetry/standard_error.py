"""Writes to a descriptor from a thread of its own: a reader that stops must stop nothing here."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from typing import Final

_MOST_BYTES: Final = 1024 * 1024
"""The bytes that may wait to be written, thousands of lines. Beyond it `write` drops, and `write_all` waits."""


class StandardError:
    """The descriptor of standard error, or another one, which the caller keeps open.

    The thread starts with the first write and ends with the process, as it may be in a write that never ends. Errors of
    the descriptor are ignored: the program that started this one need not read its lines.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self.lines = 0
        """How many lines were to be written so far, without those that were dropped."""
        self._descriptor = descriptor
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Write whole lines soon. Never waits; where there is no room they are dropped, and the loss is told later."""
        with self._changed:
            if self._bytes + len(data) > _MOST_BYTES:
                self._lost += data.count(b"\n")
            else:
                self._put(data)

    def write_all(self, data: bytes) -> None:
        """Write whole lines, and wait for room; for a thread that can wait."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._bytes + len(data) <= _MOST_BYTES)
            self._put(data)

    def flush(self, seconds: float) -> None:
        """Wait until all is written, or so many seconds."""
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
            # "can't start new thread": an exhausted system is told later.
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
