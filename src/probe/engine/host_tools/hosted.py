"""The connected tool hosts by name, and their tools. Clients are notified when the list of tools changes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import trio

from ..catalogue.tool import Tool

# The first change is announced at once; further ones at most ten times a second, such as from an unstable host.
_QUIET_S = 0.1


class HostedTools:
    """The tools of all connected hosts by full name, `host__tool`: hosts by name, tools in order of registration.

    `enabled`: True if hosts may connect. `serve` calls `announce` when the list has changed.
    """

    def __init__(self, announce: Callable[[], None], *, enabled: bool) -> None:
        self.enabled = enabled
        self.tools: Mapping[str, Tool] = {}
        self._announce = announce
        self._by_host: dict[str, Mapping[str, Tool]] = {}
        self._changed = trio.Event()

    def put(self, host: str, tools: Mapping[str, Tool]) -> None:
        """Replace all tools of a host."""
        self._by_host[host] = tools
        self._rebuild()

    def remove(self, host: str) -> None:
        """Remove the tools of a host."""
        del self._by_host[host]
        self._rebuild()

    def _rebuild(self) -> None:
        hosts = sorted(self._by_host)
        self.tools = {name: tool for host in hosts for name, tool in self._by_host[host].items()}
        self._changed.set()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Announce changes until cancelled. A host that comes back in time with the same tools changes nothing."""
        task_status.started()
        shown_last: list[object] = []
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            shown: list[object] = [tool.describe() for tool in self.tools.values()]
            if shown != shown_last:
                shown_last = shown
                self._announce()
                await trio.sleep(_QUIET_S)


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
