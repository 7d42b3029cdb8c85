"""The event log for people on a terminal: one line for each exchange, as it happens."""
