"""The start of a server: its error, the loading of its modules, and the garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class StartError(Exception):
    """The server cannot start; the message is one line."""


@contextmanager
def loading() -> Iterator[None]:
    """Around the import of the server, which takes half a second.

    The collector finds no garbage while modules are loaded, and takes a sixth of the time: a twelfth during the loading
    and a twelfth in one pass afterwards.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def tune_garbage_collection() -> None:
    """Make passes of the collector rare, as a busy server needs them."""
    # The engine makes no reference cycles per call, but trio and hypercorn make many short-lived objects; with the
    # default thresholds the collector takes a third of a busy server's time. A pass over the oldest generation stops
    # the server for a second, so it is very rare. A pass over the middle one, for thousands of streams a million
    # objects, takes most of a second, too: it comes with every third pass over the youngest, so it looks at some 30,000
    # objects. When it looked at 60,000, that took 60 ms beside hundreds of rooms.
    gc.freeze()
    if sys.version_info >= (3, 14):
        # From 3.14 on each pass over the young includes a part of the old, one in ten times the second number. The
        # third number has no effect.
        gc.set_threshold(10_000, 100)
    else:
        gc.set_threshold(10_000, 1, 4_000)
