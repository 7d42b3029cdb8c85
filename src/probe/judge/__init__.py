"""Verdicts on clients, drawn from the event log alone: pure, but for `live` and `runs`, which run it."""
