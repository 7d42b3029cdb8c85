"""Mirrors `probe.observe`."""
