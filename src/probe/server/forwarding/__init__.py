"""Logs of `mcp-probe stdio --forward`: the process that sends its own, and the server that collects them."""
