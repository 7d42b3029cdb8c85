"""The evidence of a tool call: the entries of the event log that belong to it.

    1  every entry with the call in its context
    2  the cause of each of these: the request that began the call, those that cancelled it or asked for its task
    3  of each HTTP request that began, continued or asked about the call: its head, its response and its end
    4  the end of a connection: of a pipe that ended the call or read its stream, of a tool host that had to answer it

Causes join an exchange to a call (rule 3), since an answer has the call in its context and the request as its cause. An
exchange that only carries messages of a call, as a GET stream carries the status of a task, is not joined.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from . import events
from .bounded import Newest
from .context import Context
from .log import Entry

Calls: TypeAlias = tuple[str, ...]

# Entries of one call's own: each of a tool's 100 steps, emitted and delivered, many times over.
_MOST_ENTRIES: Final = 2000
# Entries of other exchanges about a call: a client that asks for its task ten times a second must not push out what
# becomes of it. Enough for two hundred questions.
_MOST_VISITING: Final = 1000
# Entries beyond both bounds that tell the end: a call that reported very much has an end, too.
_MOST_ENDS: Final = 100
# Entries of all calls together, about ten megabytes: many times what the event log keeps itself.
_MOST_IN_ALL: Final = 250_000
# Exchanges, and requests by their entry, that a later entry can still name. The oldest is forgotten.
_MOST_NAMED: Final = 20_000
# Entries of rule 3 that one exchange can have, and calls that one exchange can be about: a batch is smaller.
_MOST_OF_EXCHANGE: Final = 100
# Entries of a call that can come before its `call.started`: the opening of its stream and the first message there.
_MOST_EARLY: Final = 10

_ENDS: Final = frozenset(
    {
        *(events.CallCancelled, events.CallSettled, events.TaskRemoved, events.HttpResponse, events.HttpClosed),
        *(events.ConnectionClosed, events.StreamEnded, events.StreamLost),
        *(events.DispatchExpired, events.DispatchSettled, events.DispatchCancelled, events.DispatchStopped),
        events.HostClosed,
    }
)
# Facts of rule 3, where they name no call.
_OF_EXCHANGE: Final = frozenset(
    {
        *(events.HttpRequest, events.HttpResponse, events.HttpClosed, events.MessageRefused, events.ClientMisuse),
        *(events.StreamOpened, events.StreamEnded, events.StreamLost),
    }
)
# The same holds for a request that waits and is no tool call, such as `tasks/result`; it has a call id of its own.
_OF_REQUEST: Final = frozenset({events.CallStarted, events.CallCancelled, events.CallSettled})
# Facts whose own exchange is joined. A message that was received has a call where it answers a question of that call.
_JOINING: Final = frozenset({events.CallStarted, events.StreamResumed, events.HttpResponse, events.MessageReceived})
_REQUESTS: Final = frozenset({events.HttpRequest, events.MessageReceived})
_GONE: Final = "disconnect"


@dataclass(slots=True, eq=False)
class _Known:
    """The evidence of one call.

    `entries` are in the order in which they were found, which does not change for a reader that has read some of them:
    the head of a request is older than the entry that joins it.
    """

    call: str
    exchange: int | None
    task: str | None
    entries: dict[int, None] = field(default_factory=dict)
    visiting: int = 0
    cut: bool = False

    def add(self, seq: int, *, visiting: bool, ends: bool) -> bool:
        """Returns whether there is one entry more."""
        entries = self.entries
        if seq in entries:
            return False
        if len(entries) < _MOST_VISITING:
            # No bound is near, as in nearly all calls.
            entries[seq] = None
            self.visiting += visiting
            return True
        own = len(entries) - self.visiting
        full = self.visiting >= _MOST_VISITING if visiting else own >= _MOST_ENTRIES + (_MOST_ENDS if ends else 0)
        if full:
            self.cut = True
            return False
        self.entries[seq] = None
        self.visiting += visiting
        return True


@dataclass(slots=True, eq=False)
class _Exchange:
    """The entries of rule 3 of one exchange, and the calls that it is about."""

    facts: list[int] = field(default_factory=list)
    calls: dict[str, None] = field(default_factory=dict)


class EvidenceIndex:
    """Fed with every entry in order.

    Remembers `most_calls` calls, and fewer when those have very many entries. The one that settled first makes room; a
    call that runs makes room only where none has settled.
    """

    def __init__(self, most_calls: int) -> None:
        self._calls: OrderedDict[str, _Known] = OrderedDict()
        self._running: dict[str, _Known] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()
        self._most_calls = most_calls
        self._in_all = 0
        self._tasks: dict[str, str] = {}
        self._exchanges: Newest[int, _Exchange] = Newest(_MOST_NAMED)
        # The exchange of each request, by its entry.
        self._requests: Newest[int, int] = Newest(_MOST_NAMED)
        self._early: Newest[str, list[int]] = Newest(_MOST_NAMED)
        # The calls that a disconnect ended, by their pipe, and the entry of its end, whichever comes first.
        self._left: Newest[str, Calls] = Newest(_MOST_NAMED)
        self._pipe_ends: Newest[str, int] = Newest(_MOST_NAMED)
        # The pipe that reads the own stream of a call.
        self._readers: Newest[str, str | None] = Newest(_MOST_NAMED)
        # The connection of the tool host that has still to answer a call.
        self._at_host: Newest[str, str | None] = Newest(_MOST_NAMED)
        self._notes: Mapping[type, Callable[[Entry, Any], Calls]] = {
            events.CallStarted: self._started,
            events.CallCancelled: self._cancelled,
            events.CallSettled: self._call_settled,
            events.StreamOpened: self._read_by,
            events.StreamResumed: self._read_by,
            events.ConnectionClosed: self._pipe_closed,
            events.HostMessage: self._host_message,
            events.DispatchStopped: self._host_stopped,
            events.HostClosed: self._host_closed,
        }

    def of(self, call: str) -> list[int]:
        """The sequence numbers of the entries of a call, in order; empty for one that is not known."""
        return sorted(self.found(call, 0))

    def found(self, call: str, skip: int) -> list[int]:
        """The entries in the order in which they were found, from index `skip` on."""
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

    def take(self, entry: Entry) -> Calls:
        """One more entry; returns the tool calls that it belongs to."""
        context, fact = entry.context, entry.fact
        kind = type(fact)
        if kind in _REQUESTS and context.exchange is not None:
            self._requests.store(entry.seq, context.exchange)
        note = self._notes.get(kind)
        calls = () if note is None else note(entry, fact)
        known = None if context.call is None and context.task is None else self._known(context)
        if known is not None:
            self._own(known, entry)
            return tuple(dict.fromkeys((known.call, *calls))) if calls else (known.call,)
        if context.call is not None:
            self._hold(context.call, entry)
        for call in calls:
            self._add(self._calls[call], entry.seq, ends=True)
        return calls + self._of_exchange(entry)

    def _known(self, context: Context) -> _Known | None:
        """The call of an entry, or the one whose task the entry is about."""
        known = None if context.call is None else self._calls.get(context.call)
        if known is None and context.task is not None:
            known = self._calls.get(self._tasks.get(context.task, ""))
        return known

    def _own(self, known: _Known, entry: Entry) -> None:
        kind, exchange, cause, entries = type(entry.fact), entry.context.exchange, entry.cause, known.entries
        asked_in = None if cause is None else self._requests.get(cause)
        if cause is not None and cause not in entries:
            self._add(known, cause, visiting=asked_in is not None and asked_in != known.exchange)
        if asked_in is not None:
            self._join(known, asked_in)
        if exchange is not None and kind in _JOINING and exchange != asked_in:
            self._join(known, exchange)
        visiting = exchange is not None and exchange != known.exchange
        if entry.seq not in entries:
            self._add(known, entry.seq, visiting=visiting, ends=not visiting and kind in _ENDS)

    def _join(self, known: _Known, exchange: int) -> None:
        joined = self._exchanges.get(exchange) or self._exchange(exchange)
        if known.call not in joined.calls and len(joined.calls) < _MOST_OF_EXCHANGE:
            joined.calls[known.call] = None
            for seq in joined.facts:
                self._add(known, seq, visiting=exchange != known.exchange)

    def _of_exchange(self, entry: Entry) -> Calls:
        number = entry.context.exchange
        if number is None or not _is_of_exchange(entry):
            return ()
        exchange = self._exchanges.get(number) or self._exchange(number)
        if len(exchange.facts) < _MOST_OF_EXCHANGE:
            exchange.facts.append(entry.seq)
        if not exchange.calls:
            return ()
        known = [self._calls[call] for call in exchange.calls if call in self._calls]
        for each in known:
            visiting = number != each.exchange
            self._add(each, entry.seq, visiting=visiting, ends=not visiting and type(entry.fact) in _ENDS)
        return tuple(each.call for each in known)

    def _exchange(self, number: int) -> _Exchange:
        exchange = self._exchanges.get(number)
        if exchange is None:
            exchange = _Exchange()
            self._exchanges.store(number, exchange)
        return exchange

    def _hold(self, call: str, entry: Entry) -> None:
        """Keep an entry of a call that has not started yet."""
        early = self._early.get(call)
        if early is None:
            self._early.store(call, [entry.seq])
        elif len(early) < _MOST_EARLY:
            early.append(entry.seq)

    def _add(self, known: _Known, seq: int, *, visiting: bool = False, ends: bool = False) -> None:
        # The call itself may have made room for another one meanwhile.
        if self._calls.get(known.call) is known and known.add(seq, visiting=visiting, ends=ends):
            self._in_all += 1
            if self._in_all > _MOST_IN_ALL:
                self._forget_one()

    def _forget_one(self) -> None:
        call = next(iter(self._settled or self._calls))
        known = self._calls.pop(call)
        self._settled.pop(call, None)
        self._running.pop(call, None)
        self._in_all -= len(known.entries)
        if known.task is not None:
            self._tasks.pop(known.task, None)

    def _started(self, entry: Entry, fact: events.CallStarted) -> Calls:
        context = entry.context
        if fact.tool is None or context.call is None:
            return ()
        known = _Known(context.call, context.exchange, context.task)
        self._calls[known.call] = self._running[known.call] = known
        if known.task is not None:
            self._tasks[known.task] = known.call
        if len(self._calls) > self._most_calls:
            self._forget_one()
        for seq in self._early.pop(known.call, ()):
            self._add(known, seq)
        return ()

    def _cancelled(self, entry: Entry, fact: events.CallCancelled) -> Calls:
        known, pipe = self._known(entry.context), entry.context.pipe
        # A call with a stream of its own is ended by the loss of the stream, not by its connection.
        gone = fact.by == _GONE and entry.context.call not in self._readers
        if known is not None and pipe is not None and gone:
            self._left.store(pipe, (*self._left.get(pipe, ()), known.call))
            end = self._pipe_ends.get(pipe)
            if end is not None:
                self._add(known, end, ends=True)
        return ()

    def _call_settled(self, entry: Entry, fact: events.CallSettled) -> Calls:
        call = entry.context.call
        if call is not None and call in self._calls:
            self._running.pop(call, None)
            self._settled[call] = None
        return ()

    def _read_by(self, entry: Entry, fact: events.StreamOpened | events.StreamResumed) -> Calls:
        if entry.context.call is not None and (isinstance(fact, events.StreamResumed) or fact.purpose == "resumable"):
            self._readers.store(entry.context.call, entry.context.pipe)
        return ()

    def _pipe_closed(self, entry: Entry, fact: events.ConnectionClosed) -> Calls:
        pipe = entry.context.pipe
        if pipe is None:
            return ()
        self._pipe_ends.store(pipe, entry.seq)
        reading = (call for call in self._running if self._readers.get(call) == pipe)
        ended = (call for call in self._left.pop(pipe, ()) if call in self._calls)
        return tuple(dict.fromkeys((*ended, *reading)))

    def _host_message(self, entry: Entry, fact: events.HostMessage) -> Calls:
        call = entry.context.call
        if call is not None and fact.method == "tool.dispatch":
            self._at_host.store(call, entry.context.connection)
        elif call is not None and fact.rpc in ("response", "error"):
            self._at_host.pop(call, None)
        return ()

    def _host_stopped(self, entry: Entry, fact: events.DispatchStopped) -> Calls:
        if entry.context.call is not None:
            self._at_host.pop(entry.context.call, None)
        return ()

    def _host_closed(self, entry: Entry, fact: events.HostClosed) -> Calls:
        """The calls that the host will not answer any more."""
        connection = entry.context.connection
        waiting = [call for call, at in self._at_host.items() if at == connection]
        for call in waiting:
            del self._at_host[call]
        return tuple(call for call in waiting if call in self._calls)


def _is_of_exchange(entry: Entry) -> bool:
    fact, context = entry.fact, entry.context
    if type(fact) in _OF_EXCHANGE:
        return context.call is None
    if type(fact) in _OF_REQUEST:
        return True
    if context.call is not None:
        return False
    if isinstance(fact, events.MessagesDelivered):
        return context.stream is None
    if isinstance(fact, events.MessageEmitted):
        # The refusal of a whole request.
        return context.stream is None and fact.rpc == "error" and fact.id is None
    return False
