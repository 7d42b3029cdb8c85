"""The program `mcp-probe`: its commands, and the application that builds a server, runs it and ends it."""
