"""The services that every part of one engine uses, among them the pages that a person opens and confirms.

Such a page is that of a URL mode elicitation. 2025-11-25 and 2026-07-28 client/elicitation: `accept` "indicates that
the user has consented to the interaction. It does not mean that the interaction is complete." So the server records
which of its pages are confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import trio

from ..log.context import Recorder
from ..log.event_log import EventLog
from ..settings import Limits, Settings
from .budgets import ALONE, AddressShares, ByteLimit, Limit, SharedLimits
from .catalogue.tool import ToolFailureError
from .clock import Clock


@dataclass(frozen=True, slots=True)
class ConfirmationPage:
    """A page to confirm; `named` are the members beside its url in a request of its revision."""

    id: str
    url: str
    named: Mapping[str, str]


class _Made(NamedTuple):
    at: float
    holder: str | None


class Interactions:
    """The pages of one engine, at most as many as `limit` allows, until they are forgotten.

    A page is forgotten `keep_s` seconds after its making.
    """

    def __init__(self, limit: Limit, keep_s: float, clock: Clock, new_id: Callable[[], str]) -> None:
        self._limit = limit
        self._keep_s = keep_s
        self._clock = clock
        self._new_id = new_id
        # In the order of their making, so the first is forgotten first.
        self._made: dict[str, _Made] = {}
        self._confirmed: dict[str, trio.Event] = {}

    def page(self, id: str, origin: str, **named: str) -> ConfirmationPage:
        """The page with an id, under the `origin` at which the client reached this server."""
        return ConfirmationPage(id, f"{origin}/interaction/{id}", named)

    def open(self, origin: str, holder: str | None, recorder: Recorder) -> str:
        """Make a page for the call of `recorder`; returns its id, which cannot be guessed.

        Raises `ToolFailureError` without an origin, as no person could reach the page, and `LimitError` if the server
        has its most pages, or this `holder` its share.
        """
        if not origin:
            why = "This server shows no pages: start it with --dashboard PORT, or say where they are with --public-url"
            raise ToolFailureError(why)
        self._forget()
        self._limit.acquire(holder, recorder)
        id = self._new_id()
        self._made[id], self._confirmed[id] = _Made(self._clock.now(), holder), trio.Event()
        return id

    def is_open(self, id: str) -> bool:
        self._forget()
        return id in self._confirmed and not self._confirmed[id].is_set()

    def confirm(self, id: str) -> bool:
        """Confirm the page for a person. Returns False if there is no such page; to repeat it changes nothing."""
        self._forget()
        if id not in self._confirmed:
            return False
        self._confirmed[id].set()
        return True

    async def wait_confirmed(self, id: str, timeout_s: float) -> bool:
        """Wait for the confirmation. Returns False if it did not come within `timeout_s`, or the page was dropped."""
        self._forget()
        confirmed = self._confirmed.get(id)
        if confirmed is None:
            return False
        with trio.move_on_at(min(self._clock.now() + timeout_s, self._made[id].at + self._keep_s)):
            await confirmed.wait()
        return confirmed.is_set()

    def _forget(self) -> None:
        oldest = self._clock.now() - self._keep_s
        while self._made and (first := next(iter(self._made.items())))[1].at <= oldest:
            id, made = first
            del self._made[id], self._confirmed[id]
            self._limit.release(made.holder)


@dataclass(frozen=True, slots=True)
class Services:
    """The log, the clock, the settings, and all that the clients of one engine share.

    `new_id` returns ids that cannot be guessed, of visible ASCII characters; `exchanges` returns the numbers of
    exchanges. `piped` counts unsent bytes on pipes, `unsent` those of HTTP responses, `arriving` those of incomplete
    bodies. `shared` are the limits of several engines together.
    """

    log: EventLog
    clock: Clock
    settings: Settings
    shares: AddressShares
    interactions: Interactions
    new_id: Callable[[], str]
    piped: ByteLimit
    unsent: ByteLimit
    arriving: ByteLimit
    shared: SharedLimits = ALONE
    exchanges: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def limits(self) -> Limits:
        return self.settings.limits

    @property
    def recorder(self) -> Recorder:
        """The recorder of facts about the server as a whole."""
        return Recorder(self.log)
