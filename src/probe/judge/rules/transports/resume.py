"""Rules `resume.*`: event streams that break, and how a client goes on with them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from ....log.bounded import Newest
from ...projection.views import Exchange, Message, ServerStream
from ..predicate import Predicate, Wait, judges
from .heads import LAST_EVENT

_MOST: Final = 200
_MOST_LOSSES: Final = 50
# Why the server ended a response although more was to come on its stream; else the client left, or all was said.
_NOT_LOST: Final = frozenset({"", "client", "end of stream", "displaced by a newer connection"})
_BACK_S: Final = 30.0
"""How long after the time that `retry` names a client may take to come back."""


def _event(exchange: Exchange) -> tuple[str, int | None] | None:
    """The stream and the position that a GET for the endpoint names; None where it names none."""
    last = exchange.header(LAST_EVENT) if exchange.method == "GET" and exchange.is_endpoint else None
    if last is None:
        return None
    stream, _, number = last.rpartition("-")
    return stream, int(number) if number.isascii() and number.isdecimal() and len(number) <= 12 else None


def _lost(exchange: Exchange) -> list[ServerStream]:
    """The streams whose requests wait for an answer when the server ends the response that carried them."""
    if exchange.by in _NOT_LOST:
        return []
    carried = [message.stream for message in exchange.messages if message.stream is not None]
    streams = carried or ([] if exchange.stream is None else [exchange.stream])
    return [each for each in streams if each.purpose == "response" and _is_owed(each)]


def _is_owed(stream: ServerStream) -> bool:
    """Whether an answer is to come on a stream whose client can have it."""
    session = stream.session
    return stream.request is not None and not stream.is_answered and session is not None and session.closed is None


def _retry_s(stream: ServerStream) -> float:
    """How long the client was told to wait."""
    given = [control.retry_ms for control in stream.controls if control.retry_ms is not None]
    return given[-1] / 1000 if given else 0.0


def _is_marked(stream: ServerStream) -> bool:
    """Whether a socket took an event with an id; all messages of a session's streams over HTTP have one."""
    marked = any(control.event_id is not None for control in stream.controls)
    return marked or next(stream.delivered(), None) is not None


@dataclass(slots=True, eq=False)
class _Loss:
    """A stream that was lost at `at`. `exchange` carried it; `back` is the request that came back for it."""

    stream: ServerStream
    exchange: Exchange
    at: float
    back: Exchange | None = None
    again: Message | None = None
    bare: Wait | None = None


class _Losses(Predicate):
    """Keeps the streams that were lost, and those whose request was cancelled."""

    def setup(self) -> None:
        self.losses: Newest[tuple[str, str], _Loss] = Newest(_MOST_LOSSES)

    def on_left(self, exchange: Exchange) -> None:
        for stream in _lost(exchange):
            if stream.session is not None and _is_marked(stream):
                loss = _Loss(stream, exchange, exchange.left or exchange.at)
                self.losses.store((stream.session.label, stream.id), loss)
                self.lost(loss)

    def lost(self, loss: _Loss) -> None:
        """A stream was lost."""

    def on_exchange(self, exchange: Exchange) -> None:
        if not self.losses or exchange.method != "GET":
            return
        named = _event(exchange)
        if named is not None and exchange.named is not None:
            loss = self.losses.get((exchange.named, named[0]))
            if loss is not None and loss.back is None:
                loss.back = exchange
                self.came_back(loss, exchange)
        elif named is None and exchange.is_endpoint and exchange.session is not None:
            for loss in self.losses.values():
                if loss.stream.session is exchange.session:
                    self.came_bare(loss, exchange)

    def came_back(self, loss: _Loss, exchange: Exchange) -> None:
        """The client goes on with a lost stream."""

    def came_bare(self, loss: _Loss, exchange: Exchange) -> None:
        """The client of a lost stream sends a GET that names no event."""

    def on_notification(self, message: Message) -> None:
        if self.losses and message.method == "notifications/cancelled":
            id = message.params.get("requestId")
            for key, loss in [*self.losses.items()]:
                request = loss.stream.request
                if request is not None and request.session is message.session and request.id == id:
                    del self.losses[key]

    def is_decided_at_end(self, wait: Wait) -> bool:
        loss: _Loss = wait.arguments[0]
        return not self.is_open(loss)

    def is_open(self, loss: _Loss) -> bool:
        """Whether nothing has come of a loss: no cancellation, no answer, no return, no end of the session."""
        session = loss.stream.session
        known = session is not None and self.losses.get((session.label, loss.stream.id)) is loss
        return known and loss.back is None and _is_owed(loss.stream)


