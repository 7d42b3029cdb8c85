"""Mirrors `probe.wire.v2026`."""
