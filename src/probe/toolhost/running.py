"""For scripts: one host, until a signal."""

from __future__ import annotations

import logging
import signal
from functools import partial

import trio

from .errors import HostRefusedError
from .host import Host


def run(host: Host, url: str, secret: str) -> None:
    """Serve a host until SIGINT or SIGTERM, and return.

    Handlers that run are cancelled and the connection is closed; a second signal ends the process at once. Where the
    program has set up no logging, what the library logs goes to standard error. Raises `HostRefusedError` where trying
    again would not help.
    """
    if not logging.getLogger().handlers:
        logging.basicConfig(format="%(message)s", level=logging.WARNING)
        logging.getLogger(__package__).setLevel(logging.INFO)
    try:
        trio.run(_until_signal, host, url, secret)
    except* HostRefusedError as group:
        refused = group
    else:
        return
    raise HostRefusedError(str(_first(refused))) from None


async def _until_signal(host: Host, url: str, secret: str) -> None:
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            nursery.start_soon(partial(host.serve, url, secret))
            async for _ in signals:
                break
        nursery.cancel_scope.cancel()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
