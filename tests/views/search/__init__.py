"""Mirrors `probe.views.search`."""
