"""The start of a server: its error, and the loading of its modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class StartError(Exception):
    """The server cannot start. The message is one line for the user."""


@contextmanager
def loading() -> Iterator[None]:
    """Around the import of the server, which takes half a second.

    The collector finds no garbage while modules are loaded, and takes a sixth of the time: a twelfth during the loading
    and a twelfth in one pass afterwards. `freeze` saves that pass.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
