"""Mirrors `probe.log`."""
