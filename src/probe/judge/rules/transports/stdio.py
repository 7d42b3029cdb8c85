"""Rules `stdio.*`: standard streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from pydantic_core import from_json

from ....log.bounded import Newest
from ...projection.views import Message, Pipe, ProcessChange, Session, Unreadable, members
from ..predicate import Predicate, judges

Line: TypeAlias = Unreadable | Message
"""A line that is no message: no JSON, or JSON that is no message."""

# Lines of one message, and its bytes, that are tried as a whole.
_MOST_LINES: Final = 200
_MOST_BYTES: Final = 100_000
_MOST_PIPES: Final = 200
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})", re.IGNORECASE)


class _Lines(Predicate):
    """Collects lines that are no messages until one comes that is, or the end: together they may be one message.

    Where entries are missing, nothing says how the lines before them went on, nor whether the line behind them has an
    end.
    """

    def setup(self) -> None:
        self._run: list[Line] = []
        self._cut = False
        self._is_behind_gap = False

    def on_unreadable(self, unreadable: Unreadable) -> None:
        if unreadable.pipe is None or unreadable.pipe.transport != "stdio":
            return
        if unreadable.fault in ("syntax", "encoding"):
            self._add(unreadable)
        else:
            self._over()
            if unreadable.fault != "size":
                self.unclear(unreadable, f"a line that this server does not read: {unreadable.problem}")

    def on_message(self, message: Message) -> None:
        if message.rpc == "invalid":
            self._add(message)
        else:
            self._is_behind_gap = False
            if self._run:
                self._over()
            self.ok(message)

    def on_process(self, change: ProcessChange) -> None:
        # It is told before the line that has no end is read.
        if change.what == "no_final_newline":
            self._over()
            self._cut = True

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.transport == "stdio":
            self._over()
            self._cut = self._is_behind_gap = False

    def on_end(self) -> None:
        self._over()

    def on_gap(self) -> None:
        run, self._run = self._run, []
        for line in run:
            self.unclear(line, "the line may go on in entries that are missing")
        self._is_behind_gap = True

    def _add(self, line: Line) -> None:
        if self._cut:
            self.unclear(line, "the last line has no end, and may be cut off")
            return
        if self._is_behind_gap:
            self._is_behind_gap = False
            self.unclear(line, "entries before the line are missing, which may say that it is cut off")
            return
        self._run.append(line)
        if len(self._run) >= _MOST_LINES:
            self._over()

    def _over(self) -> None:
        run, self._run = self._run, []
        if run:
            self.judge(run, len(run) > 1 and _is_one_message(run))

    def judge(self, run: Sequence[Line], one: bool) -> None:
        """Lines that are no messages follow one another; `one` says that together they are one."""


def _is_one_message(run: Sequence[Line]) -> bool:
    texts = []
    for line in run:
        if isinstance(line, Message):
            texts.append(line.raw)
        elif line.size > len(line.head) or line.fault != "syntax":
            # The log has only its beginning.
            return False
        else:
            texts.append(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), line.head).encode("latin-1"))
    text = b"\n".join(texts)
    if len(text) > _MOST_BYTES:
        return False
    try:
        value = from_json(text)
    except ValueError:
        return False
    return bool({"method", "result", "error"} & members(value).keys())


@judges("stdio.only-messages")
class StdioOnlyMessages(_Lines):
    """Writes nothing but messages to standard input.

    Faults that another rule has found in a line, or in several, are left to it, and so are those that it could not
    decide.
    """

    general = True

    def judge(self, run: Sequence[Line], one: bool) -> None:
        for line in run if not one else ():
            if line.found is None and not line.doubted:
                self.fail(line, "a line that is no JSON" if isinstance(line, Unreadable) else "JSON that is no message")


@judges("stdio.one-line-each")
class StdioOneLineEach(_Lines):
    """Writes each message on one line.

    A carriage return before the line end is white space in JSON, and changes no message.
    """

    def on_unreadable(self, unreadable: Unreadable) -> None:
        if unreadable.fault == "syntax":
            super().on_unreadable(unreadable)

    def on_process(self, change: ProcessChange) -> None:
        super().on_process(change)
        if change.what == "crlf":
            self.measure("line_ends", "CRLF")

    def judge(self, run: Sequence[Line], one: bool) -> None:
        if one:
            self.fail(run[0], f"one message on {len(run)} lines", *(line.seq for line in run))


@judges("stdio.closes-input-first")
class StdioClosesInputFirst(Predicate):
    """Ends the server by closing its input.

    A terminal, a supervisor or a wrapper may send the signal in place of the client, and a client that is killed closes
    everything at once. Where both come at the same time, nothing says which was first.
    """

    def setup(self) -> None:
        self._signals: Newest[str, ProcessChange] = Newest(_MOST_PIPES)
        self._killed = False

    def on_process(self, change: ProcessChange) -> None:
        if change.of == "client":
            self._killed = change.what in ("killed", "timed_out") or (self._killed and change.what != "started")
        elif change.pipe is None:
            return
        elif change.what in ("SIGTERM", "SIGINT", "SIGHUP"):
            if change.pipe.ended_input is None and change.pipe.label not in self._signals:
                self._signals.store(change.pipe.label, change)
        elif change.what == "end_of_input":
            self._input_ended(change, self._signals.pop(change.pipe.label, None))
        elif change.what == "exit":
            self._ended(change.pipe)

    def on_pipe_end(self, pipe: Pipe) -> None:
        self._ended(pipe)

    def _input_ended(self, change: ProcessChange, signal: ProcessChange | None) -> None:
        if self._killed:
            self.unclear(change, "the client was killed, which closes its end as well")
        elif signal is None:
            self.ok(change)
        else:
            self.unclear(change, f"{signal.what} came just before the end of input", signal.seq)

    def _ended(self, pipe: Pipe) -> None:
        signal = self._signals.pop(pipe.label, None)
        if signal is None:
            return
        if signal.what == "SIGTERM" and not self._killed:
            self.fail(signal, "SIGTERM came while standard input was open (client, supervisor or wrapper)")
        else:
            self.unclear(signal, f"{signal.what} came while standard input was open, perhaps to a whole group")


@judges("stdio.no-responses")
class StdioNoResponses(Predicate):
    """Writes no responses.

    Inside a session on the same pipe answers are legal. The rules of a WebSocket are this server's own choice.
    """

    def on_message(self, message: Message) -> None:
        pipe = message.pipe
        if pipe is None or pipe.session is not None:
            return
        if message.rpc not in ("response", "error"):
            if message.rpc != "invalid":
                self.ok(message)
        elif pipe.transport == "stdio":
            self.fail(message, "a response was written, and no session is open")
        else:
            self.warn(message, "a response was sent, and no session is open")


@judges("stdio.probes-with-discover")
class StdioProbesWithDiscover(Predicate):
    """Probes with server/discover when it speaks both eras.

    Only a process that used both is surely of a client that speaks both: another one may have been told its era by its
    configuration. A later process may know the era from an earlier one.
    """

    def setup(self) -> None:
        self._first: Pipe | None = None
        self._over = False

    def on_pipe(self, pipe: Pipe) -> None:
        if pipe.transport == "stdio" and self._first is None:
            self._first = pipe
            self._over = not self.life.whole

    def on_request(self, message: Message) -> None:
        if not self._over and len(self.life.eras) > 1:
            self._look()

    def on_session(self, session: Session) -> None:
        if not self._over and len(self.life.eras) > 1:
            self._look()

    def _look(self) -> None:
        pipe = self._first
        first = None if pipe is None else pipe.first
        if pipe is None or first is None:
            return
        self._over = True
        if first.method == "server/discover":
            self.ok(first)
        elif pipe.session is not None and pipe.modern is not None:
            self.fail(first, f"speaks both eras, and its first message is {first.method}")
        else:
            self.unclear(first, f"spoke both eras in several processes; its first message was {first.method}")
