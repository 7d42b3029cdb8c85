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
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from msgspec import Struct, field

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

_GONE: Final = "disconnect"

_Follows: TypeAlias = Callable[[Context, Any], bool]


def _always(context: Context, fact: Any) -> bool:
    return True


def _without_call(context: Context, fact: Any) -> bool:
    return context.call is None


def _in_one_piece(context: Context, fact: Any) -> bool:
    return context.call is None and context.stream is None


def _refuses_all(context: Context, fact: events.MessageEmitted) -> bool:
    """Whether this message refuses a whole request."""
    return context.call is None and context.stream is None and fact.rpc == "error" and fact.id is None


class _Role(NamedTuple):
    """The part that the facts of a class have in the rules above.

    `joins`: where such an entry belongs to a call, its exchange belongs to that call as well. `ends`: it tells of an
    end. `follows` tells whether an entry that belongs to no call belongs to its exchange (rule 3), None where none
    does.
    """

    joins: bool = False
    ends: bool = False
    follows: _Follows | None = None


_NO_ROLE: Final = _Role()
_ROLES: Final[Mapping[type, _Role]] = {
    events.HttpRequest: _Role(follows=_without_call),
    # One that was received has a call where it answers a question of that call.
    events.MessageReceived: _Role(joins=True),
    events.HttpResponse: _Role(joins=True, ends=True, follows=_without_call),
    events.HttpClosed: _Role(ends=True, follows=_without_call),
    events.MessageRefused: _Role(follows=_without_call),
    events.ClientMisuse: _Role(follows=_without_call),
    events.MessageEmitted: _Role(follows=_refuses_all),
    events.MessagesDelivered: _Role(follows=_in_one_piece),
    events.StreamOpened: _Role(follows=_without_call),
    events.StreamResumed: _Role(joins=True),
    events.StreamEnded: _Role(ends=True, follows=_without_call),
    events.StreamLost: _Role(ends=True, follows=_without_call),
    # A request that waits and is no tool call, such as `tasks/result`, has a call id of its own.
    events.CallStarted: _Role(joins=True, follows=_always),
    events.CallCancelled: _Role(ends=True, follows=_always),
    events.CallSettled: _Role(ends=True, follows=_always),
    **dict.fromkeys((events.TaskRemoved, events.ConnectionClosed, events.HostClosed), _Role(ends=True)),
    **dict.fromkeys((events.DispatchExpired, events.DispatchSettled), _Role(ends=True)),
    **dict.fromkeys((events.DispatchCancelled, events.DispatchStopped), _Role(ends=True)),
}


class _Known(Struct, eq=False):
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

    def has_room(self, visiting: bool, ends: bool) -> bool:
        """Whether its bounds leave a place for one entry more."""
        if visiting:
            return self.visiting < _MOST_VISITING
        return len(self.entries) - self.visiting < _MOST_ENTRIES + (_MOST_ENDS if ends else 0)


