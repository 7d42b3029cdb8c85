"""The start of a server: the error that keeps it from starting, and the way its modules are loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class StartError(Exception):
    """The server cannot start; the message is the one line for the user."""


@contextmanager
def loading() -> Iterator[None]:
    """Around the import of the server, which takes half a second.

    Nothing that is loaded is garbage, and to look for some takes a sixth of that time: half of it while it is loaded,
    and as much in one pass right afterwards, unless all that is there is set aside.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def first(error: BaseException) -> BaseException:
    """The first exception of a group that is none itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