@judges("resume.comes-back")
class ResumeComesBack(_Losses):
    """Comes back for a stream the server closed.

    A client that is not seen long after it should have come back may have ended.
    """

    def lost(self, loss: _Loss) -> None:
        if self._counts(loss):
            due = loss.at + max(_retry_s(loss.stream), 1.0) + _BACK_S
            self.give_time(due, self._look, loss, of=loss.exchange)

    def came_back(self, loss: _Loss, exchange: Exchange) -> None:
        if self._counts(loss):
            self.ok(loss.exchange, exchange.seq)

    def _counts(self, loss: _Loss) -> bool:
        """Whether the client was primed to come back, and sent away."""
        session = loss.stream.session
        known = session is not None and session.revision in self.rule.revisions
        return known and loss.exchange.by == "hang-up" and any(each.what == "priming" for each in loss.stream.controls)

    def _look(self, loss: _Loss) -> None:
        session = loss.stream.session
        if session is None or not self.is_open(loss):
            return
        expected = loss.at + max(_retry_s(loss.stream), 1.0) + self.allowances.settle_s
        if session.last_act > expected:
            waited = f"{self.now - loss.at:.0f} s"
            self.fail(loss.exchange, f"went on, and did not come back for stream {loss.stream.id} within {waited}")


@judges("resume.last-event-id")
class ResumeLastEventId(_Losses):
    """Says the last event it got when it comes back.

    A GET without it opens another stream, which is legal beside the lost one: it is waited for the other GET.
    """

    def came_back(self, loss: _Loss, exchange: Exchange) -> None:
        self.ok(exchange, loss.exchange.seq)

    def came_bare(self, loss: _Loss, exchange: Exchange) -> None:
        if loss.back is None and loss.bare is None and exchange.at - loss.at <= _BACK_S and _is_owed(loss.stream):
            due = exchange.at + _retry_s(loss.stream) + self.allowances.settle_s
            loss.bare = self.give_time(due, self._look, loss, exchange, of=exchange, also=(loss.exchange.seq,))

    def _look(self, loss: _Loss, exchange: Exchange) -> None:
        if self.is_open(loss):
            remark = f"GET without Last-Event-ID, and none with it for stream {loss.stream.id}"
            self.fail(exchange, remark, loss.exchange.seq)


@judges("resume.position-true")
class ResumePositionTrue(Predicate):
    """Names an event that it can have got.

    An older one than the last is innocent: what followed may not have arrived. And a socket may have taken a part of
    what the log does not call delivered.
    """

    def on_response(self, exchange: Exchange) -> None:
        named = _event(exchange)
        if named is None or exchange.session is None:
            return
        if exchange.refusal == "UNKNOWN_EVENT_ID":
            self.fail(exchange, f"Last-Event-ID {exchange.header(LAST_EVENT)} was never given in this session")
        elif exchange.refusal == "EVENTS_GONE":
            self.ok(exchange)
        elif exchange.status == 200 and exchange.stream is not None:
            last = max((sent.position or 0 for sent in exchange.stream.delivered()), default=0)
            if named[1] is not None and named[1] > last and self.life.whole:
                self.unclear(exchange, f"Last-Event-ID {exchange.header(LAST_EVENT)} names what no socket took whole")
            else:
                self.ok(exchange)


@judges("resume.stops-when-answered")
class ResumeStopsWhenAnswered(Predicate):
    """Stops coming back once it has the answer.

    One request may be under way, or the last bytes were lost on the way: it takes two for one stream. A client that
    names the event of the answer as its last one has read the answer, so two of those are enough on any streams, and at
    any time.
    """

    def setup(self) -> None:
        self._answered: Newest[tuple[str, str], Message] = Newest(_MOST)
        self._returns: Newest[tuple[str, str], tuple[int, ...]] = Newest(_MOST)
        self._needless: tuple[int, ...] = ()

    def on_answered(self, request: Message) -> None:
        stream, session = request.stream, request.session
        if stream is not None and session is not None and request.exchange is not None and stream.purpose == "response":
            made_room = self._answered.store((session.label, stream.id), request)
            if made_room is not None:
                self.ok(made_room)

    def on_exchange(self, exchange: Exchange) -> None:
        named = _event(exchange)
        if named is None or exchange.named is None:
            return
        key = (exchange.named, named[0])
        request = self._answered.get(key)
        if request is None:
            return
        if request.answer is not None and request.answer.position == named[1]:
            self._needless = (*self._needless[-9:], exchange.seq)
            self._returns.store(key, (*self._returns.get(key, ())[-9:], exchange.seq))
            if len(self._needless) > 1:
                self.fail(request, f"came back with the event of the answer to {named[0]} as its last", *self._needless)
            return
        if exchange.at < (request.answered or 0) + self.allowances.settle_s:
            return
        returns = (*self._returns.get(key, ())[-9:], exchange.seq)
        self._returns.store(key, returns)
        if len(returns) > 1:
            self.fail(request, f"came back {len(returns)} times for stream {named[0]} after its answer", *returns)

    def on_end(self) -> None:
        for key, request in self._answered.items():
            if key not in self._returns:
                self.ok(request)
        self._answered.clear()


