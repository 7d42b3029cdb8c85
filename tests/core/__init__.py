"""Mirrors `probe.core`."""
