"""Mirrors `probe.wire`."""
