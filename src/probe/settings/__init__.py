"""Every default of the server: its value, its unit and the reason for it. Nowhere else.

Each field of `Settings` and `Limits` that is not fixed is also a command line flag (`max_sessions` is
`--max-sessions`) and an environment variable (`MCP_PROBE_MAX_SESSIONS`); `mcp-probe settings` prints these, in groups.

    server.py       the settings, and the limits of what clients may use: types and defaults
    table.toml      a row for each: unit, bounds, reason
    description.py  both as one value
"""

from __future__ import annotations

from .description import ENV_PREFIX, Described, described
from .server import LOG_FORMATS, LOG_LEVELS, Limits, Settings, build

__all__ = ["ENV_PREFIX", "LOG_FORMATS", "LOG_LEVELS", "Described", "Limits", "Settings", "build", "described"]
