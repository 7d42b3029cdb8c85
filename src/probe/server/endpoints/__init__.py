"""The ASGI application: MCP over HTTP and WebSocket, and the pages beside it. It does not know its server."""
