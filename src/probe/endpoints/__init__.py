"""Where clients come in: MCP over HTTP, and the pages beside it. Plain ASGI; the server is not known here."""
