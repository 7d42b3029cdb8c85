"""Pages of this server that a person opens and confirms: the out-of-band half of URL mode elicitation.

2025-11-25 and 2026-07-28 client/elicitation: `accept` "indicates that the user has consented to the interaction. It
does not mean that the interaction is complete." So the server keeps which of its pages have been confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import trio


@dataclass(frozen=True, slots=True)
class Page:
    """A page that waits to be confirmed; `named` are the members with which a revision names it beside its url."""

    id: str
    url: str
    named: Mapping[str, str]


class Interactions:
    """The pages of one engine, the newest `most` of them; an older one counts as never opened."""

    def __init__(self, most: int, new_id: Callable[[], str]) -> None:
        self._most = most
        self._new_id = new_id
        self._confirmed: dict[str, trio.Event] = {}

    def page(self, id: str, origin: str, **named: str) -> Page:
        """The page of an id, as a client that reached this server under `origin` can reach it."""
        return Page(id, f"{origin}/interaction/{id}", named)

    def open(self) -> str:
        """A new page: its unguessable id."""
        id = self._new_id()
        self._confirmed[id] = trio.Event()
        if len(self._confirmed) > self._most:
            del self._confirmed[next(iter(self._confirmed))]
        return id

    def is_open(self, id: str) -> bool:
        """Whether the page exists and waits to be confirmed."""
        return id in self._confirmed and not self._confirmed[id].is_set()

    def confirm(self, id: str) -> bool:
        """A person has confirmed the page. False: there is no such page; to repeat it changes nothing."""
        if id not in self._confirmed:
            return False
        self._confirmed[id].set()
        return True

    async def wait_confirmed(self, id: str, timeout_s: float) -> bool:
        """Wait for the confirmation. False: it did not come within so many seconds, or the page is gone."""
        confirmed = self._confirmed.get(id)
        if confirmed is None:
            return False
        with trio.move_on_after(timeout_s):
            await confirmed.wait()
        return confirmed.is_set()
