"""The connected tool hosts by name, and their tools. Clients are notified when the list of tools changes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple

import trio

from ..catalogue.tool import Tool

# The first change is announced at once; further ones at most ten times a second, such as from an unstable host.
_QUIET_S = 0.1


class NameTakenError(Exception):
    """The name is registered by another process."""


class _Host(NamedTuple):
    instance: str
    connection: str
    replace: Callable[[], None]
    tools: Mapping[str, Tool]


class HostedTools:
    """The registered hosts of one engine by name, and their tools: hosts by name, tools in order of registration.

    `tools` has them by full name, `host__tool`. `enabled`: True if hosts may connect. `serve` calls `announce` when the
    list has changed.
    """

    def __init__(self, announce: Callable[[], None], *, enabled: bool) -> None:
        self.enabled = enabled
        self.tools: Mapping[str, Tool] = {}
        self._announce = announce
        self._hosts: dict[str, _Host] = {}
        self._changed = trio.Event()

    def register(
        self, name: str, instance: str, connection: str, replace: Callable[[], None], tools: Mapping[str, Tool]
    ) -> str | None:
        """Register the host on a connection with this label. Returns the label of the one that it replaces, or None.

        `replace` ends the connection when a newer one of the same process takes over. A process is the same if it has
        the same `instance`. Raises `NameTakenError` if another process has the name.
        """
        older = self._hosts.get(name)
        if older is not None and not hmac.compare_digest(older.instance.encode(), instance.encode()):
            raise NameTakenError
        self._hosts[name] = _Host(instance, connection, replace, tools)
        self._rebuild()
        if older is None:
            return None
        older.replace()
        return older.connection

    def update(self, name: str, tools: Mapping[str, Tool]) -> None:
        """Replace all tools of the host with this name."""
        self._hosts[name] = self._hosts[name]._replace(tools=tools)
        self._rebuild()

    def release(self, name: str, connection: str) -> None:
        """A connection is over: free its name and remove its tools, unless a newer connection has them."""
        host = self._hosts.get(name)
        if host is not None and host.connection == connection:
            del self._hosts[name]
            self._rebuild()

    def _rebuild(self) -> None:
        self.tools = {name: tool for host in sorted(self._hosts) for name, tool in self._hosts[host].tools.items()}
        self._changed.set()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Announce changes until cancelled."""
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
