"""The audit of tool calls in a SQLite file."""
