"""The process of a client: started, watched, ended in order, and recorded in the event log.

started    in a process group of its own, which gets the terminal where there is one, as a shell gives it
asked      SIGTERM to the group: its time is over, or this program was told to stop
killed     SIGKILL to the group, `_END_S` after it was asked, or at the second signal
exited     the process that was started is over; whatever it started itself and left is asked to end, and killed then

Processes that it put into a group or session of their own inherit a mark in their environment, by which they are found
in `/proc`: on Linux only. A process is named by a file descriptor before its mark is read, so that no other one that
gets its number is signalled.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import trio

from ...log.context import Recorder
from ...log.events import ClientProcess
from ...log.redaction import REDACTED, SECRET_HEADERS, SECRET_MEMBERS

_PROC: Final = Path("/proc")
_NAME: Final = "MCP_PROBE_JUDGED_RUN"


class Descendants:
    """The processes with `mark` in their environment, and all that these have started.

    A process that empties its environment is not found.
    """

    def __init__(self) -> None:
        self.mark = {_NAME: uuid4().hex}
        self._line = f"{_NAME}={self.mark[_NAME]}".encode()

    def end(self, how: signal.Signals) -> int:
        """Send a signal to each one that runs; returns their number."""
        return sum(self._signal(number, how) for number in _numbers())

    @property
    def any(self) -> bool:
        """True while one runs."""
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


# How long a client may take to end in order, and what it has started and left as long again.
_END_S = 5.0
# How long a process that was killed may take to be gone.
_GONE_S = 1.0
_LOOK_S = 0.02


class ClientStartError(Exception):
    """The client could not be started; the message has the reason."""


@dataclass(frozen=True, slots=True)
class ClientExit:
    """The end of a client: its exit status, or the signal that ended it, and if it had to end."""

    status: int | None
    signal: str | None
    timed_out: bool
    told: bool


class ClientRun:
    """One run of a client's command. `seconds` is how long it may last, None for ever.

    `recorder` is bound to the label of the client; None records nothing.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], recorder: Recorder | None, seconds: float | None
    ) -> None:
        self._command = list(command)
        self._left = Descendants()
        self._environment = {**environment, **self._left.mark}
        self._recorder = recorder
        self._seconds = seconds
        self._timed_out = False
        self._told = False

    async def run(self, signals: AsyncIterator[int]) -> ClientExit:
        """Run it to its end; the first signal asks it to end, the second kills it. Raises `ClientStartError`."""
        try:
            process = await trio.lowlevel.open_process(self._command, env=self._environment, process_group=0)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise ClientStartError(_not_started(self._command[0], error)) from None
        self._record("started", process.pid, asked=shown(self._command))
        with _in_the_foreground(process.pid):
            try:
                async with trio.open_nursery() as watching:
                    watching.start_soon(self._end_late, process)
                    watching.start_soon(self._end_when_told, process, signals)
                    await process.wait()
                    watching.cancel_scope.cancel()
            finally:
                with trio.CancelScope(shield=True):
                    await self._clear(process.pid)
        code = process.returncode or 0
        ended_by = signal.Signals(-code).name if code < 0 else None
        self._record("exited", process.pid, status=code if code >= 0 else None, by=ended_by)
        return ClientExit(code if code >= 0 else None, ended_by, self._timed_out, self._told)

    async def _clear(self, group: int) -> None:
        """End what the client has left: its servers on standard streams may write their logs before they are killed."""
        if self._left.end(signal.SIGTERM):
            # A part of the client has not ended by its own will, so what it would have sent is not known.
            self._record("killed", group, by=signal.SIGTERM.name)
            with trio.move_on_after(_END_S):
                await self._wait_gone()
        _signal_group(group, signal.SIGKILL)
        with trio.move_on_after(_GONE_S):
            # One that starts others faster than they are killed is left after this time.
            while self._left.end(signal.SIGKILL):  # noqa: ASYNC110
                await trio.sleep(_LOOK_S)

    async def _wait_gone(self) -> None:
        # There is no event for the end of a process that another one has started.
        while self._left.any:  # noqa: ASYNC110
            await trio.sleep(_LOOK_S)

    async def _end_late(self, process: trio.Process) -> None:
        if self._seconds is None:
            return
        await trio.sleep(self._seconds)
        self._timed_out = True
        self._record("timed_out", process.pid)
        await self._end(process)

    async def _end_when_told(self, process: trio.Process, signals: AsyncIterator[int]) -> None:
        await anext(signals)
        self._told = True
        async with trio.open_nursery() as ending:
            ending.start_soon(self._end, process)
            await anext(signals)
            self._kill(process, signal.SIGKILL)
            ending.cancel_scope.cancel()

    async def _end(self, process: trio.Process) -> None:
        self._kill(process, signal.SIGTERM)
        await trio.sleep(_END_S)
        self._kill(process, signal.SIGKILL)

    def _kill(self, process: trio.Process, how: signal.Signals) -> None:
        self._record("killed", process.pid, by=how.name)
        _signal_group(process.pid, how)

    def _record(
        self, what: str, pid: int, *, status: int | None = None, by: str | None = None, asked: str | None = None
    ) -> None:
        if self._recorder is not None:
            self._recorder.append(ClientProcess(what, pid, status, by, asked))  # type: ignore[arg-type]


def _not_started(program: str, error: Exception) -> str:
    why = getattr(error, "strerror", None) or str(error)
    if isinstance(error, FileNotFoundError | PermissionError) and Path(program).is_file():
        why += ". A script needs its interpreter before it: mcp-probe judge -- python my_client.py"
    return f"{program} cannot be started: {why}"


def shown(command: Sequence[str]) -> str:
    """A command line with the values of secrets hidden: those of `--token X`, `--token=X` and `TOKEN=X`."""
    hidden, hide = [], False
    for word in command:
        name, equals, _ = word.partition("=")
        secret = _is_secret(name)
        hidden.append(REDACTED if hide else f"{name}={REDACTED}" if secret and equals else word)
        hide = secret and not equals and word.startswith("-")
    return shlex.join(hidden)


def _is_secret(name: str) -> bool:
    plain = name.lstrip("-")
    return plain in SECRET_MEMBERS or plain.lower() in SECRET_HEADERS or plain.replace("-", "_") in SECRET_MEMBERS


def _signal_group(group: int, how: signal.Signals) -> None:
    try:
        os.killpg(group, how)
    except (ProcessLookupError, PermissionError):
        # It is over already. On macOS it is EPERM where all processes of a group are over and not yet waited for.
        return


@contextmanager
def _in_the_foreground(group: int) -> Iterator[None]:
    """Give the terminal to a process group for as long as the block, where there is a terminal.

    A program of another group that reads from the terminal is stopped, so a client that asks a person would hang.
    """
    if not sys.stdin.isatty():
        yield
        return
    terminal, ours = sys.stdin.fileno(), os.getpgrp()
    # A program in the background, as this one is afterwards, is stopped when it changes the foreground.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, group)
        # It may have read already, and have been stopped.
        _signal_group(group, signal.SIGCONT)
        yield
    finally:
        os.tcsetpgrp(terminal, ours)
        signal.signal(signal.SIGTTOU, before)
