"""Mirrors `probe.engine`."""
