"""Builds the server from its `parts`, opens the root nursery, and ends it in order.

telemetry     around the rest, if enabled, so that it includes the end
root nursery
  engine      the audit's writer, and within it tasks, sessions and the observer of the log
  opened      an engine for each file dropped on the dashboard
  rooms       an engine for each room, with `rooms`
  listener    sockets and connections; with `stdio` only for the pages, if enabled
  client      `stdio` only: standard input and output; its end ends everything
  signals     SIGINT, SIGTERM and SIGHUP: the first drains, the second ends the drain without waiting for work
last resort   around the root: the process ends even if work shields itself from cancellation
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from ..core.clients import NetworksError
from ..core.exceptions import first
from ..engine.audit.file import AuditFileError
from ..engine.catalogue.catalogue import UnknownSelectionError
from ..engine.engine import Engine
from ..engine.pipes.pipe import serve_pipe
from ..engine.pipes.wires import Peer
from ..log.follower import LogFileError, log_kept
from ..log.ndjson import OpenedFile
from ..server import listener
from ..server.endpoints.lines import LineWire, StdioFacts, StreamsClosedError, standard_streams
from ..settings import Settings, build
from ..telemetry import TelemetryError
from ..telemetry.lines import Printer, StandardError, adopt_logging
from ..telemetry.service import following
from ..web.paths import Paths, SharedPages
from .ending import FLUSH_S, LINES_S, ending_signals, last_resort, stopped
from .parts import (
    SHOWING,
    export_rooms,
    file_pages,
    listen,
    listening_sockets,
    make_engine,
    make_rooms,
    room_metrics,
    with_rooms,
)
from .starting import StartError, tune_garbage_collection

if TYPE_CHECKING:
    from ..rooms.rooms import Rooms
    from ..telemetry.terminal.screen import Screen

# Seconds after the client of standard streams has gone: as many for cleaning up as at a drain, and two for writing the
# last answers.
_GONE_S = 7.0


_Result = TypeVar("_Result")


def main(settings: Settings, *, open_pages: bool = False, screen: Screen | None = None) -> int:
    """Serve HTTP until a signal; returns the exit code. Raises `StartError`.

    `open_pages` shows the dashboard in a browser, once it is served; `screen` gets a line for each exchange.
    """
    printer = _printer(settings)
    serving = partial(serve, announce=printer.say, printer=printer, open_pages=open_pages, screen=screen)
    return _run(partial(serving, listener.fit(settings)), printer)


@dataclass(frozen=True, slots=True)
class StdioOptions:
    """The options of a server on standard streams beside its settings.

    `dashboard` is the port for the pages about it; `label` is the client's name in the event log, as `core.clients`
    allows it; `log_to` is the folder where that log is kept; `forward` is the address of the server that gets it, too.
    """

    dashboard: int | None = None
    label: str | None = None
    log_to: Path | None = None
    forward: str | None = None


def stdio(settings: Settings, options: StdioOptions) -> int:
    """Serve the client on standard input and output until it has gone, or until a signal; returns the exit code.

    Raises `StartError`.
    """
    printer = _printer(settings)
    settings = settings if options.dashboard is None else listener.fit(settings)
    return _run(partial(serve_stdio, settings, options, announce=printer.say, printer=printer), printer)


def show(opened: OpenedFile, *, port: int, open_pages: bool = False) -> int:
    """Serve the dashboard over a file until a signal; returns the exit code. Raises `StartError`.

    Only this machine is served, on a free port where that is 0.
    """
    settings = build({**SHOWING, "port": port})
    printer = _printer(settings)
    return _run(partial(serve_file, opened, settings, announce=printer.say, open_pages=open_pages), printer)


def _printer(settings: Settings) -> Printer:
    if sys.__stderr__ is None:
        # Standard error was closed from the start, so another file may have its descriptor by now.
        printer = Printer(settings.log_format, settings.log_level, bytes)
    else:
        err = StandardError()
        counted = (err.write, err.write_all, err.flush, lambda: err.lines)
        printer = Printer(settings.log_format, settings.log_level, *counted)
    adopt_logging(printer)
    return printer


def _run(service: Callable[[], Awaitable[None]], printer: Printer) -> int:
    tune_garbage_collection()
    try:
        run(service)
    finally:
        printer.flush(LINES_S)
    return 0


def run(service: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run an async function; returns its result. Raises `StartError` for any error at the start."""
    # If only a part of an exception group is caught, the function has no return value.
    results: list[_Result] = []
    failure: BaseException | None = None

    async def keep() -> None:
        results.append(await service())

    try:
        trio.run(keep, strict_exception_groups=True)
    except* (
        listener.ListenError,
        NetworksError,
        UnknownSelectionError,
        AuditFileError,
        LogFileError,
        StreamsClosedError,
        TelemetryError,
    ) as group:
        # Python 3.11.2 wraps an error raised here in a group, so it is raised below.
        failure = first(group)
    if failure is not None:
        raise StartError(failure.brief if isinstance(failure, UnknownSelectionError) else str(failure))
    return results[0]


