"""Connections below HTTP, for the event log.

The number of a connection is the one in the ASGI extension `exchange.CONNECTION` of its requests.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.budgets import Rates
from ...core.clients import client_key, endpoint
from ...log.context import Recorder
from ...log.event_log import EventLog
from ...log.events import SocketClosed, SocketOpened, SocketRefused
from ...settings.server import Limits

MOST_CLIENTS = 10_000
"""The addresses with a rate; they take a megabyte."""


class SocketFacts:
    """Records the connections of one listener, a `ConnectionLog`.

    A connection with only observers' requests, such as those of the dashboard, is not recorded: otherwise each look at
    the log would add to it. Connections of one address are recorded only at the rate of its requests, since opening one
    is cheaper for a client; requests on the others are still recorded. `now` is a monotonic clock, in seconds.
    """

    def __init__(self, log: EventLog, limits: Limits, now: Callable[[], float]) -> None:
        self._log = log
        self._rates = Rates(limits.requests_per_second, limits.request_burst, MOST_CLIENTS)
        self._now = now
        # Address and port of each open connection that is not recorded, else its recorder. The listener bounds their
        # number.
        self._addresses: dict[int, tuple[str, int | None]] = {}
        self._open: dict[int, Recorder] = {}

    def opened(self, number: int, address: str, port: int | None) -> None:
        self._addresses[number] = address, port

    def carries(self, number: int) -> None:
        """The connection carries a request that is not an observer's."""
        if number in self._addresses:
            address, port = self._addresses.pop(number)
            key = client_key(address)
            if key is None or not self._rates.take(key, self._now()).wait_s:
                recorder = Recorder(self._log).bind(connection=f"tcp{number}")
                self._open[number] = recorder.having(SocketOpened(endpoint(address, port)))

    def refused(self, number: int, status: int | None, why: str) -> None:
        self.carries(number)
        recorder = self._open.get(number)
        if recorder is not None:
            recorder.append(SocketRefused(status, why))

    def closed(self, number: int, by: str, requests: int) -> None:
        if not requests:
            self.carries(number)
        self._addresses.pop(number, None)
        recorder = self._open.pop(number, None)
        if recorder is not None:
            recorder.append(SocketClosed(by, requests))
