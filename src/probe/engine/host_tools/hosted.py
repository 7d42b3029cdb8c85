"""The tools of tool hosts: they come and go while the server runs, and clients are told.

`dispatcher.py` and `connection.py` know the connections, and the host behind each tool; here are only the tools, as
every offer sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from ..catalogue.tool import Tool

# The first change is told at once; of a host that changes its mind all the time clients hear ten times a second.
_QUIET_S = 0.1


class HostedTools:
    """The tools of all connected hosts by their full names, `host__tool`: hosts by name, tools as registered.

    `enabled`: whether there can be any. `announce` is called by `serve` when the list has changed.
    """

    def __init__(self, announce: Callable[[], None], *, enabled: bool) -> None:
        self.enabled = enabled
        self.tools: Mapping[str, Tool] = {}
        self._announce = announce
        self._by_host: dict[str, Mapping[str, Tool]] = {}
        self._changed = trio.Event()

    def put(self, host: str, tools: Mapping[str, Tool]) -> None:
        """These are all the tools of a host from now on."""
        self._by_host[host] = tools
        self._rebuild()

    def remove(self, host: str) -> None:
        """A host has gone."""
        del self._by_host[host]
        self._rebuild()

    def _rebuild(self) -> None:
        hosts = sorted(self._by_host)
        self.tools = {name: tool for host in hosts for name, tool in self._by_host[host].items()}
        self._changed.set()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Announce changes until cancelled. A host that is back with the same tools in time has changed nothing."""
        task_status.started()
        told: list[object] = []
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            shown: list[object] = [tool.describe() for tool in self.tools.values()]
            if shown != told:
                told = shown
                self._announce()
                await trio.sleep(_QUIET_S)
