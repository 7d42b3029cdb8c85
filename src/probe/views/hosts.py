"""Tool hosts: their connections, their unanswered calls, and the outcomes of dispatches.

A dispatch takes a place at its host from `dispatch.sent` until `dispatch.settled`. After a `tool.cancel` it keeps the
place until `dispatch.stopped`. This may come long after the answer of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from .records import ANSWERS
from .retention import Retention
from .values import Exchange
from .work import Call, Host, HostedCall

# Outcomes of stopped calls.
STOPPED: Final = frozenset({"cancelled", "disconnected"})


class Hosts:
    """The connections of tool hosts: `hosts` by their labels."""

    def __init__(self, retention: Retention) -> None:
        self.hosts: Newest[str, Host] = Newest(retention.connections)
        # By name: the present connection of that name, else the last.
        self._named: dict[str, Host] = {}
        self._dispatches: Newest[str, HostedCall] = Newest(retention.dispatches)
        self.takers: Mapping[type, Callable[[Entry, Any, Exchange | None, Call | None], Sequence[Call] | None]] = {
            events.HostConnected: self._connected,
            events.HostRegistered: self._registered,
            events.HostUpdated: self._updated,
            events.HostMisuse: self._misused,
            events.HostMessage: self._message,
            events.HostClosed: self._closed,
            events.DispatchSent: self._sent,
            events.DispatchExtended: self._extended,
            events.DispatchCancelled: self._told_to_stop,
            events.DispatchSettled: self._settled,
            events.DispatchLate: self._late,
            events.DispatchStopped: self._stopped,
        }

    def forget_before(self, first: int) -> None:
        """Let go of the connections that were closed before the entry `first`, and of which no later entry came."""
        old = self.hosts.sweep(
            lambda each: each.connected is None or each.connected.seq < first,
            lambda each: each.closed is not None and each.newest < first,
        )
        for host in old:
            self._leave(host)

    # -- connections

    def _host(self, entry: Entry) -> Host | None:
        """The entry counts as the newest of the host."""
        label = entry.context.connection
        if label is None:
            return None
        host = self.hosts.get(label)
        if host is None:
            host = Host(label)
            gone = self.hosts.store(label, host)
            if gone is not None:
                self._leave(gone)
        _show_life(host, entry)
        return host

    def _leave(self, host: Host) -> None:
        host.waiting.clear()
        name = _name(host)
        if name is not None and self._named.get(name) is host:
            del self._named[name]

    def _connected(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            host.connected = entry

    def _registered(self, entry: Entry, fact: events.HostRegistered, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            host.registered = host.offer = entry
            self._named[fact.host] = host

    def _updated(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            host.offer = entry

    def _misused(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            host.misuse += 1

    def _message(self, entry: Entry, fact: events.HostMessage, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if call is None:
            return
        if fact.method == "tool.dispatch":
            call.host = host
            if host is not None:
                host.waiting[call.name] = call
        elif fact.rpc in ANSWERS:
            self.answered(call)

    def answered(self, call: Call) -> None:
        """The host has answered this call, or need not."""
        if call.host is not None:
            call.host.waiting.pop(call.name, None)
            call.host = None

    def _closed(self, entry: Entry, fact: events.HostClosed, exchange: Any, call: Call | None) -> Sequence[Call]:
        host = self._host(entry)
        if host is None:
            return ()
        host.closed = entry
        # Work that still runs there has no result for this server. The fact counts all late messages.
        host.in_flight, host.late = 0, max(host.late, fact.late)
        waiting = [*host.waiting.values()]
        for each in waiting:
            self.answered(each)
        return [each for each in waiting if not each.is_forgotten]

    # -- dispatches

    def _dispatch(self, entry: Entry) -> HostedCall | None:
        """The entry counts as the newest of the dispatch's host."""
        known = self._dispatches.get(entry.context.call or "") if self._dispatches else None
        if known is not None:
            _show_life(known.host, entry)
        return known

    def _sent(self, entry: Entry, fact: events.DispatchSent, exchange: Any, call: Call | None) -> None:
        host = None if fact.host is None else self._named.get(fact.host)
        if host is None:
            return
        _show_life(host, entry)
        host.dispatched += 1
        host.in_flight += 1
        oldest = self._dispatches.store(entry.context.call or "", HostedCall(host))
        if oldest is not None:
            oldest.host.newest = entry.seq
            _give_back(oldest)

    def _extended(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        self._dispatch(entry)

    def _told_to_stop(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        known = self._dispatch(entry)
        if known is not None:
            known.told_to_stop = True

    def _settled(self, entry: Entry, fact: events.DispatchSettled, exchange: Any, call: Call | None) -> None:
        known = self._dispatch(entry)
        if known is None:
            return
        known.settled = True
        outcomes = known.host.outcomes
        outcomes[fact.outcome] = outcomes.get(fact.outcome, 0) + 1
        if not (known.told_to_stop or known.stopped):
            _give_back(known)
        self._forget_if_over(entry, known)

    def _stopped(self, entry: Entry, fact: events.DispatchStopped, exchange: Any, call: Call | None) -> None:
        if call is not None:
            self.answered(call)
        known = self._dispatch(entry)
        if known is None:
            return
        known.stopped = True
        if known.host.closed is None:
            # The first of each kind was counted at once; the end of the connection has counted all.
            known.host.late += max(0, fact.late - known.late)
        _give_back(known)
        self._forget_if_over(entry, known)

    def _late(self, entry: Entry, fact: events.DispatchLate, exchange: Any, call: Call | None) -> None:
        known = self._dispatch(entry)
        host = self._named.get(fact.host) if known is None else known.host
        if known is not None:
            known.late += 1
        if host is not None:
            _show_life(host, entry)
            if host.closed is None:
                host.late += 1

    def _forget_if_over(self, entry: Entry, known: HostedCall) -> None:
        if known.is_over:
            del self._dispatches[entry.context.call or ""]


def _name(host: Host) -> str | None:
    return None if host.registered is None else cast("events.HostRegistered", host.registered.fact).host


def _show_life(host: Host, entry: Entry) -> None:
    host.newest = entry.seq
    if host.closed is None:
        host.last_at = entry.at


def _give_back(dispatch: HostedCall) -> None:
    if dispatch.host.closed is None:
        dispatch.host.in_flight -= 1
