"""Rooms: probes of their own on one process."""
