"""The one fold of the log."""
