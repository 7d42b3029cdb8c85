"""MCP over HTTP, WebSocket and standard streams, and tool hosts, as ASGI applications of any listener."""
