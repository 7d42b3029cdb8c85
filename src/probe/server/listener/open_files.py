"""The descriptors of this process: the limit is raised as far as it is needed, and the settings are held to it."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...core.budgets import Room, fitting, raised
from ...settings import Limits, Settings
from .calls import LOG

_STANDARD_STREAMS = 3


def fit(settings: Settings) -> Settings:
    """The settings, with as many connections and WebSockets as this process may have descriptors for.

    Raises the soft limit of open files as far as the settings need it and the hard limit allows. Not further: some hard
    limits are 1e9, and what leaks descriptors is to be noticed before. One warning names the limits that do not fit.
    """
    limits = settings.limits
    others = _open_now() + _reserved(limits)
    most = _raise_to(others + limits.max_connections)
    wanted = Room(limits.max_connections, limits.max_websockets)
    room = fitting(wanted, most - others)
    if room == wanted:
        return settings
    LOG.warning(
        "this process may have %d open files (ulimit -n), %d of them for other things than connections: "
        "max_connections is %d instead of %d, max_websockets %d instead of %d",
        *(most, others, room.connections, wanted.connections, room.websockets, wanted.websockets),
    )
    return replace(settings, limits=replace(limits, max_connections=room.connections, max_websockets=room.websockets))


def _reserved(limits: Limits) -> int:
    # A reserved connection that had to make room may take a moment to end, while the next is there already.
    return limits.reserved_files + 2 * limits.reserved_connections


def _open_now() -> int:
    """Count the open descriptors: standard streams, others that the parent process left open, and this look at them."""
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        # A container without /proc.
        return _STANDARD_STREAMS


def _raise_to(needed: int) -> int:
    """Raise the soft limit as far as possible; returns what it is then."""
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    most = raised(soft, hard, needed)
    if most > soft:
        # Some systems have a lower limit of their own, of which the hard one says nothing.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            return most
    return soft


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
