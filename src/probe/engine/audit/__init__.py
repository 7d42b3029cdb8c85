"""The audit of tool calls: the SQLite file, the service that writes it, and the queries of both."""
