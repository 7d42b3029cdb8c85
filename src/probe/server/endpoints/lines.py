"""Messages as lines of a byte stream, and the standard streams of this process as two such streams.

2026-07-28 basic/transports/stdio: "Messages are delimited by newlines, and MUST NOT contain embedded newlines."
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import trio
from trio.abc import ReceiveStream, SendStream
from trio.lowlevel import FdStream

from ...engine.pipes.wires import Closed, TooLargeError
from ...log.context import Recorder
from ...log.events import StdioChange, StdioChanged
from ...log.redaction import SHOWN_BYTES

_SIGNALS: Final[Mapping[int, StdioChange]] = {
    signal.SIGTERM: "SIGTERM",
    signal.SIGINT: "SIGINT",
    signal.SIGHUP: "SIGHUP",
}

# Node.js sends a child its signal at once, and closes the child's input on the next turn of its event loop.
_LOOK_S: Final = 0.1

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)
_STDIN, _STDOUT, _STDERR = range(3)


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
        if self._recorder is not None:
            self._noted.add(what)
            if what == "end_of_input":
                self._input_ended.set()
            self._recorder.append(StdioChanged(what, os.getpid(), status, self._stderr_lines()))

    def note_once(self, what: StdioChange, status: int | None = None) -> None:
        if what not in self._noted:
            self.note(what, status)

    def signalled(self, number: int) -> None:
        self.note(_SIGNALS[number])

    async def input_looked_at(self) -> None:
        """Return when the input has ended, or after a tenth of a second.

        A client may close its end and signal at once, and the two can arrive in either order.
        """
        with trio.move_on_after(_LOOK_S):
            await self._input_ended.wait()


class StreamsClosedError(Exception):
    """The process was started without standard input or output; the message is one line for the user."""


class LineWire:
    """A `Wire` over any two byte streams: one message per line, with LF or CRLF at its end.

    Does not close the streams. `max_bytes` are without the line end.
    """

    def __init__(
        self, source: ReceiveStream, sink: SendStream, *, max_bytes: int, facts: StdioFacts | None = None
    ) -> None:
        self._source = source
        self._sink = sink
        self._facts = facts or StdioFacts()
        self._lines = _LineCutter(max_bytes, self._facts.note_once)
        self._over = False
        self._broken = False

    @property
    def closed(self) -> Closed | None:
        """The end of the connection. Only the parent process can end it."""
        return Closed(None, "client") if self._over else None

    def opened(self, recorder: Recorder) -> None:
        self._facts.opened(recorder)

    async def receive(self) -> bytes | None:
        """The next line; at the end of the stream also the last bytes without a line end.

        Raises `TooLargeError` as soon as a line is too long. None also if the stream broke: an incomplete line may be
        torn, and is dropped.
        """
        await trio.lowlevel.checkpoint()
        while (line := self._lines.take()) is None and not self._over:
            await self._read()
        return line

    async def _read(self) -> None:
        try:
            piece = await self._source.receive_some()
        except _GONE:
            self._over = True
            self._facts.note_once("input_broken")
            return
        if piece:
            self._lines.feed(piece)
        else:
            self._over = True
            self._lines.end()
            self._facts.note_once("end_of_input")

    async def send(self, message: bytes) -> None:
        """Send one line. Raises `OSError` if the peer has gone, and for each message after a torn line."""
        assert b"\n" not in message, "wire.jsonrpc.encode makes one line"
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._broken:
            raise BrokenPipeError("the stream broke, or broke off, in the line before")
        # A task that is cancelled within `send_all` cannot know how many bytes were sent.
        self._broken = True
        try:
            await self._sink.send_all(message + b"\n")
        except _GONE as error:
            self._facts.note_once("output_broken")
            raise BrokenPipeError("the peer does not read any more") from error
        self._broken = False


class _LineCutter:
    def __init__(self, most: int, note: Callable[[StdioChange], None]) -> None:
        self._most = most
        self._note = note
        self._rest = bytearray()
        # The search goes on here, so that a long line in many pieces is searched once.
        self._searched = 0
        self._skipping = False

    def feed(self, piece: bytes | bytearray) -> None:
        """Add bytes; call `take` then until it returns None."""
        self._rest += piece

    def end(self) -> None:
        if self._rest:
            self._note("no_final_newline")
            self._rest += b"\n"

    def take(self) -> bytes | None:
        """The next whole line that is not empty, or None. Raises `TooLargeError` once per line."""
        while (line := self._cut()) is not None:
            if self._skipping:
                self._skipping = False
            elif len(line) > self._most:
                raise TooLargeError(line, len(line), self._most)
            elif line:
                return line
            else:
                self._note("empty_line")
        if self._skipping:
            self._forget()
        # One more byte may be the CR of a line with exactly the largest size.
        elif len(self._rest) > self._most + 1:
            self._skipping = True
            error = TooLargeError(bytes(self._rest[:SHOWN_BYTES]), len(self._rest), self._most)
            self._forget()
            raise error
        return None

    def _cut(self) -> bytes | None:
        end = self._rest.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._rest)
            return None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._searched = 0
        if line.endswith(b"\r"):
            self._note("crlf")
        return line.removesuffix(b"\r")

    def _forget(self) -> None:
        self._rest.clear()
        self._searched = 0


@contextmanager
def standard_streams() -> Iterator[tuple[ReceiveStream, SendStream]]:
    """Take over standard input and output for the rest of this process's life.

    Other code finds standard input empty, and its output goes to standard error: "The server MUST NOT write anything to
    its stdout that is not a valid MCP message." The two streams are closed at the end of the block, and files shared
    with other processes become blocking again if they were. Raises `StreamsClosedError`.
    """
    # A later file may have the descriptor of a stream that was closed at the start.
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise StreamsClosedError("standard input and standard output must be open")
    with ExitStack() as opened:
        source = _stream(opened, _own(_STDIN, os.O_RDONLY))
        sink = _stream(opened, _own(_STDOUT, os.O_WRONLY))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, _STDIN)
        os.dup2(nothing if sys.__stderr__ is None else _STDERR, _STDOUT)
        os.close(nothing)
        yield source, sink


def _own(fd: int, flags: int) -> int:
    if os.isatty(fd):
        # A terminal is opened again: otherwise the shell and standard error would become non-blocking too.
        with suppress(OSError):
            return os.open(os.ttyname(fd), flags | os.O_NOCTTY)
    return os.dup(fd)


def _stream(opened: ExitStack, fd: int) -> FdStream:
    # trio warns about files on disk, which are always ready.
    stream = FdStream(fd)
    opened.callback(stream.close)
    return stream
