"""Which entries of the event log belong to which tool call: its evidence.

An entry belongs to a call that it names, or that is behind what it names:

    exchange    that brought the call (an own one), or that only came for its sake (a visit): to cancel it, to ask for
                its task, to answer its question, to go on reading its stream
    stream      opened for such an exchange, or, of the draft extension, for the call itself
    position    of a message of the call, on a stream that carries others' messages, too
    connection  that carried the call or read its stream, but of it only the end, where that ended the one or the other;
                of a tool host only the end, where that still had to answer the call
    pair        the request that a message answers, or by which other work began
    task        that the call became

An exchange with a batch may be about several calls. Its head and its end belong to all of them, a message only to its
own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from ..wire.jsonrpc import RequestId
from . import events
from .links import NOBODY, Calls, Drafts, Newest, Pipes, Stream
from .log import Entry

# Entries of one call's own: each of a tool's 100 steps, emitted and delivered, many times over.
_MOST_ENTRIES: Final = 2000
# Beside those, of visits, so that a client that asks for its task ten times a second does not push out what becomes of
# it: two hundred questions.
_MOST_VISITING: Final = 1000
# Beyond both, of what tells the end: a call that reported very much has one, too.
_MOST_ENDS: Final = 100
# Entries of all calls together, about ten megabytes: many times what the event log keeps itself.
_MOST_IN_ALL: Final = 250_000

_ABOUT_TASK: Final = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"})
_ABOUT_STREAM: Final = frozenset({"stream/resume", "stream/poll"})
_ENDS: Final = frozenset(
    {
        *(events.CallCancelled, events.CallSettled, events.TaskRemoved, events.HttpResponse, events.HttpClosed),
        *(events.ConnectionClosed, events.StreamEnded, events.StreamLost),
        *(events.DispatchExpired, events.DispatchSettled, events.DispatchCancelled, events.DispatchStopped),
        events.HostClosed,
    }
)
_OF_DISPATCH: Final = (
    *(events.DispatchSent, events.DispatchExtended, events.DispatchExpired, events.DispatchSettled),
    *(events.DispatchCancelled, events.DispatchLate),
)
# Who ends a call whose connection is gone.
_GONE: Final = "disconnect"

# A session or, where one carries all messages, the connection; and the id, which there names one request.
_Request: TypeAlias = tuple[str | None, RequestId]


@dataclass(slots=True, eq=False)
class _Known:
    """What is known of a call, and under what it is found.

    `entries` are in the order in which they were found to belong to it, which for whoever has read some of them is the
    only one that does not change: the head of a visit is older than what shows its subject. `connection` carries the
    call, or reads its stream, if it has one of its own (`draft`).
    """

    call: str
    exchange: int
    requests: list[_Request]
    task: str | None
    connection: str | None
    draft: bool = False
    entries: dict[int, None] = field(default_factory=dict)
    visiting: int = 0
    cut: bool = False

    def add(self, seq: int, *, visiting: bool, ends: bool) -> bool:
        """Returns whether there is one entry more."""
        if seq in self.entries:
            return False
        own = len(self.entries) - self.visiting
        full = self.visiting >= _MOST_VISITING if visiting else own >= _MOST_ENTRIES + (_MOST_ENDS if ends else 0)
        if full:
            self.cut = True
            return False
        self.entries[seq] = None
        self.visiting += visiting
        return True


class Evidence:
    """Fed with every entry in order.

    Remembers `most_calls` calls, and fewer when those have very many entries. The one that settled first makes room;
    one that runs only where none has settled.
    """

    def __init__(self, most_calls: int) -> None:
        self._calls: OrderedDict[str, _Known] = OrderedDict()
        # Each call is in one of these: it runs, or it may make room.
        self._running: dict[str, _Known] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()
        self._most_calls = most_calls
        self._in_all = 0
        # As long as the call that they stand for.
        self._own: dict[int, Calls] = {}
        self._tasks: dict[str, str] = {}
        self._requests: dict[_Request, str] = {}
        # The beginning of an exchange, until it shows what it is about.
        self._heads: Newest[int, int] = Newest()
        self._visits: Newest[int, Calls] = Newest()
        # Of an exchange with a batch: where its stream was opened, which all its calls share.
        self._batches: Newest[int, int | None] = Newest()
        self._streams: Newest[Stream, int] = Newest()
        self._positions: Newest[tuple[str | None, str | None, int | None], Calls] = Newest()
        self._drafts = Drafts()
        self._pipes = Pipes()
        # By the entry of a request that is no `tools/call`: whose sake it is for.
        self._asked: Newest[int | None, Calls] = Newest()
        # The connection of a tool host that has still to answer a call.
        self._at_host: Newest[str, str] = Newest()
        # Other work that runs for their sake: a `tasks/result` that waits.
        self._helpers: Newest[str, Calls] = Newest()
        self._owners: Mapping[type, Callable[[Entry, Any], Calls]] = {
            events.HttpRequest: self._head,
            events.HttpResponse: self._response,
            events.HttpClosed: self._closed,
            events.ConnectionOpened: self._pipe_opened,
            events.ConnectionClosed: self._pipe_closed,
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.MessageDropped: self._named,
            events.MessagesDelivered: self._delivered,
            events.CallStarted: self._started,
            events.CallProgressed: self._named,
            events.CallCancelled: self._cancelled,
            events.CallSettled: self._call_settled,
            **dict.fromkeys(_OF_DISPATCH, self._of_call),
            events.DispatchStopped: self._host_stopped,
            events.HostMessage: self._of_host,
            events.HostClosed: self._host_closed,
            events.TaskChanged: self._of_task,
            events.TaskRemoved: self._of_task,
            events.StreamOpened: self._stream_opened,
            events.StreamResumed: self._stream_resumed,
            events.StreamEnded: self._of_stream,
            events.StreamLost: self._of_stream,
            events.ClientMisuse: self._misused,
        }

    def of(self, call: str) -> list[int]:
        """The sequence numbers of the entries of a call, in order; empty for one that is not known."""
        return sorted(self.found(call, 0))

    def found(self, call: str, skip: int) -> list[int]:
        """The same as they were found, without the first `skip`: what a reader lacks that has those."""
        known = self._calls.get(call)
        return [] if known is None else list(islice(known.entries, skip, None))

    def complete(self, call: str) -> bool:
        """Whether those are all there were; of a call with very many, only the first are remembered."""
        known = self._calls.get(call)
        return known is not None and not known.cut

    def missed(self) -> None:
        """Entries are missing here: any call that runs may have lost some of its own, its end among them."""
        for call, known in self._running.items():
            known.cut = True
            # Or else calls whose end was missed would fill the place for ever.
            self._settled[call] = None
        self._running.clear()

    def call_of_task(self, task: str) -> str | None:
        """The call that became a task."""
        return self._tasks.get(task)

    def take(self, entry: Entry) -> Calls:
        """The tool calls that an entry belongs to."""
        event = entry.event
        owners = self._owners.get(type(event))
        calls = NOBODY if owners is None else owners(entry, event)
        for call in calls:
            known = self._calls.get(call)
            if known is not None:
                visiting = not self._is_own(known, event)
                self._add(known, entry.seq, visiting=visiting, ends=not visiting and type(event) in _ENDS)
        return calls

    def _is_own(self, known: _Known, event: Any) -> bool:
        """Whether an entry is of what the call itself did, and not of a visit."""
        exchange = getattr(event, "exchange", None)
        if type(event) in (events.ConnectionClosed, events.HostClosed):
            return True
        if exchange in self._pipes.labels or type(event) in (events.StreamEnded, events.StreamLost):
            # What a connection delivers of a stream that was opened for no request is its own, too.
            exchange = self._streams.get((event.session, event.stream), known.exchange)
        if exchange is not None:
            return bool(exchange == known.exchange)
        call, task = getattr(event, "call", None), getattr(event, "task", None)
        return call == known.call or (task is not None and task == known.task and call is None)

    def _add(self, known: _Known, seq: int | None, *, visiting: bool = False, ends: bool = False) -> None:
        if seq is None or not known.add(seq, visiting=visiting, ends=ends):
            return
        self._in_all += 1
        if self._in_all > _MOST_IN_ALL:
            self._forget_one()

    def _forget_one(self) -> None:
        call = next(iter(self._settled or self._calls))
        known = self._calls.pop(call)
        self._settled.pop(call, None)
        self._running.pop(call, None)
        self._in_all -= len(known.entries)
        others = tuple(other for other in self._own.pop(known.exchange, NOBODY) if other != call)
        if others:
            self._own[known.exchange] = others
        if known.task is not None:
            self._tasks.pop(known.task, None)
        for request in known.requests:
            if self._requests.get(request) == call:
                del self._requests[request]

    def _head(self, entry: Entry, event: events.HttpRequest) -> Calls:
        self._heads.link(event.exchange, entry.seq)
        return NOBODY

    def _received(self, entry: Entry, event: events.MessageReceived) -> Calls:
        if event.batch is not None and event.exchange not in self._batches:
            self._batches.link(event.exchange, None)
        if event.connection is not None:
            self._pipes.carried.link(event.exchange, event.connection)
        calls = self._subject(entry, event)
        if calls:
            self._visit(event.exchange, calls)
            self._asked.link(entry.seq, calls)
        return calls

    def _subject(self, entry: Entry, event: events.MessageReceived) -> Calls:
        """Whose sake a message is for that another exchange than the call's own brought."""
        if event.method is None:
            return self._asked.get(entry.pair, NOBODY)
        if event.about is None:
            return NOBODY
        if event.method in _ABOUT_TASK:
            call = self._tasks.get(event.about) if isinstance(event.about, str) else None
        elif event.method in _ABOUT_STREAM:
            return self._drafts.named(event.about)
        else:
            # Only there an id names one request. Used again, it stands for the newest.
            scope = event.connection or (event.session if events.is_session(event.session) else None)
            call = None if scope is None else self._requests.get((scope, event.about))
        return NOBODY if call is None else (call,)

    def _visit(self, exchange: int, calls: Calls) -> None:
        before = self._visits.get(exchange, NOBODY)
        self._visits.link(exchange, tuple(dict.fromkeys(before + calls)))
        for call in calls:
            known = self._calls.get(call)
            if known is not None:
                self._add(known, self._heads.get(exchange), visiting=True)

    def _started(self, entry: Entry, event: events.CallStarted) -> Calls:
        if event.tool is None:
            calls = self._asked.get(entry.pair, NOBODY)
            if calls:
                self._helpers.link(event.call, calls)
            return calls
        call, exchange = event.call, event.exchange
        connection = self._pipes.of(exchange)
        known = self._calls[call] = self._running[call] = _Known(call, exchange, [], event.task, connection)
        self._own[exchange] = (*self._own.get(exchange, NOBODY), call)
        self._ask(known, connection or event.session, event.request_id)
        if event.task is not None:
            self._tasks[event.task] = call
        if len(self._calls) > self._most_calls:
            self._forget_one()
        for seq in (self._heads.get(exchange), entry.pair, self._batches.get(exchange)):
            self._add(known, seq)
        if exchange not in self._batches:
            self._claim(self._drafts.of_exchange.get(exchange), known)
        return (call,)

    def _ask(self, known: _Known, scope: str | None, id: RequestId) -> None:
        known.requests.append((scope, id))
        self._requests[scope, id] = known.call

    def _claim(self, stream: Stream | None, known: _Known | None) -> None:
        """A stream of the draft extension is this call's, with all that is held of it."""
        if stream is not None and known is not None and self._drafts.is_open(stream):
            known.draft = True
            for seq in self._drafts.claim(stream, (known.call,)):
                self._add(known, seq)

    def _cancelled(self, entry: Entry, event: events.CallCancelled) -> Calls:
        calls = self._named(entry, event)
        for known in filter(None, map(self._calls.get, calls)):
            # One with a stream of its own is not ended by its connection, but by the loss of the stream.
            if event.by == _GONE and known.connection is not None and not known.draft:
                self._pipes.left.link(known.connection, (*self._pipes.left.get(known.connection, NOBODY), known.call))
                self._add(known, self._pipes.ends.get(known.connection), ends=True)
        return calls

    def _call_settled(self, entry: Entry, event: events.CallSettled) -> Calls:
        if event.call in self._calls:
            self._running.pop(event.call, None)
            self._settled[event.call] = None
        return self._named(entry, event)

    def _named(self, entry: Entry, event: Any) -> Calls:
        call = event.call
        if call is None:
            return self._of_task(entry, event)
        return (call,) if call in self._calls else self._helpers.get(call) or self._of_task(entry, event)

    def _of_task(self, entry: Entry, event: Any) -> Calls:
        call = self._tasks.get(event.task)
        return NOBODY if call is None else (call,)

    def _of_exchange(self, exchange: int | None) -> Calls:
        if exchange is None:
            return NOBODY
        own, visited = self._own.get(exchange, NOBODY), self._visits.get(exchange)
        return own if visited is None else tuple(dict.fromkeys(own + visited))

    def _emitted(self, entry: Entry, event: events.MessageEmitted) -> Calls:
        calls = self._named(entry, event) or self._asked.get(entry.pair, NOBODY)
        stream = event.session, event.stream
        if self._drafts.has(stream):
            calls = self._of_draft(entry, stream, calls)
            if event.method == "notifications/stream/create":
                self._drafts.name(events.announced(event.message), stream)
        if not calls and event.rpc == "error" and event.id is None:
            # The refusal of a whole request.
            calls = self._of_exchange(event.exchange)
        if calls:
            if event.rpc == "request":
                self._asked.link(entry.seq, calls)
            if event.stream is not None and self._alone(self._streams.get(stream)) != calls:
                self._positions.link((*stream, event.position), calls)
        return calls

    def _of_draft(self, entry: Entry, stream: Stream, calls: Calls) -> Calls:
        """Whose a message is that is on a stream of the draft extension; held until that is known."""
        if len(calls) == 1:
            self._claim(stream, self._calls.get(calls[0]))
        return calls or self._drafts.take(stream, entry.seq)

    def _delivered(self, entry: Entry, event: events.MessagesDelivered) -> Calls:
        if event.stream is None:
            return self._of_exchange(event.exchange)
        stream = event.session, event.stream
        if self._drafts.has(stream):
            return self._drafts.take(stream, entry.seq)
        calls = self._alone(self._streams.get(stream))
        if calls:
            return calls
        places = range(event.first, event.last + 1)
        found = (self._positions.get((*stream, place), NOBODY) for place in places)
        return tuple(dict.fromkeys(call for each in found for call in each))

    def _alone(self, exchange: int | None) -> Calls:
        """The one call that all messages of an exchange's response belong to, if there is one."""
        calls = self._of_exchange(exchange)
        return calls if len(calls) == 1 and exchange not in self._batches else NOBODY

    def _of_stream(self, entry: Entry, event: Any) -> Calls:
        stream = event.session, event.stream
        if self._drafts.has(stream):
            return self._drafts.take(stream, entry.seq)
        return self._of_exchange(self._streams.get(stream))

    def _response(self, entry: Entry, event: events.HttpResponse) -> Calls:
        if event.stream is not None:
            calls = self._of_stream(entry, event)
            if calls and calls != self._of_exchange(event.exchange):
                self._visit(event.exchange, calls)
        self._heads.pop(event.exchange, None)
        return self._of_exchange(event.exchange)

    def _closed(self, entry: Entry, event: events.HttpClosed) -> Calls:
        self._heads.pop(event.exchange, None)
        return self._of_exchange(event.exchange)

    def _of_call(self, entry: Entry, event: Any) -> Calls:
        return (event.call,) if event.call in self._calls else NOBODY

    def _of_host(self, entry: Entry, event: events.HostMessage) -> Calls:
        if event.call is not None:
            if event.method == "tool.dispatch":
                self._at_host.link(event.call, event.connection)
            elif event.rpc in ("response", "error"):
                self._at_host.pop(event.call, None)
        return self._of_call(entry, event)

    def _host_stopped(self, entry: Entry, event: events.DispatchStopped) -> Calls:
        self._at_host.pop(event.call, None)
        return self._of_call(entry, event)

    def _host_closed(self, entry: Entry, event: events.HostClosed) -> Calls:
        """Whoever waits for its answer waits in vain."""
        calls = [call for call, connection in self._at_host.items() if connection == event.connection]
        for call in calls:
            del self._at_host[call]
        return tuple(call for call in calls if call in self._calls)

    def _misused(self, entry: Entry, event: events.ClientMisuse) -> Calls:
        return self._of_exchange(event.exchange)

    def _stream_opened(self, entry: Entry, event: events.StreamOpened) -> Calls:
        if event.exchange is None:
            return NOBODY
        stream = event.session, event.stream
        self._streams.link(stream, event.exchange)
        if event.purpose == "resumable":
            self._drafts.open(stream, event.exchange)
            return self._of_draft(entry, stream, self._alone(event.exchange))
        if event.exchange in self._batches:
            self._batches.link(event.exchange, entry.seq)
        return self._of_exchange(event.exchange)

    def _stream_resumed(self, entry: Entry, event: events.StreamResumed) -> Calls:
        calls = self._of_stream(entry, event)
        connection = self._pipes.of(event.exchange)
        if event.exchange not in self._pipes.labels:
            self._visit(event.exchange, calls)
        for known in filter(None, map(self._calls.get, calls)):
            known.connection = connection
            if connection is not None and (connection, known.requests[0][1]) not in known.requests:
                # The call can be cancelled there from now on.
                self._ask(known, connection, known.requests[0][1])
        return calls

    def _pipe_opened(self, entry: Entry, event: events.ConnectionOpened) -> Calls:
        self._pipes.labels.link(event.exchange, event.connection)
        return NOBODY

    def _pipe_closed(self, entry: Entry, event: events.ConnectionClosed) -> Calls:
        connection = event.connection
        self._pipes.ends.link(connection, entry.seq)
        left = self._pipes.left.pop(connection, NOBODY)
        away = (call for call, known in self._running.items() if known.draft and known.connection == connection)
        return tuple(dict.fromkeys((*left, *away)))
