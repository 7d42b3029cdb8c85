"""Rooms: private probes under unguessable addresses, each with an engine of its own: docs/internals/rooms.md."""
