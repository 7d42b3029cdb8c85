"""Rules `jsonrpc.*` about the ids of requests and answers."""

from __future__ import annotations

from typing import Final

from ....log.bounded import Newest
from ....wire.jsonrpc import RequestId, clip, is_id
from ...projection.asked import is_one_connection, place_of
from ...projection.views import Message, Sent, members
from ..predicate import Predicate, judges

_MOST: Final = 1_000
# Digits of an integer that any JSON type of an id can hold.
_LONGEST: Final = 19


@judges("jsonrpc.id-unused-before")
class JsonrpcIdUnusedBefore(Predicate):
    """Never uses a request id twice in one session.

    A transport that believes a POST lost sends the same bytes again, on another connection and whether or not it was
    answered, so equal bytes count only on one connection where the first request was answered, and in one batch. A
    request that a limit of the server refused is sent again by design.
    """

    def on_request(self, message: Message) -> None:
        if message.session is None or message.id is None or not message.scope.requests:
            return
        first = message.scope.requests.get(message.id)
        if first is None:
            self.ok(message)
        elif first.is_limited:
            self.unclear(message, "the first request with this id was refused for a limit", first.seq)
        elif first.raw == message.raw and message.transport == "http" and not is_one_connection(message, first):
            self.unclear(message, "the same bytes came again on another connection, as a transport repeats", first.seq)
        elif first.raw != message.raw or first.answered is not None or _in_one_batch(first, message):
            self.fail(message, f"{message.method} has the id {_shown(message.id)} of {first.method}", first.seq)
        else:
            self.unclear(message, "the same bytes came again before the first request was answered", first.seq)


def _in_one_batch(first: Message, second: Message) -> bool:
    return second.batch is not None and first.exchange is second.exchange and first.exchange is not None


def _shown(id: RequestId) -> str:
    return clip(repr(id))


@judges("jsonrpc.id-not-in-flight")
class JsonrpcIdNotInFlight(Predicate):
    """Does not give two requests in flight the same id.

    Over HTTP nothing but a label tells one process from another, and one program may have several instances of a client
    under its label, each with a count of its own: only what one connection carried comes from one sender. A request
    that the client has left or cancelled has no response to wait for, and what was answered just now the client can
    have read before the log calls it delivered.
    """

    _last: Message | None = None

    def setup(self) -> None:
        self._cancelled: Newest[tuple[str | None, RequestId], int] = Newest(_MOST)

    def on_notification(self, message: Message) -> None:
        if message.method == "notifications/cancelled":
            id = message.params.get("requestId")
            if is_id(id):
                self._cancelled.store((place_of(message), id), message.seq)

    def on_request(self, message: Message) -> None:
        if message.id is None:
            return
        first, last = message.scope.requests.get(message.id), self._last
        self._last = message
        if first is not None and self._is_in_flight(first, message):
            self._accuse(message, first)
        elif last is not None and last.scope is message.scope and self._is_in_flight(last, message):
            self.ok(message, last.seq)

    def _accuse(self, message: Message, first: Message) -> None:
        remark = f"the id {_shown(first.id or 0)} is that of {first.method}, which has no answer yet"
        if self._cancelled.get((place_of(first), message.id or 0), 0) > first.seq:
            self.unclear(message, "the first request with this id was cancelled", first.seq)
        elif message.pipe is None and not message.scope.certain:
            self.unclear(message, f"nothing says that this is one client; {remark}", first.seq)
        elif message.pipe is None and not self.life.is_one_process:
            self.unclear(message, f"{self.life.several}; {remark}", first.seq)
        elif not self.life.whole:
            self.unclear(message, f"entries of the log are missing; {remark}", first.seq)
        elif message.scope.kind == "client" and not is_one_connection(message, first):
            self.unclear(message, f"on another connection, where another instance may count; {remark}", first.seq)
        elif message.pipe is None and first.raw == message.raw:
            self.unclear(message, "the same bytes came again before the first request was answered", first.seq)
        else:
            self.fail(message, remark, first.seq)

    def _is_in_flight(self, request: Message, later: Message) -> bool:
        exchange, answer = request.exchange, request.answer
        over = exchange is not None and (exchange.left is not None or (exchange.status or 200) >= 400)
        on_its_way = answer is not None and later.at - answer.at <= self.allowances.token_grace_s
        return request.answered is None and request.dropped is None and not over and not on_its_way


@judges("jsonrpc.response-id")
class JsonrpcResponseId(Predicate):
    """Answers with the id of the question, with its JSON type.

    A late answer has an id that was used. One whose id differs from that of a question in its JSON type only is looked
    at again later, as the question may get its own answer.
    """

    def setup(self) -> None:
        # Answers that are looked at again, and the questions whose id they nearly have.
        self._open: Newest[int, tuple[Message, RequestId, Sent]] = Newest(_MOST)

    def on_answer(self, message: Message) -> None:
        id = members(message.value).get("id")
        if message.question is not None:
            self.ok(message, message.question.seq)
        elif message.session is None or not self.life.whole:
            return
        elif id is None:
            # JSON-RPC 2.0, 5: an error may have no id, as it may answer what could not be read
            if message.rpc == "response":
                self.fail(message, "the answer has no id")
        elif is_id(id) and self.life.dialogue.asked.by_id(message, id) is None:
            twin = self._twin(message, id)
            if twin is None:
                self._accuse(message, id)
            else:
                self._open.store(message.seq, (message, id, twin))
                due = self.now + self.allowances.answer_s
                self.let_cross(due, self._look, message.seq, of=message, also=(twin.seq,))

    def on_gap(self) -> None:
        self._open.clear()

    def _twin(self, message: Message, id: RequestId) -> Sent | None:
        """The question whose id is the same text of the other JSON type."""
        asked = self.life.dialogue.asked
        if isinstance(id, int):
            return asked.by_id(message, str(id))
        return asked.by_id(message, int(id)) if id.isascii() and id.isdigit() and len(id) < _LONGEST else None

    def _look(self, seq: int) -> None:
        if seq in self._open:
            message, id, twin = self._open.pop(seq)
            if not twin.answers:
                self.fail(message, f"the answer to {_shown(twin.id or 0)} has the id {_shown(id)}", twin.seq)

    def _accuse(self, message: Message, id: RequestId) -> None:
        asked = self.life.dialogue.asked
        if asked.is_full:
            self.unclear(message, "more questions were asked than are remembered")
        elif asked.anywhere(id):
            self.warn(message, f"the id {_shown(id)} is that of a question in another session")
        else:
            self.fail(message, f"no question had the id {_shown(id)}")


@judges("jsonrpc.answers-once")
class JsonrpcAnswersOnce(Predicate):
    """Answers each question once.

    The same bytes again are a POST that a transport has repeated. A question can be delivered again to a client that
    resumes a stream, so a second answer is never more than a warning.
    """

    def setup(self) -> None:
        self._first: Newest[int, Message] = Newest(_MOST)

    def on_answer(self, message: Message) -> None:
        question = self.life.dialogue.asked.of(message)
        if question is None:
            return
        first = self._first.get(question.seq)
        if first is None:
            self._first.store(question.seq, message)
            self.ok(message, question.seq)
        elif first.raw == message.raw:
            self.ok(message, question.seq, first.seq)
        else:
            self.warn(message, f"another answer to {question.method}", question.seq, first.seq)
