"""MCP Probe: a diagnostic Model Context Protocol server."""

__version__ = "0.1.0"

TITLE = "MCP Probe"
