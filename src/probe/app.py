"""The only place that knows everything: it builds the server, opens the root nursery, and ends it in order.

root nursery
  engine      the audit's writer, and within it tasks, sessions and the observer of the log
  listener    sockets and connections
  signals     SIGINT and SIGTERM: the first drains, the second ends at once
"""

from __future__ import annotations

import gc
import secrets
import signal
import sys
import time
from collections.abc import Callable
from functools import partial

import trio

from . import listener
from .endpoints.paths import Paths
from .engine.catalogue import UnknownSelectionError
from .engine.engine import Engine
from .observe.audit_claim import AuditFileError
from .settings import Settings
from .tools.catalogue import TOOLSETS

# After the drain every response has its last bytes; this is how long slow peers may take to read them.
_FLUSH_S = 2.0


class StartError(Exception):
    """The server cannot start; the message is the one line for the user."""


def new_id() -> str:
    """256 bits in visible ASCII.

    2025-11-25 basic/transports: a session id SHOULD be "globally unique and cryptographically secure".
    """
    return secrets.token_urlsafe(32)


def main(settings: Settings) -> int:
    """Serve until a signal; returns the exit code. Raises `StartError`."""
    _tune_garbage_collection()
    try:
        trio.run(partial(serve, settings, announce=_print), strict_exception_groups=True)
    except* (listener.ListenError, UnknownSelectionError, AuditFileError) as group:
        raise StartError(str(_first(group))) from None
    return 0


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _tune_garbage_collection() -> None:
    # The engine makes no reference cycles per call, but trio and hypercorn make many short-lived objects; with the
    # default thresholds the collector takes a third of a busy server's time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def serve(
    settings: Settings,
    *,
    announce: Callable[[str], None] = lambda line: None,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run one server until cancelled or told to stop by a signal; `announce` gets the start-up and drain lines.

    Starts with the list of its URLs. Owns its sockets. Raises `listener.ListenError`, `UnknownSelectionError` and
    `AuditFileError`.
    """
    engine = Engine(settings, TOOLSETS, epoch=time.time(), new_id=new_id, random_bytes=secrets.token_bytes)
    engine.check_selection(settings.tools)
    sockets = listener.open_sockets(settings)
    paths = Paths(engine)
    async with trio.open_nursery() as root:
        await root.start(engine.serve)
        urls = await root.start(partial(listener.serve, paths, settings, sockets))
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            for url in urls:
                announce(f"MCP Probe listens on {url}/mcp (toolsets: {settings.tools})")
            task_status.started(urls)
            await anext(signals)
            announce(f"stopping: running work may finish within {settings.grace_s:g} s; signal again to stop at once")
            root.start_soon(_stop, engine, paths, root.cancel_scope)
            await anext(signals)
            root.cancel_scope.cancel()


async def _stop(engine: Engine, paths: Paths, root: trio.CancelScope) -> None:
    await engine.drain()
    with trio.move_on_after(_FLUSH_S):
        await paths.mcp.wait_idle()
    root.cancel()
