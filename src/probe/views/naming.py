"""The key of an entry's exchange, and the request behind an answer, from the entries that a log still has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ..log import events
from ..log.event_log import Entry
from .call_row import ANSWERS

_MESSAGES: Final = (events.MessageReceived, events.MessageEmitted, events.MessageDropped, events.HostMessage)

EntryOf: TypeAlias = Callable[[int], Entry | None]
"""Finds an entry by its number; None where the log does not have it."""


def exchange_key(entry: Entry, entry_of: EntryOf) -> int:
    """The key of an entry's exchange: its number; without one, minus the number of the request or of the entry."""
    if entry.context.exchange is not None:
        return entry.context.exchange
    asked = question(entry, entry_of)
    return -(entry.seq if asked is None else asked.seq)


def question(entry: Entry, entry_of: EntryOf) -> Entry | None:
    """The request that an entry answers, where the log has it."""
    fact, cause = entry.fact, entry.cause
    if cause is None or not isinstance(fact, _MESSAGES) or fact.rpc not in ANSWERS:
        return None
    asked = entry_of(cause)
    return asked if asked is not None and isinstance(asked.fact, _MESSAGES) else None


def method(entry: Entry, entry_of: EntryOf) -> str | None:
    """The method of a message or a call; of an answer, the method of its request."""
    if isinstance(entry.fact, events.CallStarted):
        return entry.fact.method
    said = question(entry, entry_of) or entry
    return said.fact.method if isinstance(said.fact, _MESSAGES) else None
