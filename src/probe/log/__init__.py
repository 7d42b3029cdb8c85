"""The event log: facts with a context and a cause, redacted before they are stored, written and read back."""