_REPEATS: Final = 10
"""The number of returns after a refusal that are still patience."""

_FEW: Final = 4
"""The refused request and three more."""


@judges("resume.gives-up")
class ResumeGivesUp(Predicate):
    """Gives up when a stream cannot be resumed.

    A client that waits longer each time is polite, however often it comes.
    """

    def setup(self) -> None:
        self._refused: Newest[str, deque[tuple[float, int]]] = Newest(_MOST)

    def on_response(self, exchange: Exchange) -> None:
        if exchange.status not in (400, 410) or _event(exchange) is None:
            return
        key = f"{exchange.named} {exchange.header(LAST_EVENT)}"
        times = self._refused.get(key)
        if times is None:
            times = deque(maxlen=_REPEATS + 1)
            self._refused.store(key, times)
            due = exchange.at + self.allowances.repeat_s
            self.give_time(due, self._look, times, exchange, of=exchange)
        times.append((exchange.at, exchange.seq))
        if len(times) > _REPEATS and times[-1][0] - times[0][0] <= self.allowances.repeat_s:
            remark = f"{len(times)} times the same refused Last-Event-ID within {self.allowances.repeat_s:g} s"
            self.fail(exchange, remark, *(seq for _, seq in times))
            times.clear()

    def is_decided_at_end(self, wait: Wait) -> bool:
        times, exchange = wait.arguments
        restless = len(times) > _FEW
        if restless:
            self._look(times, exchange)
        return restless or not times

    def _look(self, times: deque[tuple[float, int]], exchange: Exchange) -> None:
        if 0 < len(times) <= _FEW:
            self.ok(exchange)
        elif times:
            self.unclear(exchange, f"{len(times)} times the same refused Last-Event-ID")


_AT_ONCE_S: Final = 5.0
"""A repetition so soon after a loss is rather the client's than a person's."""


@judges("resume.no-second-call")
class ResumeNoSecondCall(_Losses):
    """Resumes a call instead of making it twice.

    A client that makes equal calls side by side repeats nothing.
    """

    def setup(self) -> None:
        super().setup()
        self._calls: Newest[int, Message] = Newest(_MOST)

    def lost(self, loss: _Loss) -> None:
        request = loss.stream.request
        if request is not None and request.method == "tools/call" and not self._has_twin(request):
            self.give_time(loss.at + _BACK_S, self._look, loss, of=loss.exchange)

    def on_request(self, message: Message) -> None:
        if message.method != "tools/call" or message.session is None:
            return
        self._calls.store(message.seq, message)
        for loss in self.losses.values() if self.losses else ():
            request = loss.stream.request
            if request is not None and loss.again is None and self.is_open(loss) and _is_equal(message, request):
                loss.again = message

    def is_decided_at_end(self, wait: Wait) -> bool:
        loss: _Loss = wait.arguments[0]
        if loss.back is None and loss.again is None:
            return not self.is_open(loss)
        if loss.back is None and self.now < loss.at + _retry_s(loss.stream):
            # The other call may be one of its own, and the time to come back for this one has not come.
            return False
        self._look(loss)
        return True

    def _has_twin(self, request: Message) -> bool:
        return any(each is not request and _is_equal(each, request) for each in self._calls.values())

    def _look(self, loss: _Loss) -> None:
        session = loss.stream.session
        if loss.back is not None:
            self.ok(loss.exchange, loss.back.seq)
        elif loss.again is not None:
            waited = loss.again.at - loss.at
            remark = f"the same call again {waited:.1f} s after its stream broke, in place of Last-Event-ID"
            if waited <= _AT_ONCE_S:
                self.fail(loss.again, remark, loss.exchange.seq)
            else:
                self.unclear(loss.again, remark, loss.exchange.seq)
        elif session is not None and session.last_act > loss.at:
            self.ok(loss.exchange)


def _is_equal(one: Message, other: Message) -> bool:
    if one.session is not other.session or one.method != other.method:
        return False
    first, second = one.params, other.params
    return first.get("name") == second.get("name") and first.get("arguments") == second.get("arguments")
