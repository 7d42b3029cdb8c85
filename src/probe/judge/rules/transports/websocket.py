"""Rules `websocket.*`: the WebSocket of this server."""

from __future__ import annotations

from typing import Final

from ...projection.views import Frame, Pipe, ProcessChange
from ..predicate import Predicate, judges

# RFC 6455 section 7.4.1: a protocol error, data that cannot be taken, text that is not UTF-8.
_BROKEN: Final = frozenset({1002, 1003, 1007})
# Why this server cuts off a peer from which nothing comes, not even the answer to a ping.
_SILENT: Final = "dead peer"
_TWICE: Final = 2


@judges("websocket.text-frames")
class WebsocketTextFrames(Predicate):
    """Sends each message as one UTF-8 text frame.

    Size and slowness have other codes: they are limits of this server.
    """

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.transport != "websocket":
            return
        if pipe.by != "client" and pipe.code in _BROKEN:
            self.fail(pipe, f"the server closed with {pipe.code}: {pipe.by}")
        else:
            self.ok(pipe)


@judges("websocket.answers-pings")
class WebsocketAnswersPings(Predicate):
    """Answers WebSocket pings.

    A sleeping machine or a lost network is silent, too: it takes two connections.
    """

    def setup(self) -> None:
        self._pinged: Frame | None = None
        self._cut: list[int] = []

    def on_frame(self, frame: Frame) -> None:
        if frame.opcode == "ping" and frame.direction == "sent":
            self._pinged = frame
        elif frame.opcode == "pong" and self._pinged is not None and self._pinged.pipe is frame.pipe:
            self.ok(frame, self._pinged.seq)
            self._pinged = None

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.transport != "websocket" or pipe.by != _SILENT:
            return
        self._cut = [*self._cut[-9:], pipe.seq]
        if len(self._cut) < _TWICE:
            self.unclear(pipe, "cut off for its silence after a ping, once")
        else:
            self.fail(pipe, f"{len(self._cut)} connections were cut off for their silence after a ping", *self._cut)


@judges("websocket.closes-in-order")
class WebsocketClosesInOrder(Predicate):
    """Closes a WebSocket with a close frame.

    A crash, a kill and a lost network break a connection as well. Only where the runner saw the client's process end by
    its own will, and just then, the client is to blame.
    """

    def setup(self) -> None:
        self._closing: Pipe | None = None
        self._broken: list[tuple[float, Pipe]] = []
        self._process = ""
        self._left: ProcessChange | None = None

    def on_frame(self, frame: Frame) -> None:
        if frame.opcode == "close" and frame.direction == "received":
            self._closing = frame.pipe

    def on_pipe_end(self, pipe: Pipe) -> None:
        if pipe.transport != "websocket" or pipe.by != "client":
            return
        if pipe.code is not None or self._closing is pipe:
            self.ok(pipe)
        elif self._left is not None and self.now - self._left.at <= self.allowances.end_after_s:
            self._blame(pipe, self._left)
        elif self._process == "started":
            self._broken = [*self._broken[-9:], (self.now, pipe)]
            due = self.now + self.allowances.end_after_s
            self.let_cross(due, self._look, pipe, of=pipe)
        else:
            self.unclear(pipe, _UNKNOWN)

    def on_process(self, change: ProcessChange) -> None:
        if change.of != "client":
            return
        ended_well = change.what == "exited" and change.status == 0
        # A signal to the process, or the close frame, may be among the entries that are missing.
        by_itself = ended_well and self._process == "started" and self.life.whole
        self._process = change.what
        self._left = change if by_itself else None
        if by_itself:
            broken, self._broken = self._broken, []
            for at, pipe in broken:
                if change.at - at <= self.allowances.end_after_s:
                    self._blame(pipe, change)

    def _look(self, pipe: Pipe) -> None:
        if any(each is pipe for _, each in self._broken):
            self._broken = [each for each in self._broken if each[1] is not pipe]
            self.unclear(pipe, _UNKNOWN)

    def _blame(self, pipe: Pipe, change: ProcessChange) -> None:
        self.fail(pipe, "ended without a close frame, and the client's process ended by itself", change.seq)


_UNKNOWN: Final = "ended without a close frame; nothing says why"
