"""The one fold of the event log: docs/internals/views.md.

    views = Views(run)
    calls = views.take(entry)      once for each entry, in order; returns the entry's tool calls
    views.missed()                 entries are missing here

Pure: no clock, no trio. The same entries give the same views, live, from a file, and in pieces of any size. A view is
found by the ids of the context and by the cause, never by its neighbours in the log. An entry of an unknown kind also
belongs to its exchange and its call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..core.callbacks import nothing
from ..core.cycles import cut
from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from .clients import Client, Connection, Peers, Session
from .evidence import NO_ROLE, ROLES, CallEvidence
from .hosts import Hosts
from .messages import Messages, Refusals, leave
from .retention import Retention
from .values import EVENT_STREAM, Exchange, Message
from .work import Call, Calls, Host, Stream, Task, row_of

_DISCONNECT: Final = "disconnect"

# By one of these a client is known if it ever is. A delivery comes behind a response that may be missing.
_ANSWERING: Final = frozenset({events.HttpResponse, events.HttpClosed, events.MessagesDelivered})

_Taker: TypeAlias = Callable[[Entry, Any, Exchange | None, Call | None], Sequence[Call] | None]


# An entry of an unknown kind changes no view.
_UNKNOWN: Final = (nothing, NO_ROLE)


class Views:
    """The views of one log, whose run is `run`.

    Without `audited` calls have no rows and no evidence.

    `exchanges` and `messages` are found by their numbers; `connections`, `hosts`, `sessions` and `tasks` by the labels
    and ids of the context; `streams` by session and id; `clients` by kind and label. `last` is the number of the entry
    taken last, and `exchange` the exchange of that entry.
    """

    def __init__(self, run: str = "", retention: Retention | None = None, *, audited: bool = True) -> None:
        self.retention = keep = retention or Retention()
        self._run = run
        self._audited = audited
        self.last = 0
        self.exchange: Exchange | None = None
        self.gaps = 0
        self.calls = Calls(keep)
        self._named, self._most_entries = self.calls.named, keep.of_call
        self.exchanges: Newest[int, Exchange] = Newest(keep.exchanges)
        self.tasks: Newest[str, Task] = Newest(keep.tasks)
        # The exchanges by the numbers of their heads: a cause may be such a number.
        self._heads: dict[int, Exchange] = {}
        self.peers = Peers(keep, self._initialized)
        self.connections: Mapping[str, Connection] = self.peers.connections
        self.sessions: Mapping[str, Session] = self.peers.sessions
        self.clients: Mapping[tuple[str, str], Client] = self.peers.clients
        self.refusals = Refusals(keep, self.tasks, self.peers.blamed)
        self._messages = Messages(keep, self.peers, self.refusals.made)
        self.messages: Mapping[int, Message] = self._messages.messages
        self._streams = self._messages.streams
        self.streams: Mapping[tuple[str | None, str], Stream] = self._streams.live
        self.past_streams: Mapping[tuple[str | None, str], Stream] = self._streams.past
        self._evidence = CallEvidence(keep, self._asked_in)
        self._hosts = Hosts(keep)
        self.hosts: Mapping[str, Host] = self._hosts.hosts
        takers: Mapping[type, _Taker] = {
            **self._messages.takers,
            **self._streams.takers,
            **self._hosts.takers,
            **self.peers.takers,
            events.HttpRequest: self._requested,
            events.HttpResponse: self._responded,
            events.HttpClosed: self._closed,
            events.SocketClosed: self._disconnected,
            events.ConnectionClosed: self._disconnected,
            events.CallStarted: self._started,
            events.CallProgressed: self._progressed,
            events.CallCancelled: self._cancelled,
            events.CallSettled: self._settled,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: self._task_removed,
            events.StreamOpened: self._stream_read,
            events.StreamResumed: self._stream_read,
        }
        roles = ROLES if audited else {}
        self._kinds = {kind: (takers.get(kind, nothing), roles.get(kind, NO_ROLE)) for kind in {*takers, *roles}}

    def take(self, entry: Entry) -> Sequence[Call]:
        """Take the next entry; returns its tool calls."""
        # Every entry of the log passes here.
        context, seq = entry.context, entry.seq
        self.last = seq
        number, name, exchange = context.exchange, context.call, None
        if number is not None:
            exchange = self.exchanges.get(number) or self._begin(number, entry)
            if exchange.client is None:
                self._attribute(exchange, entry)
            label = context.session
            if label is not None and label not in exchange.labels:
                exchange.labels = (*exchange.labels, label)[: self.retention.of_exchange]
            entries = exchange.entries
            if len(entries) < self._most_entries:
                entries.append(seq)
            else:
                exchange.cut = True
        self.exchange = exchange
        call = None if name is None else self._named.get(name)
        fact = entry.fact
        taker, role = self._kinds.get(type(fact), _UNKNOWN)
        ended = taker(entry, fact, exchange, call)
        if not self._audited:
            return ()
        if name is not None and call is None:
            # It may have started with this entry.
            call = self._named.get(name)
        owner = call if context.task is None else self._owner(call, context.task)
        if owner is not None and owner.row is not None and not owner.is_forgotten:
            owner.newest = seq
            self._evidence.of_call(owner, entry, exchange, role)
            return (owner,)
        if name is not None and call is None:
            self._evidence.hold(name, seq)
        if ended:
            self._evidence.ended(ended, seq)
        joined = () if exchange is None or role.follows is None else self._evidence.of_exchange(entry, exchange, role)
        return (*ended, *joined) if ended else joined

    def _owner(self, call: Call | None, id: str) -> Call | None:
        if call is not None and call.row is not None:
            return call
        task = self.tasks.get(id)
        return None if task is None else task.call

    def _asked_in(self, cause: int) -> Exchange | None:
        """By the number of its head or of its message."""
        message = self.messages.get(cause)
        if message is not None:
            return message.exchange if message.received else None
        return self._heads.get(cause)

    def missed(self) -> None:
        """Any running call may have lost some of its entries."""
        self.gaps += 1
        self._evidence.missed()

    def forget_before(self, first: int, *, all_over: bool = False) -> None:
        """The log keeps no entry before `first`: let go of views that are over and have no kept entry.

        Calls, tasks, tool hosts, sessions, pipes and clients go only with `all_over`. Without it they outlive their
        entries, as do the rows of refusals and of streams that are over: tables show them.
        To be called about every 100 entries. Views still open stay, within the bounds of `retention`; with `all_over`
        there are `unfinished` of a kind at most, beside those that the log has entries of.
        """
        # A message is found by its exchange, so messages go first.
        # A judge that the log has overtaken has not taken the entry `first` yet.
        most = max(0, self.last - first) + self.retention.unfinished if all_over else None
        self._messages.forget_before(first, most)
        self._streams.forget_before(first, most, all_over=all_over)
        if all_over:
            self.refusals.forget_before(first)
            self._hosts.forget_before(first)
            self._forget_tasks_before(first)
        old = self.exchanges.sweep(lambda each: each.began.seq < first, lambda each: _is_over(each, first), most)
        for exchange in old:
            self._leave_exchange(exchange)
        for call in self.calls.forget_before(first, most) if all_over else ():
            self._let_go(call)
        self.peers.forget_before(first, all_over=all_over)

    def let_go(self) -> None:
        """Let go of everything, as nobody uses the views any more. Called once, at the end."""
        peers, streams = self.peers, self._streams
        cut(*self.messages.values(), *self.exchanges.values(), *self.calls.named.values(), *streams.live.values())
        cut(*peers.sessions.values(), *peers.connections.values(), *peers.clients.values())
        cut(peers, streams, self.refusals, self._messages, self._evidence, self._hosts, self)

    def delivered_by(self, entry: Entry) -> Sequence[Message]:
        """The messages that a socket took with the newest delivery, each for the first time; none for another entry."""
        delivered = self._messages.delivered
        return delivered if delivered and delivered[0].delivered is entry else ()

    def call(self, name: str) -> Call | None:
        """Listed or not."""
        return self.calls.named.get(name)

    # -- clients, exchanges and connections

    def _begin(self, number: int, entry: Entry) -> Exchange:
        exchange = Exchange(number, entry)
        oldest = self.exchanges.store(number, exchange)
        if oldest is not None:
            self._leave_exchange(oldest)
        return exchange

    def _leave_exchange(self, exchange: Exchange) -> None:
        """Its references go with those to it."""
        if exchange.head is not None:
            self._heads.pop(exchange.head.seq, None)
        for call in exchange.calls.values():
            if call.exchange is exchange and call.ended is not None:
                call.exchange = None
        exchange.messages.clear()
        exchange.calls.clear()
        exchange.connection = exchange.client = exchange.session = exchange.stream = None

    def _attribute(self, exchange: Exchange, entry: Entry) -> None:
        """Note the client of an exchange once known, and enter its requests there."""
        client = self.peers.client_of(entry)
        if client is None and type(entry.fact) in _ANSWERING:
            client = self.peers.named("nothing", "", entry)
        if client is not None:
            exchange.client = client
            for message in exchange.messages:
                message.scope = message.scope or client.scope
                self._messages.enter(message)

    def client_of(self, entry: Entry) -> Client | None:
        return self.peers.client_of(entry)

    def _requested(self, entry: Entry, fact: events.HttpRequest, exchange: Exchange | None, call: Any) -> None:
        if exchange is not None:
            if exchange.head is not None:
                self._heads.pop(exchange.head.seq, None)
            exchange.head, exchange.connection = entry, self.peers.place(entry)
            exchange.is_endpoint = fact.path.rstrip("/").endswith("/mcp")
            exchange.session = session = self.peers.session(entry.context) or self.sessions.get(fact.named or "")
            if fact.method == "DELETE" and session is not None and session.asked_to_end is None:
                session.asked_to_end = exchange
            self._heads[entry.seq] = exchange

    def _responded(self, entry: Entry, fact: events.HttpResponse, exchange: Exchange | None, call: Any) -> None:
        if exchange is not None:
            exchange.response = entry
            if fact.content_type == EVENT_STREAM:
                self._streams.responded(entry, exchange)
            if exchange.refusals:
                self.refusals.responded(entry, exchange)

    def _closed(self, entry: Entry, fact: events.HttpClosed, exchange: Exchange | None, call: Any) -> None:
        if exchange is not None:
            exchange.closed = entry
            self._streams.closed(entry, fact)
            if exchange.refusals:
                self.refusals.responded(entry, exchange)

    def _disconnected(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Any) -> Sequence[Call]:
        place = self.peers.place(entry)
        if place is None:
            return ()
        place.closed = entry
        ended = [*place.left, *place.reads.values()]
        place.left.clear()
        return [call for call in dict.fromkeys(ended) if not call.is_forgotten]

    def _initialized(self, session: Session, cause: int | None) -> None:
        asked = None if cause is None else self.messages.get(cause)
        if asked is None:
            return
        before = asked.scope
        if before is not None:
            leave(before, asked)
            before.forgot -= 1
        session.initialize, asked.opened = asked, session
        asked.in_session, asked.scope = session, session.scope
        self._messages.enter(asked)

    # -- tasks

    def _task(self, entry: Entry) -> Task | None:
        id = entry.context.task
        if id is None:
            return None
        task = self.tasks.get(id)
        if task is None:
            task = Task(id, session=self.peers.session(entry.context))
            gone = self.tasks.store(id, task)
            if gone is not None:
                gone.call = gone.session = None
        return task

    def _forget_tasks_before(self, first: int) -> None:
        old = self.tasks.sweep(
            lambda each: not each.changes or each.changes[0].seq < first,
            lambda each: each.removed is not None and each.removed.seq < first,
        )
        for task in old:
            task.call = task.session = None

    def _task_changed(self, entry: Entry, fact: Any, exchange: Any, call: Any) -> None:
        task = self._task(entry)
        if task is not None:
            task.changes.append(entry)
            if len(task.changes) > self.retention.history:
                del task.changes[1]

    def _task_removed(self, entry: Entry, fact: Any, exchange: Any, call: Any) -> None:
        task = self._task(entry)
        if task is not None:
            task.removed = entry

    # -- calls

    def _started(self, entry: Entry, fact: events.CallStarted, exchange: Exchange | None, again: Call | None) -> None:
        name = entry.context.call
        if name is None:
            return
        request = None if entry.cause is None else self.messages.get(entry.cause)
        call = Call(name, entry, row_of(self._run, entry, fact) if self._audited else None, exchange, request)
        if request is not None:
            request.call = call
        session = None if fact.tool is None else self.peers.session(entry.context)
        if session is not None and fact.tool is not None:
            session.acts.called(entry, fact.tool)
            self.peers.used(session)
        if call.row is not None:
            call.task = self._task(entry)
            if call.task is not None:
                call.task.call = call
        own = self._streams.own.get(name) if self._streams.own else None
        if own is not None:
            own.call = call
            self._reads(call, own)
        gone = self.calls.start(call)
        if gone is not None:
            self._let_go(gone)
        if call.row is not None:
            self._evidence.begin(call)

    def _let_go(self, call: Call) -> None:
        self._evidence.forget(call)
        call.is_forgotten = True
        self._unread(call)
        self._hosts.answered(call)
        if call.request is not None and call.request.call is call:
            call.request.call = None
        if call.task is not None and call.task.call is call:
            call.task.call = None
            if call.record is not None:
                call.task.steps = call.record.steps_done, call.record.steps_total
        call.progress.clear()
        call.exchange = call.request = call.task = None

    def _progressed(self, entry: Entry, fact: events.CallProgressed, exchange: Any, call: Call | None) -> None:
        if call is not None and call.row is not None:
            call.row.progressed(fact)

    def _cancelled(self, entry: Entry, fact: events.CallCancelled, exchange: Any, call: Call | None) -> None:
        context = entry.context
        if call is not None and fact.effect:
            call.cancelled = entry
            if call.row is not None:
                call.row.cancelled(fact)
        owner = call if context.task is None else self._owner(call, context.task)
        # A call with a stream of its own is ended by the loss of the stream, not by its connection.
        if owner is None or owner.row is None or fact.by != _DISCONNECT or (call is not None and call.has_stream):
            return
        place = self.peers.place(entry) if context.pipe is not None else None
        if place is not None:
            if place.closed is not None:
                self._evidence.add(owner, place.closed.seq, None, ends=True)
            else:
                place.left.append(owner)

    def _settled(self, entry: Entry, fact: events.CallSettled, exchange: Any, call: Call | None) -> None:
        if call is None:
            return
        call.ended = entry
        self._unread(call)
        if call.request is not None:
            self._streams.settled(call.request, entry, fact)
        if call.row is not None:
            call.row.settled(fact)
            self._evidence.settle(call)
            gone = self.calls.settle(call)
            if gone is not None:
                self._let_go(gone)

    # -- readers of calls' own streams

    def _stream_read(self, entry: Entry, fact: Any, exchange: Exchange | None, call: Call | None) -> None:
        self._streams.takers[type(fact)](entry, fact, exchange, call)
        resumable = type(fact) is events.StreamResumed or fact.purpose == "resumable"
        if call is not None and resumable:
            stream = self._streams.own.get(call.name)
            call.has_stream = True
            if stream is not None:
                self._reads(call, stream)

    def _reads(self, call: Call, stream: Stream) -> None:
        """An HTTP response that reads the own stream of a call is no pipe."""
        call.has_stream = True
        self._unread(call)
        place = None if stream.reading is None else stream.reading.place
        if place is not None and call.ended is None:
            call.reader = place
            place.reads[call.name] = call

    def _unread(self, call: Call) -> None:
        if call.reader is not None:
            call.reader.reads.pop(call.name, None)
            call.reader = None


def _is_over(exchange: Exchange, first: int) -> bool:
    """True if an exchange has no entry from `first` on and will get none."""
    if exchange.messages or exchange.entries[-1] >= first:
        return False
    in_one_piece = exchange.response is not None and not exchange.is_event_stream
    return exchange.head is None or exchange.closed is not None or in_one_piece
