"""Verdicts on a client, drawn from the event log alone: pure, without clock, chance or I/O."""
