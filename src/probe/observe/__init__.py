"""What really happened: the event log, the call records, and what is hidden from both."""
