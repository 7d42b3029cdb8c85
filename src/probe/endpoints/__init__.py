"""Where clients come in: MCP over HTTP, and the pages beside it. Plain ASGI; whichever server runs them is not known here."""
