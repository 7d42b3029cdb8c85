"""A run of `mcp-probe judge -- CLIENT`: a server, a client, and a judge that follows the log of the server.

`Running`          the server, on a port of its own
  nursery          owns the rest, and ends with the client
    follower       gives the log to the judge
    news           tells a person what was found, as it is found
    client         the process; the signals of this program are meant for it
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

import trio

from ...engine.engine import Engine
from ...log.context import Context, Recorder
from ...log.event_log import EventLog, Gap
from ...log.follower import LogFollower
from ...log.ndjson import End
from ...settings import Settings
from ..judge import Judge
from ..outcome import findings
from ..report import report_of
from ..rules.all import FUNCTIONS
from ..rules.catalogue import catalogue
from .client import ClientRun
from .judged import Judged, save
from .remote_room import RemoteRoom, RoomError, add_entries, in_thread

URL, CONFIG, PROMPT = "{url}", "{config}", "{prompt}"
"""Placeholders in a client's command: for the URL, for the path of an `mcpServers` file, for a text for a model."""

_NEWS_S = 0.5
# After the client's end its connections are closed, and what it sent last is read.
_QUIET_S = 1.0
# A room ends by itself, so its end may be left to it.
_END_S = 15.0
# Readings of the clock of a room; that of the shortest round trip counts.
_READINGS = 3
# The entries about one client's process, which are five at most, with its command line.
_MOST_OWN = 100
_OWN_BYTES = 16 * 1024 * 1024
_PROMPT_TEXT = (
    "Use the MCP server mcp-probe. List its tools. Call simple_tool; call progress with 20 steps of 200 ms and report "
    "the progress; call fail; call silent_call and cancel it after two seconds; run multi_stage_task as a task and "
    "follow it to its end; call elicit_simple_form and answer its question. Then stop."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run to make: the client's command and name, and how long it may take, in seconds.

    With `stdio` the client starts the server itself. The log is written to `save`, None for nowhere.
    """

    command: Sequence[str]
    label: str
    seconds: float | None = None
    stdio: bool = False
    save: Path | None = None


class JudgedServer(Protocol):
    """The server of a client, while it runs."""

    @property
    def engine(self) -> Engine:
        """The engine with the log that is judged."""

    @property
    def urls(self) -> Sequence[str]:
        """The URLs without a path under which it is reached."""

    async def wait_idle(self) -> None:
        """Wait until no response is being written, and no connection of the protocol is open."""


Running: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[JudgedServer]]
"""Runs a server with these settings for as long as the block."""


def new_judge() -> Judge:
    """A judge with every rule of the catalogue that has code."""
    return Judge(catalogue(), FUNCTIONS)


async def judge_client(running: Running, settings: Settings, wanted: Wanted, say: Callable[[str], None]) -> Judged:
    """Run a client against a server of its own, over HTTP. `say` gets lines for a person as it goes on.

    Raises `ClientStartError`, and what `running` raises.
    """
    async with running(settings) as server:
        log = server.engine.log
        judge = new_judge()
        judge.begin(server.engine.header(str(judge.catalogue.version)))
        follower = LogFollower(log, judge.take, lambda first, last: judge.take(Gap(first, last)))
        url = f"{server.urls[0]}/mcp?client={wanted.label}"
        say(f"the client gets {url}")
        with _command(wanted, url) as command, trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                await nursery.start(follower.serve)
                nursery.start_soon(_tell_news, judge, say)
                recorder = Recorder(log, Context(label=wanted.label))
                client = ClientRun(command, {**os.environ, "MCP_PROBE_URL": url}, recorder, wanted.seconds)
                ended = await client.run(signals)
                with trio.move_on_after(_QUIET_S):
                    await server.wait_idle()
                nursery.cancel_scope.cancel()
        follower.catch_up()
        judge.end(End(log.last))
        if wanted.save is not None:
            save(log, server.engine.header(str(judge.catalogue.version)), wanted.save)
        return Judged(report_of(judge), log.entry, ended)


async def judge_stdio(
    wanted: Wanted,
    arguments: Sequence[str],
    judge_logs: Callable[[Sequence[Path]], Judged],
    say: Callable[[str], None],
) -> Judged:
    """Run a client that starts the server itself, once or several times; each server leaves its log in a folder.

    `arguments` are options of `mcp-probe stdio`; `judge_logs` judges the logs that there are when the client has ended.
    Raises `ClientStartError`, and what `judge_logs` raises.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-probe-") as folder:
        # The client may start the server in another folder.
        logs = Path(folder) if wanted.save is None else wanted.save.absolute()
        before = set(logs.glob("*.ndjson"))
        server = [sys.executable, "-m", "probe", "stdio", "--log-to", str(logs), "--client", wanted.label, *arguments]
        say("the client starts the server itself")
        with (
            _command(wanted, None, server) as command,
            trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
        ):
            ended = await ClientRun(command, os.environ, None, wanted.seconds).run(signals)
        files = sorted(set(logs.glob("*.ndjson")) - before)
        return replace(judge_logs(files), ended=ended)


async def judge_in_room(
    url: str, wanted: Wanted, judge_logs: Callable[[Sequence[Path]], Judged], say: Callable[[str], None]
) -> Judged:
    """Run a client against a room of the probe at a URL, which is made for the run and ends with it.

    `judge_logs` judges the log of the room with the entries about the client's process. Raises `RoomError`,
    `ClientStartError`, `OSError`, `NdjsonError`, and what `judge_logs` raises.
    """
    # The times of day are those of the room.
    own = EventLog(lambda: (0.0, trio.current_time()), max_events=_MOST_OWN, max_bytes=_OWN_BYTES)
    room = await in_thread(RemoteRoom.make, url)
    try:
        client_url = f"{room.origin}/mcp?client={wanted.label}"
        # Its own address is a secret, and these lines often are public.
        say(f"the client gets a room at {url}; to watch it: {room.read_only}")
        with (
            _command(wanted, client_url) as command,
            trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
        ):
            environment = {**os.environ, "MCP_PROBE_URL": client_url}
            recorder = Recorder(own, Context(label=wanted.label))
            ended = await ClientRun(command, environment, recorder, wanted.seconds).run(signals)
            with tempfile.TemporaryDirectory(prefix="mcp-probe-") as folder:
                of_room, log = Path(folder) / "room.ndjson", wanted.save or Path(folder) / "log.ndjson"
                offset = await _saved(room, of_room, signals)
                add_entries(of_room, own.since(0, _MOST_OWN).entries, offset, log)
                return replace(judge_logs([log]), ended=ended)
    finally:
        with trio.move_on_after(_END_S, shield=True):
            try:
                await trio.to_thread.run_sync(room.end, abandon_on_cancel=True)
            except RoomError as error:
                say(f"the room could not be ended, and ends by itself: {error}")


async def _saved(room: RemoteRoom, path: Path, signals: AsyncIterator[int]) -> float:
    """Write the log of a room to `path`; returns its clock offset. Raises `RoomError`, also at a signal."""
    async with trio.open_nursery() as reading:

        async def stop_at_signal() -> None:
            await anext(signals)
            reading.cancel_scope.cancel()

        reading.start_soon(stop_at_signal)
        await trio.sleep(_QUIET_S)
        await in_thread(room.save_log, path)
        # The first page of a server takes long, so its clock is read behind another one.
        offset = await _clock_offset(room)
        reading.cancel_scope.cancel()
        return offset
    raise RoomError("a signal came before the log of the room was read, so there is no verdict")


async def _clock_offset(room: RemoteRoom) -> float:
    """The seconds from trio's clock to that of a room, within half of a round trip. Raises `RoomError`."""
    readings: list[tuple[float, float]] = []
    for _ in range(_READINGS):
        before = trio.current_time()
        now = await in_thread(room.now)
        took = trio.current_time() - before
        readings.append((took, now - before - took / 2))
    return min(readings)[1]


@contextmanager
def _command(wanted: Wanted, url: str | None, server: Sequence[str] = ()) -> Iterator[list[str]]:
    """The command line of the client; a file that it names exists for as long as the block."""
    given = list(wanted.command)
    with tempfile.TemporaryDirectory(prefix="mcp-probe-") as folder:
        path = Path(folder) / "mcp.json"
        entry: Mapping[str, object]
        entry = {"type": "http", "url": url} if url else {"command": server[0], "args": list(server[1:])}
        path.write_text(json.dumps({"mcpServers": {"mcp-probe": entry}}))
        values = {CONFIG: str(path), PROMPT: _PROMPT_TEXT, **({URL: url} if url else {})}
        said = [_filled(word, values) for word in given]
        placed = any(mark in word for word in given for mark in (URL, CONFIG))
        yield said if placed else [*said, *([url] if url else server)]


def _filled(word: str, values: Mapping[str, str]) -> str:
    for mark, value in values.items():
        word = word.replace(mark, value)
    return word


async def _tell_news(judge: Judge, say: Callable[[str], None]) -> None:
    """Pass each finding on once, and each time it becomes worse."""
    known: set[object] = set()
    while True:
        await trio.sleep(_NEWS_S)
        judge.settle()
        for finding in findings(report_of(judge)):
            if finding not in known:
                known.add(finding)
                say(f"{finding.verdict.name} {finding.rule} ({finding.client})")
