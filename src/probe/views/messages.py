"""Messages of both sides, and refusals: errors in answer to wrong requests of a client.

An error counts as a refusal by its JSON-RPC code (`CLIENT_CODES`). Two errors with such a code have another cause and
do not count: one under the HTTP status of a limit, such as 429, and the tool's own error from `tasks/result` of a
failed task. The log has the status of an HTTP response after the error in its body, so an error waits for the head of
its response.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import structs
from pydantic_core import from_json

from ..log import events
from ..log.bounded import SWEPT, Newest
from ..log.event_log import Entry
from ..wire.errors import CLIENT_CODES, Refusal
from ..wire.jsonrpc import clip
from .clients import Acts, Peers, Scope
from .records import ANSWERS
from .retention import Contents, Retention, members
from .rows import RefusalRow
from .streams import Streams
from .values import Exchange, Message, MessageFact
from .work import Call, Stream, Task

_CANCELLED: Final = "notifications/cancelled"
_INITIALIZED: Final = "notifications/initialized"
_PROGRESS: Final = "notifications/progress"


class Messages:
    """The messages of both sides: `messages` by the numbers of their entries, `streams` carry them.

    `delivered` are those that a socket took with the newest delivery, each for the first time.
    `failed` is called with each error response of the server.
    """

    def __init__(self, retention: Retention, peers: Peers, failed: Callable[[Message], None]) -> None:
        self._keep = retention
        self._peers = peers
        self._failed = failed
        self.messages: dict[int, Message] = {}
        self.delivered: list[Message] = []
        self.streams = Streams(retention, peers, self.messages)
        # All messages in the order of the log, except old open ones. The first `_light` of them have no content any
        # more.
        self._kept: deque[Message] = deque()
        self._light = self._bytes = 0
        self._most, self._most_bytes = retention.messages, retention.content_bytes
        self._most_of_exchange = retention.of_exchange
        self._parsed = Contents(retention.parsed_bytes)
        self.takers: Mapping[type, Callable[[Entry, Any, Exchange | None, Call | None], None]] = {
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.MessageDropped: self._dropped,
            events.MessagesDelivered: self._delivered,
            events.MessageRefused: self._refused,
            events.RequestRepeated: self._repeated,
            events.MessageUnreadable: self._unreadable,
        }

    # -- what is kept

    def _store(self, message: Message, fact: MessageFact) -> None:
        self.messages[message.entry.seq] = message
        self._kept.append(message)
        self._bytes += len(fact.message)
        if self._bytes > self._most_bytes or len(self._kept) > self._most:
            self._make_room()
        exchange, place = message.exchange, message.place
        if exchange is not None and len(exchange.messages) < self._most_of_exchange:
            exchange.messages.append(message)
        if place is not None and place.scope is not None and len(place.messages) < self._keep.of_pipe:
            place.messages.append(message.entry.seq)

    def _make_room(self) -> None:
        kept = self._kept
        if len(kept) > self._most:
            self._drop_oldest()
        # The newest one keeps its content, however large it is.
        while self._bytes > self._most_bytes and self._light < len(kept) - 1:
            self._bytes -= kept[self._light].forget()
            self._light += 1

    def _drop_oldest(self) -> None:
        self._light = max(0, self._light - 1)
        self._let_go(self._kept.popleft())

    def forget_before(self, first: int, most: int | None) -> None:
        """Let go of messages before the entry `first` that are over; beyond `most` messages, of the others, too."""
        kept = self._kept
        for _ in range(min(len(kept), SWEPT)):
            # Most requests have their answer before `first`, too; the others go to the end.
            if kept[0].entry.seq >= first - SWEPT:
                break
            if _is_over(kept[0], first) or (most is not None and len(kept) > most):
                self._drop_oldest()
            else:
                self._light = max(0, self._light - 1)
                kept.append(kept.popleft())

    def _let_go(self, message: Message) -> None:
        """Cycles would wait for the garbage collector."""
        exchange, stream, scope, call = message.exchange, message.stream, message.scope, message.call
        if self.messages.get(message.entry.seq) is message:
            del self.messages[message.entry.seq]
        if exchange is not None and message in exchange.messages:
            exchange.messages.remove(message)
        if call is not None:
            if call.progress and call.progress[0] is message:
                del call.progress[0]
            if call.request is message:
                call.request = None
        position = getattr(message.fact, "position", None)
        if stream is not None and position is not None and stream.sent.get(position) is message:
            del stream.sent[position]
        if scope is not None and message.received:
            leave(scope, message)
        self._bytes -= message.forget(whole=True)
        message.replies = None
        message.place = message.pipe = message.exchange = message.session = message.opened = message.call = None
        message.stream = message.resumed = message.scope = message.in_session = None
        message.same_id = None
        message.request = message.answer = message.asked_to_cancel = message.question = None

    def enter(self, message: Message) -> None:
        """Enter a request into the scope of its id, once that is known."""
        seq, fact = message.entry.seq, message.fact
        scope = message.scope if fact.rpc == "request" else None
        if scope is None or seq in scope.requests:
            return
        scope.requests[seq] = scope.running[seq] = message
        id = fact.id
        if id is not None:
            message.same_id = scope.ids.get(id)
            scope.ids[id] = message

    # -- messages

    def _received(
        self, entry: Entry, fact: events.MessageReceived, exchange: Exchange | None, call: Call | None
    ) -> None:
        message = self._made(entry, True, fact, exchange, fact.batch, fact.hidden)
        place, session = message.place, message.session
        question = None if entry.cause is None else self.messages.get(entry.cause)
        if question is not None and not question.received:
            message.question = question
            question.replies = [*(question.replies or ()), message][-self._keep.of_exchange :]
        self._store(message, fact)
        if place is not None and place.first is None and place.scope is not None:
            place.first = message
        if session is not None:
            session.acts.received(entry, fact)
            self._peers.used(session)
        if fact.rpc == "request":
            self.enter(message)
        elif fact.method == _CANCELLED:
            scope = message.scope
            named = None if scope is None or fact.about is None else scope.ids.get(fact.about)
            if named is not None and named.asked_to_cancel is None:
                named.asked_to_cancel = message
        elif fact.method == _INITIALIZED and session is not None and session.initialized is None:
            session.initialized = message

    def _made(
        self,
        entry: Entry,
        received: bool,
        fact: MessageFact,
        exchange: Exchange | None,
        batch: int | None,
        hidden: tuple[tuple[str, str], ...],
        request: Message | None = None,
        call: Call | None = None,
        stream: Stream | None = None,
    ) -> Message:
        place, session = self._peers.place(entry), self._peers.session(entry.context)
        pipe = place if place is not None and place.scope is not None else None
        client = None if exchange is None else exchange.client
        scope = None if client is None else client.scope
        in_session = None
        if session is not None and session.is_legacy:
            scope, in_session = session.scope, session
        elif pipe is not None:
            scope, in_session = pipe.scope, pipe.session
        # All at once: to set an attribute later takes as long as four here.
        return Message(
            entry,
            received,
            entry.seq,
            entry.mono,
            fact.rpc,
            fact.method,
            fact.id,
            place,
            exchange,
            session,
            pipe,
            scope,
            in_session,
            batch,
            hidden,
            request,
            call,
            stream,
            contents=self._parsed,
        )

    def _sent(
        self,
        entry: Entry,
        fact: MessageFact,
        exchange: Exchange | None,
        call: Call | None,
        hidden: tuple[tuple[str, str], ...] = (),
    ) -> Message:
        asked = None if entry.cause is None else self.messages.get(entry.cause)
        if (asked is None or not asked.received) and call is not None:
            asked = call.request
        return self._made(entry, False, fact, exchange, None, hidden, asked, call, self.streams.find(entry.context))

    def _emitted(self, entry: Entry, fact: events.MessageEmitted, exchange: Exchange | None, call: Call | None) -> None:
        message = self._sent(entry, fact, exchange, call, fact.hidden)
        request, stream = message.request, message.stream
        if request is not None and fact.rpc in ANSWERS and entry.cause == request.entry.seq:
            request.answer = message
        if stream is not None:
            stream.made, stream.newest = stream.made + 1, entry.seq
            if fact.position is not None:
                stream.sent[fact.position] = message
                gone = fact.position - self._keep.of_stream
                if gone in stream.sent:
                    del stream.sent[gone]
        if call is not None:
            if call.row is not None:
                call.row.emitted(entry.cause, fact, lost=stream is not None and stream.lost is not None)
            if fact.method == _PROGRESS:
                call.reports += 1
                if len(call.progress) < self._keep.of_call:
                    call.progress.append(message)
        self._store(message, fact)
        if fact.rpc == "error":
            self._failed(message)

    def _dropped(self, entry: Entry, fact: events.MessageDropped, exchange: Exchange | None, call: Call | None) -> None:
        message = self._sent(entry, fact, exchange, call)
        if call is not None and call.row is not None:
            call.row.dropped(entry.cause, fact)
        self._store(message, fact)

    def _delivered(
        self, entry: Entry, fact: events.MessagesDelivered, exchange: Exchange | None, call: Call | None
    ) -> None:
        self.delivered = []
        stream = self.streams.find(entry.context)
        if stream is None:
            if entry.cause is not None:
                self._had(entry, self.messages.get(entry.cause))
            return
        first, last, sent, before = fact.first, fact.last, stream.sent, stream.taken
        self.streams.delivered(stream, entry, fact, exchange)
        if first == last:
            self._had(entry, sent.get(first))
            return
        # A stream keeps only its newest messages, however wide the range is.
        places = range(first, last + 1) if last - first < len(sent) else [at for at in sent if first <= at <= last]
        for place in places:
            self._had(entry, sent.get(place))
        older = min(last + 1, next(iter(sent), 0)) - max(first, before + 1)
        if older > 0 and call is not None and call.row is not None:
            call.row.took(older)

    def _had(self, entry: Entry, message: Message | None) -> None:
        """Another reader may take a message again."""
        if message is None or message.delivered is not None:
            return
        message.delivered = entry
        self.delivered.append(message)
        call, fact = message.call, message.entry.fact
        if call is not None and call.row is not None and type(fact) is events.MessageEmitted:
            call.row.delivered(message.entry.cause, fact)
        request = message.request
        if request is None or request.answer is not message:
            return
        if request.opened is not None:
            request.opened.answered = entry
        scope, seq = request.scope, request.entry.seq
        if scope is not None and scope.running.pop(seq, None) is not None:
            scope.answered[seq] = request

    def _refused(self, entry: Entry, fact: events.MessageRefused, exchange: Exchange | None, call: Call | None) -> None:
        message = None if entry.cause is None else self.messages.get(entry.cause)
        if message is not None:
            message.refused = entry

    def _repeated(
        self, entry: Entry, fact: events.RequestRepeated, exchange: Exchange | None, call: Call | None
    ) -> None:
        message = None if entry.cause is None else self.messages.get(entry.cause)
        if message is not None:
            message.repeated = entry

    def _unreadable(
        self, entry: Entry, fact: events.MessageUnreadable, exchange: Exchange | None, call: Call | None
    ) -> None:
        if exchange is not None:
            exchange.unreadable = entry


def _is_over(message: Message, first: int) -> bool:
    """True if a message has its final state, and no entry from `first` on is about it."""
    call, exchange, place = message.call, message.exchange, message.place
    if call is not None and not _was_before(call.ended, first):
        return False
    if place is not None and _was_before(place.closed, first):
        return True
    if message.received:
        answer = message.answer
        is_closed = exchange is not None and _was_before(exchange.closed, first)
        return message.rpc != "request" or is_closed or (answer is not None and _was_before(answer.delivered, first))
    stream = message.stream
    return stream is None or _was_before(message.delivered, first) or _was_before(stream.lost, first)


def _was_before(entry: Entry | None, first: int) -> bool:
    return entry is not None and entry.seq < first


def leave(scope: Scope, message: Message) -> None:
    """Take a request out of its scope."""
    if scope.requests.pop(message.seq, None) is None:
        return
    scope.forgot += 1
    scope.running.pop(message.seq, None)
    scope.answered.pop(message.seq, None)
    if message.id is not None and scope.ids.get(message.id) is message:
        del scope.ids[message.id]


# Statuses of refusals caused by a setting of this server; their codes name another cause.
_LIMITS: Final = frozenset(
    refusal.status for refusal in (Refusal.REQUEST_TIMEOUT, Refusal.BODY_TOO_LARGE, Refusal.EVENTS_GONE)
)
# Characters of an error's message that a line of a page shows.
_LONGEST: Final = 300


class Refusals:
    """The newest refusals: `rows` by id, each with the number of the entry that completed it.

    `blamed` finds the counts of the client of a session, at a time and with an entry.
    """

    def __init__(
        self,
        retention: Retention,
        tasks: Mapping[str, Task],
        blamed: Callable[[str | None, float, int], Acts],
    ) -> None:
        self._most_waiting = retention.of_exchange
        self._tasks = tasks
        self._blamed = blamed
        self.rows: Newest[str, tuple[RefusalRow, int]] = Newest(retention.rows)

    def made(self, message: Message) -> None:
        """An error counts now, or with the head of its response."""
        row, exchange = self._row(message), message.exchange
        if row is None:
            return
        if exchange is None or exchange.head is None or exchange.response is not None or exchange.closed is not None:
            self._count(row, message.seq)
        elif len(exchange.refusals) < self._most_waiting:
            exchange.refusals = (*exchange.refusals, row)

    def forget_before(self, first: int) -> None:
        """Let go of the rows that entries before `first` completed."""
        self.rows.sweep(lambda row: row[1] < first, lambda row: True)

    def responded(self, entry: Entry, exchange: Exchange) -> None:
        """Count the errors waiting for the response of an exchange, or for its end without one."""
        waiting, exchange.refusals = exchange.refusals, ()
        status = exchange.status
        if status not in _LIMITS:
            for row in waiting:
                self._count(structs.replace(row, status=status), entry.seq)

    def _count(self, row: RefusalRow, seq: int) -> None:
        self.rows.store(row.id, (row, seq))
        self._blamed(row.session, row.at, seq).refused += 1

    def _row(self, message: Message) -> RefusalRow | None:
        error, asked = members(members(from_json(message.raw)).get("error")), message.request
        asked = asked if asked is not None and asked.rpc == "request" and asked.seq == message.entry.cause else None
        code = error.get("code")
        if code not in CLIENT_CODES or (asked is not None and self._gives_failure(asked)):
            return None
        context, text = message.entry.context, clip(str(error.get("message")), _LONGEST)
        method = None if asked is None else asked.method
        return RefusalRow(
            str(message.seq), message.entry.at, context.session, context.exchange, method, None, code, text
        )

    def _gives_failure(self, asked: Message) -> bool:
        """True if a request asks for the result of a task that has failed."""
        fact: Any = asked.fact
        if asked.method != "tasks/result" or not isinstance(fact, events.MessageReceived):
            return False
        task = self._tasks.get(fact.about) if isinstance(fact.about, str) else None
        return task is not None and task.status == "failed" and task.removed is None
