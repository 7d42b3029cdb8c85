"""Rules `http.*` about what a client does with an answer, and with what stands beside messages in an event stream."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ....log.bounded import Newest
from ....wire.jsonrpc import is_id
from ...projection.views import Control, Exchange, Message, ServerStream, Session
from ..predicate import Predicate, judges

Form: TypeAlias = Literal["application/json", "text/event-stream"]

_CANCELLED: Final = "notifications/cancelled"
# Requests whose late cancellation is noticed, and exchanges whose first comment is remembered.
_MOST: Final = 1_000


def _named(message: Message) -> Message | None:
    """The request that a cancellation names."""
    id = message.params.get("requestId")
    return message.scope.requests.get(id) if is_id(id) else None


class _Answers:
    """Answers of one form, in their order, and which of them their client did not understand.

    A client that cannot read a form understands none of its answers: one that was left alone shows that it can.
    """

    def __init__(self) -> None:
        self._places: Newest[int, int] = Newest(_MOST)
        self._count = 0
        self.missed: list[int] = []

    def answered(self, request: Message) -> None:
        """One more answer."""
        self._count += 1
        self._places.store(request.seq, self._count)

    def miss(self, request: Message, by: Message) -> bool:
        """The client did as if the answer to a request had not come; says whether two did, and all so far."""
        place = self._places.pop(request.seq, None)
        if place is None:
            return False
        self.missed = [*self.missed[-9:], by.seq]
        return place == len(self.missed) > 1


@judges("http.both-answer-forms")
class HttpBothAnswerForms(Predicate):
    """Understands JSON answers and event streams.

    A cancellation that comes long after the answer says that its sender still waited. A repeated call says
    nothing: people, models and scripts repeat calls.
    """

    def setup(self) -> None:
        self._answers: dict[Form, _Answers] = {"application/json": _Answers(), "text/event-stream": _Answers()}
        self._open: dict[Form, Message] = {}
        self._went_on: dict[Form, Message] = {}

    def on_answered(self, request: Message) -> None:
        form = _form(request)
        if form is not None:
            self._answers[form].answered(request)
            self._open[form] = request

    def on_request(self, message: Message) -> None:
        if not self._open or len(self._went_on) > 1:
            return
        for form, request in [*self._open.items()]:
            if not _is_repetition(message, request):
                del self._open[form]
                self._went_on[form] = message
        if len(self._went_on) > 1 and not any(answers.missed for answers in self._answers.values()):
            self.ok(message, *(each.seq for each in self._went_on.values()))

    def on_notification(self, message: Message) -> None:
        if message.method != _CANCELLED:
            return
        request = _named(message)
        form = None if request is None else _form(request)
        if request is None or form is None or message.at - (request.answered or 0) <= self.allowances.end_after_s:
            return
        (other,) = self._answers.keys() - {form}
        if self._answers[form].miss(request, message) and other in self._went_on and not self._answers[other].missed:
            waited = message.at - (request.answered or 0)
            remark = (
                f"cancelled a request {waited:.1f} s after its answer as {form}, and so all that had such an answer"
            )
            self.fail(message, remark, *self._answers[form].missed)


def _form(request: Message) -> Form | None:
    """How a request was answered by a result, where that was in its own exchange."""
    exchange, answer = request.exchange, request.answer
    if exchange is None or answer is None or answer.delivered is None or answer.rpc != "response":
        return None
    if exchange.content_type.startswith("text/event-stream"):
        # A resumed stream came on another exchange.
        return "text/event-stream" if answer.stream is None or answer.stream.readers[-1:] == [exchange] else None
    return "application/json" if exchange.content_type.startswith("application/json") else None


def _is_repetition(message: Message, request: Message) -> bool:
    if message.method != request.method:
        return False
    return {**message.params, "_meta": None} == {**request.params, "_meta": None}


@judges("http.sse-empty-data")
class HttpSseEmptyData(Predicate):
    """Takes an event without data for what it is.

    The fault shows only later: the request is cancelled although its answer came, or the session is begun anew on
    the same connection. A new process begins a session as well, and has a connection of its own.
    """

    def setup(self) -> None:
        self._answers = _Answers()
        self._open: Message | None = None

    def on_answered(self, request: Message) -> None:
        stream = request.stream
        if stream is not None and _form(request) == "text/event-stream" and _is_primed(stream):
            self._answers.answered(request)
            self._open = request

    def on_exchange(self, exchange: Exchange) -> None:
        request = self._open
        if request is not None and exchange.method == "DELETE":
            self._open = None
            self.ok(request, exchange.seq)

    def on_request(self, message: Message) -> None:
        request, self._open = self._open, None
        if request is None:
            return
        if message.method != "initialize":
            self.ok(request, message.seq)
        elif _is_same_connection(request, message):
            self._miss(request, message, "began a new session after the answer on a stream with an empty event")

    def on_notification(self, message: Message) -> None:
        if message.method != _CANCELLED:
            return
        request = _named(message)
        if request is not None and message.at - (request.answered or message.at) > self.allowances.end_after_s:
            self._open = None
            self._miss(request, message, "cancelled a request after its answer on a stream with an empty event")

    def _miss(self, request: Message, by: Message, remark: str) -> None:
        if self._answers.miss(request, by):
            self.fail(request, remark, *self._answers.missed)
        elif len(self._answers.missed) == 1:
            self.unclear(request, f"{remark}, once", by.seq)


def _is_primed(stream: ServerStream) -> bool:
    return any(control.what == "priming" for control in stream.controls)


def _is_same_connection(one: Message, other: Message) -> bool:
    first, second = one.exchange, other.exchange
    return first is not None and second is not None and first.connection == second.connection is not None


_AT_ONCE_S: Final = 0.2
"""How soon a client that fails on a comment ends its stream."""

_TIMER_S: Final = 5.0
"""Timers of clients and proxies are set to multiples of this, and then end a stream whatever it carried."""

_NEAR_S: Final = 0.3
"""So near to each other, two times are the same."""


@judges("http.sse-comments")
class HttpSseComments(Predicate):
    """Ignores comments on event streams.

    A client's timer ends streams at the time when a comment comes, as both follow a silence. And the server asks a peer
    that seems to have gone by a comment whether it still reads: that comment comes because the stream ends. So only the
    comment counts that follows a silence of `keep_alive_s`, which must be no multiple of five seconds.
    """

    def setup(self) -> None:
        self._first: Newest[int, tuple[float, float]] = Newest(_MOST)
        self._ends: list[tuple[float, int]] = []
        self._survived = False

    def on_control(self, stream: ServerStream, exchange: Exchange, control: Control) -> None:
        if control.what == "comment" and exchange.number not in self._first:
            self._first.store(exchange.number, (control.at, _silence(stream, exchange, control)))

    def on_answered(self, request: Message) -> None:
        exchange = request.exchange
        if exchange is not None and self._first and exchange.number in self._first:
            self._survived = True
            self.ok(request)

    def on_left(self, exchange: Exchange) -> None:
        if exchange.by == "client" and exchange.left is not None and self._first:
            self._ended(exchange, exchange.left)

    def on_notification(self, message: Message) -> None:
        request = _named(message) if message.method == _CANCELLED else None
        if request is not None and request.exchange is not None:
            self._ended(request.exchange, message.at)

    def _ended(self, exchange: Exchange, at: float) -> None:
        first = self._first.pop(exchange.number, None)
        place = _place(exchange)
        if first is None or place is None or at - first[0] > _AT_ONCE_S or not self._counts(exchange, first):
            return
        after = first[0] - exchange.at
        if all(abs(after - each) > _NEAR_S for each, _ in self._ends):
            self._ends = [*self._ends[-9:], (after, exchange.seq)]
        if self._survived:
            return
        if len(self._ends) < self.allowances.survival_tries:
            self.unclear(place, f"ended {(at - first[0]) * 1000:.0f} ms after the first comment", exchange.seq)
        else:
            remark = f"ended {len(self._ends)} streams within {_AT_ONCE_S * 1000:.0f} ms of the first comment"
            self.fail(place, remark, *(seq for _, seq in self._ends))

    def _counts(self, exchange: Exchange, first: tuple[float, float]) -> bool:
        at, silence = first
        keep_alive_s = self.settings.get("keep_alive_s")
        if not isinstance(keep_alive_s, (int, float)) or silence < keep_alive_s - 0.05:
            return False
        return not _is_timer(silence) and not _is_timer(at - exchange.at)


def _silence(stream: ServerStream, exchange: Exchange, comment: Control) -> float:
    """How long nothing was sent before a comment."""
    times = [exchange.responded or exchange.at]
    times += [sent.delivered for sent in stream.sent.values() if sent.delivered is not None]
    times += [control.at for control in stream.controls if control is not comment]
    return comment.at - max(times)


def _is_timer(seconds: float) -> bool:
    rest = seconds % _TIMER_S
    return min(rest, _TIMER_S - rest) <= _NEAR_S


def _place(exchange: Exchange) -> Message | Session | None:
    """The holder of a stream's revision: its request, else its session."""
    requests = (message for message in exchange.messages if message.rpc == "request")
    return next(requests, exchange.session)
