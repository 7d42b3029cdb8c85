"""Tool hosts: their connections, and the calls that they have still to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..log import events
from ..log.bounded import Newest
from ..log.event_log import Entry
from .call_row import ANSWERS
from .retention import Retention
from .values import Exchange
from .work import Call, Host


class Hosts:
    """`hosts` are found by the labels of their connections, `messages` are the numbers of theirs that can be named."""

    def __init__(self, retention: Retention) -> None:
        self._keep = retention
        self.hosts: Newest[str, Host] = Newest(retention.connections)
        self.messages: Newest[int, None] = Newest(retention.messages)
        self.takers: Mapping[type, Callable[[Entry, Any, Exchange | None, Call | None], Sequence[Call] | None]] = {
            events.HostConnected: self._connected,
            events.HostRegistered: self._noted,
            events.HostUpdated: self._noted,
            events.HostMisuse: self._noted,
            events.HostMessage: self._message,
            events.HostClosed: self._closed,
            events.DispatchStopped: self._stopped,
        }

    def _host(self, entry: Entry) -> Host | None:
        label = entry.context.connection
        if label is None:
            return None
        host = self.hosts.get(label)
        if host is None:
            host = Host(label)
            gone = self.hosts.store(label, host)
            if gone is not None:
                gone.waiting.clear()
        return host

    def _connected(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            host.connected = entry

    def _noted(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        host = self._host(entry)
        if host is not None:
            if type(fact) is events.HostRegistered:
                host.registered = entry
            if len(host.history) < self._keep.history:
                host.history.append(entry)

    def _message(self, entry: Entry, fact: events.HostMessage, exchange: Any, call: Call | None) -> None:
        self.messages.store(entry.seq, None)
        if call is None:
            return
        if fact.method == "tool.dispatch":
            call.host = self._host(entry)
            if call.host is not None:
                call.host.waiting[call.name] = call
        elif fact.rpc in ANSWERS:
            self.answered(call)

    def answered(self, call: Call) -> None:
        """Its host owes it nothing more."""
        if call.host is not None:
            call.host.waiting.pop(call.name, None)
            call.host = None

    def _stopped(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> None:
        if call is not None:
            self.answered(call)

    def _closed(self, entry: Entry, fact: Any, exchange: Any, call: Call | None) -> Sequence[Call]:
        host = self._host(entry)
        if host is None:
            return ()
        host.closed = entry
        waiting = [*host.waiting.values()]
        for each in waiting:
            self.answered(each)
        return [each for each in waiting if not each.is_forgotten]
