"""The limit of open files: it is raised as far as needed, and the settings are reduced to fit."""

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
    """The settings, with only as many connections and WebSockets as this process may open files for.

    Raises the soft limit of open files as far as the settings need it and the hard limit allows. It goes no further,
    since some hard limits are 1e9, and a leak of descriptors should show earlier. One warning names the limits that do
    not fit.
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
    # A closed reserved connection may take a moment to end, while the next one is open already.
    return limits.reserved_files + 2 * limits.reserved_connections


def _open_now() -> int:
    """Count the open descriptors: standard streams, others from the parent process, and that of this check."""
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        # A container without /proc.
        return _STANDARD_STREAMS


def _raise_to(needed: int) -> int:
    """Raise the soft limit as far as possible, and return it."""
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    most = raised(soft, hard, needed)
    if most > soft:
        # Some systems have a lower limit of their own, which the hard limit does not show.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            return most
    return soft


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
