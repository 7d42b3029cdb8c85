"""The tools of tool hosts: hosts come and go while the server runs, and clients are notified.

`dispatcher.py` and `connection.py` have the connections and the host of each tool. This module has the tools, as each
offer sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
