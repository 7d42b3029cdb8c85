"""The tables that the dashboard shows, folded from the event log."""