async def serve(
    settings: Settings,
    *,
    announce: Callable[[str], None] = lambda line: None,
    printer: Printer | None = None,
    open_pages: bool = False,
    screen: Screen | None = None,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run one server until it is cancelled or a signal ends it. Starts with its URLs. Owns its sockets.

    `announce` gets the start-up and drain lines, `printer` those of the event log; `open_pages` opens a browser,
    `screen` gets a line for each exchange. Raises the errors of `running`.
    """
    async with (
        running(settings, announce=announce, printer=printer) as server,
        _watched(server.engine, screen),
    ):
        with trio.open_signal_receiver(*ending_signals()) as signals:
            local = _local(server.urls[0])
            base = settings.public_url.rstrip("/") or local
            for url in server.urls:
                announce(f"MCP Probe listens on {_served(settings, url)}")
            if settings.rooms != "only":
                announce(f"Dashboard: {base}/dashboard")
            if settings.rooms != "off":
                announce(f"A room of your own: {base}/new")
            task_status.started(server.urls)
            async with trio.open_nursery() as opening:
                if open_pages:
                    page = "new" if settings.rooms == "only" else "dashboard"
                    opening.start_soon(_open_browser, f"{local}/{page}", announce)
                await stopped(signals, server, server.wait_idle, announce)
                opening.cancel_scope.cancel()


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server: its engine, its endpoints, and its origins such as `http://127.0.0.1:8000`."""

    engine: Engine
    paths: Paths
    urls: list[str]
    rooms: Rooms | None = None
    drained: trio.Event = field(default_factory=trio.Event)

    @property
    def settings(self) -> Settings:
        return self.engine.settings

    async def drain(self) -> None:
        # Before `Rooms.drain` counts the rooms, so that none opens meanwhile.
        self.engine.draining = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.engine.drain)
            if self.rooms is not None:
                nursery.start_soon(self.rooms.drain)
        self.drained.set()

    def hurry(self) -> None:
        if self.rooms is not None:
            self.rooms.hurry()
        self.engine.hurry()

    async def wait_idle(self) -> None:
        """Wait until no response is being written, no connection of the protocol is open, and all rooms have ended."""
        await self.paths.wait_idle()
        if self.rooms is not None:
            await self.rooms.wait_ended()


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    announce: Callable[[str], None] = lambda line: None,
    printer: Printer | None = None,
    opened: OpenedFile | None = None,
) -> AsyncIterator[RunningServer]:
    """Run a server during the block; its tasks are cancelled at the end. Owns its sockets.

    With an `opened` file it shows the file and does not serve MCP. Raises `listener.ListenError`,
    `UnknownSelectionError`, `TelemetryError` and `AuditFileError`.
    """
    engine, pages = make_engine(settings, opened), SharedPages()
    rooms = None if settings.rooms == "off" else make_rooms(engine, pages)
    export = None if rooms is None else partial(export_rooms, rooms)
    async with following(engine, printer, partial(room_metrics, rooms), export) as metrics:
        # Before any socket is open, since it may refuse the settings.
        only = settings.rooms == "only"
        show = file_pages if opened is None and not only else None
        paths = Paths(engine, pages_only=only, metrics=metrics, show=show, pages=pages)
        endpoint = paths if rooms is None else with_rooms(rooms, engine, paths)
        async with (
            listening_sockets(settings) as sockets,
            last_resort(engine, announce, printer.flush if printer else bool) as leaving,
            trio.open_nursery() as root,
        ):
            await root.start(engine.serve)
            if paths.opened is not None:
                await root.start(paths.opened.serve)
            if rooms is not None:
                await root.start(rooms.serve)
            yield RunningServer(engine, paths, await root.start(listen(endpoint, settings, sockets, rooms)), rooms)
            leaving.set()
            root.cancel_scope.cancel()


