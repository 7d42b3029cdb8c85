"""Pages of this server that a person opens and confirms: the out-of-band half of URL mode elicitation.

2025-11-25 and 2026-07-28 client/elicitation: `accept` "indicates that the user has consented to the interaction. It
does not mean that the interaction is complete." So the server keeps which of its pages have been confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import trio

from ..log.context import Recorder
from .catalogue.tool import ToolFailureError
from .clock import Clock
from .shares import Limit


@dataclass(frozen=True, slots=True)
class ConfirmationPage:
    """A page that waits to be confirmed; `named` are the members with which a revision names it beside its url."""

    id: str
    url: str
    named: Mapping[str, str]


class _Made(NamedTuple):
    at: float
    holder: str | None


class Interactions:
    """The pages of one engine, as many as `limit` allows, that wait to be confirmed or can still be asked about.

    A page is forgotten `keep_s` seconds after it was made; until then nobody else's page can push it out.
    """

    def __init__(self, limit: Limit, keep_s: float, clock: Clock, new_id: Callable[[], str]) -> None:
        self._limit = limit
        self._keep_s = keep_s
        self._clock = clock
        self._new_id = new_id
        # In the order of their making, so the first is the first to be forgotten.
        self._made: dict[str, _Made] = {}
        self._confirmed: dict[str, trio.Event] = {}

    def page(self, id: str, origin: str, **named: str) -> ConfirmationPage:
        """The page of an id, as a client that reached this server under `origin` can reach it."""
        return ConfirmationPage(id, f"{origin}/interaction/{id}", named)

    def open(self, origin: str, holder: str | None, recorder: Recorder) -> str:
        """A new page, for the call of `recorder`: its unguessable id.

        Raises `ToolFailureError` without an origin, as nobody could reach it, and `LimitError` when there are as many
        as there may be, or as many of this `holder`.
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
        """Whether the page exists and waits to be confirmed."""
        self._forget()
        return id in self._confirmed and not self._confirmed[id].is_set()

    def confirm(self, id: str) -> bool:
        """A person has confirmed the page. False: there is no such page; to repeat it changes nothing."""
        self._forget()
        if id not in self._confirmed:
            return False
        self._confirmed[id].set()
        return True

    async def wait_confirmed(self, id: str, timeout_s: float) -> bool:
        """Wait for the confirmation. False: it did not come within so many seconds, or while the page was kept."""
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
