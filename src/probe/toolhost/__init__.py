"""Offer tools through a running MCP Probe, from a process of your own: docs/tool-hosts.md, "Write a host".

    @tool
    async def greet(name: str) -> str:
        '''Greet somebody.'''
        return f"Hello, {name}!"

    run(Host("hello", [greet]), "ws://127.0.0.1:8000/toolhost", secret)

Only the names of this module are for others; the library logs to `probe.toolhost`.
"""

from __future__ import annotations

from ..core.call import Report
from .context import DispatchCancelledError, HostRefusedError, ToolContext, ToolError
from .host import Host, run
from .tool import Tool, tool

__all__ = [
    "DispatchCancelledError",
    "Host",
    "HostRefusedError",
    "Report",
    "Tool",
    "ToolContext",
    "ToolError",
    "run",
    "tool",
]
