"""MCP over HTTP, WebSocket and standard streams, and tool hosts, as ASGI. It does not know its listener."""
