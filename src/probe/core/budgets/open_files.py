"""The number of connections that fit into a limit of open files (RLIMIT_NOFILE): each holds one descriptor."""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """How many connections may be open, and how many of them may be WebSockets."""

    connections: int
    websockets: int


def raised(soft: int, hard: int, needed: int) -> int:
    """The soft limit to ask for: as much as is needed and allowed, and never less than there is."""
    return max(soft, min(hard, needed))


def fitting(wanted: Room, descriptors: int) -> Room:
    """The part of `wanted` that so many descriptors allow; one connection at least, as a server without any is none.

    Where not all connections fit, at most half of them may be WebSockets: these stay, and requests need the others.
    """
    if wanted.connections <= descriptors:
        return wanted
    connections = max(1, descriptors)
    return Room(connections, min(wanted.websockets, max(1, connections // 2)))
