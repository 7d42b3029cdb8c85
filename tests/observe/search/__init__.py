"""Mirrors `probe.observe.search`."""