async def serve_file(
    opened: OpenedFile,
    settings: Settings,
    *,
    announce: Callable[[str], None] = lambda line: None,
    open_pages: bool = False,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Show a file until it is cancelled or a signal ends it. Starts with its URLs. Owns its sockets.

    Raises `listener.ListenError`.
    """
    async with running(settings, announce=announce, opened=opened) as server:
        with trio.open_signal_receiver(*ending_signals()) as signals:
            # Before the first request: its page would wait for the whole reading.
            await server.engine.observer.reach(server.engine.log.last)
            announce(f"{opened.name}: {len(server.engine.log)} entries; Ctrl-C ends this")
            announce(f"Dashboard: {server.urls[0]}/dashboard")
            task_status.started(server.urls)
            async with trio.open_nursery() as opening:
                if open_pages:
                    opening.start_soon(_open_browser, f"{server.urls[0]}/dashboard", announce)
                await anext(signals)
                opening.cancel_scope.cancel()
            await server.engine.drain()
            with trio.move_on_after(FLUSH_S):
                await server.wait_idle()


async def serve_stdio(
    settings: Settings,
    options: StdioOptions,
    *,
    announce: Callable[[str], None] = lambda line: None,
    printer: Printer | None = None,
) -> None:
    """Serve one client on the standard streams until it has gone, it is cancelled, or a signal ends it.

    Pages are served at `settings.host` and the port of the options, without MCP over HTTP. Raises the errors of
    `serve`, `StreamsClosedError` and `LogFileError`, all of them before reading any input.
    """
    dashboard = options.dashboard
    # Without pages the verdicts have no reader.
    settings = replace(settings, judge=False) if dashboard is None else replace(settings, port=dashboard)
    engine = make_engine(settings)
    forwarded = _forwarded(engine, options, announce)
    async with (
        following(engine, printer) as metrics,
        log_kept(engine.log, engine.header(), options.log_to),
        forwarded,
        listening_sockets(None if dashboard is None else settings) as sockets,
        last_resort(engine, announce, printer.flush if printer else bool) as leaving,
        trio.open_nursery() as root,
    ):
        await root.start(engine.serve)
        urls: list[str] = []
        if sockets:
            paths = Paths(engine, pages_only=True, metrics=metrics)
            urls = await root.start(listen(paths, settings, sockets))
        with trio.open_signal_receiver(*ending_signals()) as signals:
            origin = settings.public_url.rstrip("/") or next(iter(urls), "")
            peer = Peer("stdio", "stdio", origin, settings.tools, label=options.label)
            facts = StdioFacts(printer.lines if printer else int)
            await root.start(_serve_client, engine, peer, facts, root.cancel_scope, leaving)
            pages = "".join(f"; dashboard: {url}/dashboard{_hosts(settings, url)}" for url in urls)
            announce(f"MCP Probe speaks on standard input and output (toolsets: {settings.tools}){pages}")
            # The client's task ends everything after writing the rest.
            await stopped(signals, engine, trio.sleep_forever, announce, facts.signalled, facts.input_looked_at)
            facts.note_once("exit", 0)
            leaving.set()
            root.cancel_scope.cancel()


def _forwarded(
    engine: Engine, options: StdioOptions, announce: Callable[[str], None]
) -> AbstractAsyncContextManager[None]:
    if options.forward is None:
        return nullcontext()
    # Imports of a tenth of a second, unused by most servers.
    from ..server.forwarding.forwarder import Collector, CollectorError, forwarding

    try:
        collector = Collector.at(options.forward, engine.settings.forward_secret)
    except CollectorError as error:
        raise StartError(str(error)) from None
    return forwarding(engine, collector, options.label, announce)


def _watched(engine: Engine, screen: Screen | None) -> AbstractAsyncContextManager[None]:
    if screen is None:
        return nullcontext()
    # A hundredth of the imports, unused without this option.
    from ..telemetry.terminal.screen import watching

    return watching(engine, screen)


def _local(url: str) -> str:
    """A URL for clients on this machine: `0.0.0.0` and `[::]` become the loopback address."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


async def _open_browser(url: str, announce: Callable[[str], None]) -> None:
    # A hundredth of the imports, unused without this option.
    import webbrowser

    # In a thread, since a terminal browser blocks it until the browser ends.
    if not await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True):
        announce(f"no browser could be started here; open {url}")


def _served(settings: Settings, url: str) -> str:
    if settings.rooms == "only":
        return f"{url} (rooms only; toolsets: {settings.tools})"
    return f"{url}/mcp (toolsets: {settings.tools}){_hosts(settings, url)}"


def _hosts(settings: Settings, url: str) -> str:
    return f"; tool hosts: ws{url.removeprefix('http')}/toolhost" if settings.toolhost_secret else ""


async def _serve_client(
    engine: Engine,
    peer: Peer,
    facts: StdioFacts,
    root: trio.CancelScope,
    leaving: trio.Event,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with standard_streams() as (source, sink):
        task_status.started()
        wire = LineWire(source, sink, max_bytes=engine.settings.limits.max_body_bytes, facts=facts)
        gone = trio.Event()
        async with trio.open_nursery() as waiting:
            waiting.start_soon(_clean_up, gone, leaving)
            await serve_pipe(engine, wire, peer, on_end=gone.set)
            waiting.cancel_scope.cancel()
    # Legacy calls and tasks run elsewhere. They are cancelled with the rest, and may shield themselves.
    facts.note_once("exit", 0)
    leaving.set()
    root.cancel()


async def _clean_up(gone: trio.Event, leaving: trio.Event) -> None:
    await gone.wait()
    await trio.sleep(_GONE_S)
    leaving.set()
