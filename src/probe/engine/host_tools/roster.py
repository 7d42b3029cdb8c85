"""The connected tool hosts, by name."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..catalogue.tool import Tool
from .hosted import HostedTools


class NameTakenError(Exception):
    """The name is registered by another process."""


class Registrant(Protocol):
    """A connection that has a name, or requests one."""

    @property
    def label(self) -> str:
        """Its label in the event log."""

    def replace(self) -> None:
        """End the connection: a newer one of the same process takes over."""


@dataclass(frozen=True, slots=True)
class _Entry:
    instance: str
    holder: Registrant


class Roster:
    """The registered hosts of one engine, by name; their tools are in `hosted`."""

    def __init__(self, hosted: HostedTools) -> None:
        self._hosted = hosted
        self._entries: dict[str, _Entry] = {}

    def claim(self, name: str, instance: str, holder: Registrant, tools: Mapping[str, Tool]) -> str | None:
        """Register a name and offer the tools. Returns the label of the older connection that was replaced, or None.

        Raises `NameTakenError` if another process has the name. A process is the same if it has the same `instance`.
        """
        entry = self._entries.get(name)
        if entry is not None and not hmac.compare_digest(entry.instance.encode(), instance.encode()):
            raise NameTakenError
        self._entries[name] = _Entry(instance, holder)
        self._hosted.put(name, tools)
        if entry is None:
            return None
        entry.holder.replace()
        return entry.holder.label

    def update(self, name: str, tools: Mapping[str, Tool]) -> None:
        """Replace the tools of the host with this name."""
        self._hosted.put(name, tools)

    def release(self, name: str, holder: Registrant) -> None:
        """A connection is over: free its name and remove its tools, unless a newer connection has them."""
        entry = self._entries.get(name)
        if entry is not None and entry.holder is holder:
            del self._entries[name]
            self._hosted.remove(name)
