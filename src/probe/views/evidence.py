"""The evidence of a tool call: the entries of the log that belong to it.

A person who asks why a call ended needs everything that explains it, and no entry of its neighbours. The id of the call
alone gives too little: the head of its request came before it had an id, and the cancellation came by another request.
The session gives too much. Causes decide instead:

    1  every entry with the call in its context
    2  the cause of each of these: the request that began the call, those that cancelled it or asked for its task
    3  of each HTTP request that began, continued or asked about the call: its head, its response and its end
    4  the end of a connection: of a pipe that ended the call or read its stream, of a tool host before its answer

Causes join an exchange to a call (rule 3), since an answer has the call in its context and the request as its cause. An
exchange is not joined if it only carries messages of a call, such as a GET stream with the status of a task. The fold
finds exchanges, connections and hosts and passes them here; it applies rule 4.

The result does not depend on the moment at which an exchange is joined: `exchange.shared` keeps its entries without a
call for the calls that join later, and `exchange.calls` has the calls that get the next ones. Each number is added
once. At a bound the call is `cut`, so a reader knows that entries may be missing.

    4 http.request        exchange 2                rule 3, once entry 6 has joined the exchange
    5 message.received    exchange 2                rule 2, the cause of 6
    6 call.started        exchange 2, c1, cause 5   rule 1
    7 http.request        exchange 3                rule 3, by entry 9
    8 message.received    exchange 3                rule 2, the cause of 9: the cancellation
    9 call.cancelled      exchange 3, c1, cause 8   rule 1
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ..log import events
from ..log.bounded import Newest
from ..log.context import Context
from ..log.event_log import Entry
from .retention import Retention
from .values import Exchange
from .work import Call

_Follows: TypeAlias = Callable[[Context, Any], bool]


def _always(context: Context, fact: Any) -> bool:
    return True


def _without_call(context: Context, fact: Any) -> bool:
    return context.call is None


def _in_one_piece(context: Context, fact: Any) -> bool:
    return context.call is None and context.stream is None


def _refuses_all(context: Context, fact: events.MessageEmitted) -> bool:
    return context.call is None and context.stream is None and fact.rpc == "error" and fact.id is None


class Role(NamedTuple):
    """The part of a class of facts in the rules above.

    `joins`: where such an entry belongs to a call, its exchange belongs to that call as well. `ends`: it is the end of
    something. `follows` decides whether an entry without a call belongs to its exchange (rule 3); None where none does.
    """

    joins: bool = False
    ends: bool = False
    follows: _Follows | None = None


NO_ROLE: Final = Role()
ROLES: Final[Mapping[type, Role]] = {
    events.HttpRequest: Role(follows=_without_call),
    # A received message has a call if it answers a question of that call.
    events.MessageReceived: Role(joins=True),
    events.HttpResponse: Role(joins=True, ends=True, follows=_without_call),
    events.HttpClosed: Role(ends=True, follows=_without_call),
    events.MessageRefused: Role(follows=_without_call),
    events.ClientMisuse: Role(follows=_without_call),
    events.MessageEmitted: Role(follows=_refuses_all),
    events.MessagesDelivered: Role(follows=_in_one_piece),
    events.StreamOpened: Role(follows=_without_call),
    events.StreamResumed: Role(joins=True),
    events.StreamEnded: Role(ends=True, follows=_without_call),
    events.StreamLost: Role(ends=True, follows=_without_call),
    # A request that waits and is no tool call, such as `tasks/result`, has a call id of its own.
    events.CallStarted: Role(joins=True, follows=_always),
    events.CallCancelled: Role(ends=True, follows=_always),
    events.CallSettled: Role(ends=True, follows=_always),
    **dict.fromkeys((events.TaskRemoved, events.ConnectionClosed, events.HostClosed), Role(ends=True)),
    **dict.fromkeys((events.DispatchExpired, events.DispatchSettled), Role(ends=True)),
    **dict.fromkeys((events.DispatchCancelled, events.DispatchStopped), Role(ends=True)),
}


class CallEvidence:
    """Adds entries to calls, within the bounds of a retention. The call that settled first gives up its own.

    `asked_in` finds the exchange of a request, by the number of its head or of its message.
    """

    def __init__(self, retention: Retention, asked_in: Callable[[int], Exchange | None]) -> None:
        self._keep = retention
        self._few, self._most = retention.visits, retention.evidence
        self._asked_in = asked_in
        self.in_all = 0
        # Entries before the start of their call.
        self._early: Newest[str, list[int]] = Newest(retention.other_calls)
        # Calls with entries: those that have settled, and all.
        self._settled: OrderedDict[str, Call] = OrderedDict()
        self._known: OrderedDict[str, Call] = OrderedDict()

    def begin(self, call: Call) -> None:
        """It gets the entries held for it."""
        self._known[call.name] = call
        for seq in self._early.pop(call.name, ()):
            self.add(call, seq, None)

    def settle(self, call: Call) -> None:
        """It may make room from now on."""
        if call.name in self._known:
            self._settled[call.name] = call

    def hold(self, call: str, seq: int) -> None:
        """Keep an entry of a call that has not started yet."""
        early = self._early.get(call)
        if early is None:
            self._early.store(call, [seq])
        elif len(early) < self._keep.before_call:
            early.append(seq)

    def missed(self) -> None:
        """Any call that runs may have lost some entries, its end among them."""
        for name, call in self._known.items():
            if name not in self._settled:
                call.cut = True
                # Otherwise calls with a missed end would never make room.
                self._settled[name] = call

    def of_call(self, call: Call, entry: Entry, exchange: Exchange | None, role: Role) -> None:
        """Rules 1 to 3 for an entry that names a call."""
        entries, cause = call.entries, entry.cause
        if cause is not None and cause not in entries:
            asked_in = self._asked_in(cause)
            self.add(call, cause, asked_in)
            if asked_in is not None:
                self._join(call, asked_in)
        if role.joins and exchange is not None and call.name not in exchange.calls:
            self._join(call, exchange)
        # Nearly all calls have few entries: no bound is near.
        if exchange is call.exchange and len(entries) < self._few:
            entries[entry.seq] = None
            self.in_all += 1
            if self.in_all > self._most:
                self._make_room()
        else:
            self.add(call, entry.seq, exchange, ends=role.ends)

    def of_exchange(self, entry: Entry, exchange: Exchange, role: Role) -> Sequence[Call]:
        """Rule 3 for an entry without a call: returns the calls of its exchange, if it belongs to them."""
        if role.follows is None or not role.follows(entry.context, entry.fact):
            return ()
        if len(exchange.shared) < self._keep.of_exchange:
            exchange.shared.append(entry.seq)
        if not exchange.calls:
            return ()
        calls = [call for call in exchange.calls.values() if not call.is_forgotten]
        for call in calls:
            self.add(call, entry.seq, exchange, ends=role.ends)
        return calls

    def ended(self, calls: Sequence[Call], seq: int) -> None:
        """Rule 4: the connection of these calls has ended."""
        for call in calls:
            call.newest = seq
            self.add(call, seq, None, ends=True)

    def _join(self, call: Call, exchange: Exchange) -> None:
        if call.name not in exchange.calls and len(exchange.calls) < self._keep.of_exchange:
            exchange.calls[call.name] = call
            for seq in exchange.shared:
                self.add(call, seq, exchange)

    def add(self, call: Call, seq: int, exchange: Exchange | None, *, ends: bool = False) -> None:
        """Add an entry, if there is room, to a call; `exchange` is that of the entry."""
        entries = call.entries
        if seq in entries:
            return
        own = call.exchange
        visiting = exchange is not None and exchange is not own and (own is None or exchange.number != own.number)
        if len(entries) >= self._few and not self._has_room(call, visiting=visiting, ends=ends):
            call.cut = True
            return
        entries[seq] = None
        call.visiting += visiting
        self.in_all += 1
        if self.in_all > self._most:
            self._make_room()

    def _has_room(self, call: Call, *, visiting: bool, ends: bool) -> bool:
        if visiting:
            return call.visiting < self._keep.visits
        return len(call.entries) - call.visiting < self._keep.of_call + (self._keep.ends if ends else 0)

    def _make_room(self) -> None:
        while self.in_all > self._keep.evidence:
            name = next(iter(self._settled or self._known))
            self.forget(self._known[name])

    def forget(self, call: Call) -> None:
        if self._known.pop(call.name, None) is not None:
            self._settled.pop(call.name, None)
            self.in_all -= len(call.entries)
            call.entries.clear()
            call.cut = call.is_forgotten = True