class _Exchange(Struct, eq=False):
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
        notes: Mapping[type, Callable[[Entry, Any], Calls]] = {
            events.HttpRequest: self._asked,
            events.MessageReceived: self._asked,
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
        self._roles = {kind: (*_ROLES.get(kind, _NO_ROLE), notes.get(kind)) for kind in get_args(events.Event)}

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
        # Every entry of the log passes here.
        if self._in_all > _MOST_IN_ALL:
            self._make_room()
        context, fact = entry.context, entry.fact
        joins, ends, follows, note = self._roles[type(fact)]
        calls = () if note is None else note(entry, fact)
        call = context.call
        known = None if call is None else self._calls.get(call)
        if known is None and context.task is not None:
            known = self._of_task(context.task)
        if known is None:
            return self._others(entry, calls, follows, ends)
        cause, exchange = entry.cause, context.exchange
        if cause is not None:
            asked_in = self._requests.get(cause)
            if cause not in known.entries:
                self._add(known, cause, asked_in)
            if asked_in is not None:
                self._join(known, asked_in)
        if joins and exchange is not None:
            self._join(known, exchange)
        self._add(known, entry.seq, exchange, ends)
        return tuple(dict.fromkeys((known.call, *calls))) if calls else (known.call,)

    def _others(self, entry: Entry, calls: Calls, follows: _Follows | None, ends: bool) -> Calls:
        """Take an entry that names no call that is known."""
        context = entry.context
        if context.call is not None:
            self._hold(context.call, entry.seq)
        for each in calls:
            self._add(self._calls[each], entry.seq, None, True)
        if follows is None or context.exchange is None or not follows(context, entry.fact):
            return calls
        return calls + self._of_exchange(entry.seq, context.exchange, ends)

    def _of_task(self, task: str) -> _Known | None:
        return self._calls.get(self._tasks.get(task, ""))

    def _join(self, known: _Known, exchange: int) -> None:
        joined = self._exchanges.get(exchange) or self._exchange(exchange)
        if known.call not in joined.calls and len(joined.calls) < _MOST_OF_EXCHANGE:
            joined.calls[known.call] = None
            for seq in joined.facts:
                self._add(known, seq, exchange)

    def _of_exchange(self, seq: int, number: int, ends: bool) -> Calls:
        """Take an entry that belongs to its exchange, and to no call by itself."""
        exchange = self._exchanges.get(number) or self._exchange(number)
        if len(exchange.facts) < _MOST_OF_EXCHANGE:
            exchange.facts.append(seq)
        if not exchange.calls:
            return ()
        known = [self._calls[call] for call in exchange.calls if call in self._calls]
        for each in known:
            self._add(each, seq, number, ends)
        return tuple([each.call for each in known])

    def _exchange(self, number: int) -> _Exchange:
        exchange = self._exchanges.get(number)
        if exchange is None:
            exchange = _Exchange()
            self._exchanges.store(number, exchange)
        return exchange

    def _hold(self, call: str, seq: int) -> None:
        """Keep an entry of a call that has not started yet."""
        early = self._early.get(call)
        if early is None:
            self._early.store(call, [seq])
        elif len(early) < _MOST_EARLY:
            early.append(seq)

    def _add(self, known: _Known, seq: int, exchange: int | None, ends: bool = False) -> None:
        """Give a call one entry more, as far as there is room; `exchange` is the one in which that happened."""
        entries = known.entries
        if seq in entries:
            return
        visiting = exchange is not None and exchange != known.exchange
        # No bound is near where it has few entries, as nearly all calls have.
        if len(entries) >= _MOST_VISITING and not known.has_room(visiting, ends):
            known.cut = True
            return
        entries[seq] = None
        self._in_all += 1
        if visiting:
            known.visiting += 1

    def _make_room(self) -> None:
        while self._in_all > _MOST_IN_ALL:
            self._forget_one()

    def _forget_one(self) -> None:
        call = next(iter(self._settled or self._calls))
        known = self._calls.pop(call)
        self._settled.pop(call, None)
        self._running.pop(call, None)
        self._in_all -= len(known.entries)
        if known.task is not None:
            self._tasks.pop(known.task, None)

    def _asked(self, entry: Entry, fact: events.HttpRequest | events.MessageReceived) -> Calls:
        if entry.context.exchange is not None:
            self._requests.store(entry.seq, entry.context.exchange)
        return ()

    def _started(self, entry: Entry, fact: events.CallStarted) -> Calls:
        context = entry.context
        if fact.tool is None or context.call is None:
            return ()
        known = _Known(context.call, context.exchange, context.task)
        self._calls[known.call] = self._running[known.call] = known
        if known.task is not None:
            self._tasks[known.task] = known.call
        for seq in self._early.pop(known.call, ()):
            self._add(known, seq, None)
        if len(self._calls) > self._most_calls:
            self._forget_one()
        return ()

    def _cancelled(self, entry: Entry, fact: events.CallCancelled) -> Calls:
        context, pipe = entry.context, entry.context.pipe
        known = self._calls.get(context.call or "") or self._of_task(context.task or "")
        # A call with a stream of its own is ended by the loss of the stream, not by its connection.
        gone = fact.by == _GONE and entry.context.call not in self._readers
        if known is not None and pipe is not None and gone:
            self._left.store(pipe, (*self._left.get(pipe, ()), known.call))
            end = self._pipe_ends.get(pipe)
            if end is not None:
                self._add(known, end, None, True)
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
