"""Dispatches: their deadlines, over every way to call a tool, and what the event log tells of them."""
