"""The stream of one tool call that outlives its connection, and its owner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from math import ceil

from ...core.draft_stream import DraftStream, Interval, Lost, LostError, MessageKind, Poll
from ...log.context import Recorder
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, RequestId, Rpc
from ...wire.v2025 import draft_streams as wire
from ..calls.scope import CallScope
from ..services import Services
from ..sessions import ClientRequests, Session
from .stream import Reader, Stream, StreamLostError, nothing

WHY = {
    Lost.ABANDONED: "the stream was abandoned: not resumed or polled within resumeInterval.max",
    Lost.OVERFLOW: "the stream is lost: more waited for its client than replay_messages or replay_bytes allow",
    Lost.SESSION_ENDED: "the stream is lost: its session has ended",
    Lost.SERVER_FULL: "the stream is lost: all streams together are as large or as many as the server allows",
}
"""The reasons of a loss, in words for the client."""


def lost_error(lost: Lost) -> McpError:
    """The error for the owner of a lost stream."""
    return McpError(Code.STREAM_LOST, WHY[lost], {"reason": lost.value})


class ToolStream(Stream):
    """The stream of one `tools/call`. Its owner can resume it from any connection.

    `holder` is the session in which the client can cancel the call and answer its questions; None before the client has
    come back, and once the stream is not `kept`. `address` is the client address for shares. `call` is None once it is
    over. `answer_taken` is set once the client has the answer.
    """

    def __init__(
        self,
        number: int,
        stream_id: str,
        session: Session,
        request_id: RequestId,
        request: Recorder,
        services: Services,
        changed: Callable[[ToolStream], None],
    ) -> None:
        settings, clock = services.settings, services.clock
        self.machine = DraftStream(
            Interval(settings.stream_min_s, settings.stream_max_s),
            settings.stream_retention_s,
            max_messages=settings.limits.replay_messages,
            max_bytes=settings.limits.replay_bytes,
            now=clock.now(),
        )
        label = session.next_stream_label()
        super().__init__(label, "resumable", request, settings.limits, replay=self.machine.log)
        self.stream_id = stream_id
        self.request_id = request_id
        self.holder: Session | None = session
        self.call: CallScope | None = None
        self.owner = Owner(session.label, None if session.secret is None else digest_of(session.secret))
        self.number = number
        self.address = session.holder
        self.kept = True
        self.answer_taken = False
        self.weight = 0
        self._home = session
        self._retry_ms = ceil(settings.stream_min_s * 1000)
        self._questions = ClientRequests(f"q{number}-")
        self._answer_at: int | None = None
        self._clock = clock
        self._changed = changed

    def sends_answer(self) -> None:
        self._answer_at = self.replay.last + 1

    @property
    def retry_ms(self) -> int:
        """resumeInterval.min of the draft: a client that obeys the event stream's `retry` obeys the draft too."""
        return self._retry_ms

    @property
    def one_by_one(self) -> bool:
        """True: a client without a count of its own does not get a message twice."""
        return True

    @property
    def questions(self) -> ClientRequests:
        return self._questions

    @property
    def finished(self) -> bool:
        return self.replay.closed and not self.machine.untaken

    def marked(self, value: Json) -> Json:
        return wire.marked(value, self.stream_id, self.replay.last + 1)

    def attach(self, recorder: Recorder, wake: Callable[[], None] = nothing) -> Reader:
        self.machine.connect(self._clock.now())
        return super().attach(recorder, wake)

    def detach(self, reader: Reader) -> None:
        if self.reader is reader:
            self.machine.disconnect(self._clock.now())
        super().detach(reader)
        self._changed(self)

    def dismissed(self, reader: Reader) -> str | None:
        lost = self.machine.lost
        own = "forgotten" if self.machine.forgotten else None if lost is None else f"lost: {lost}"
        return super().dismissed(reader) or own

    def delivered(self, first: int, last: int, reader: Recorder, *, event_ids: bool = False) -> None:
        super().delivered(first, last, reader, event_ids=event_ids)
        self.answer_taken = self.answer_taken or (self._answer_at is not None and last >= self._answer_at)
        self.machine.taken(last, self._clock.now())
        self._changed(self)

    def acknowledge(self, position: int) -> None:
        self.machine.taken(position, self._clock.now())
        self._changed(self)

    def end(self, now: float) -> None:
        super().end(now)
        self.machine.end(now)
        self._changed(self)

    def resume(self, received: int | None) -> int:
        """The position after which a resumption reads. Raises the errors of the machine."""
        try:
            return self.machine.resume(received, self._clock.now())
        finally:
            self._changed(self)

    def poll(self, received: int | None) -> Poll:
        try:
            return self.machine.poll(received, self._clock.now())
        finally:
            self._changed(self)

    def forget(self) -> None:
        self.kept = False
        self._home.drop(self)
        self._wake()

    def _keep(self, message: bytes, rpc: Rpc) -> int:
        kind = {"request": MessageKind.REQUEST, "error": MessageKind.ERROR}.get(rpc, MessageKind.OTHER)
        try:
            position = self.machine.emit(message, kind, self._clock.now())
        except LostError as error:
            raise StreamLostError(WHY[error.lost]) from None
        finally:
            self._changed(self)
        # With this message, all streams together may exceed their bound, and this stream was lost for it.
        if self.machine.lost is not None:
            raise StreamLostError(WHY[self.machine.lost])
        return position


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a stream: `secret` is the digest of its secret, None where the session is the owner."""

    session: str
    secret: bytes | None

    @property
    def key(self) -> str | bytes:
        return self.secret or self.session


def digest_of(text: str) -> bytes:
    """The digest of a secret or of a stream id; only digests are kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
