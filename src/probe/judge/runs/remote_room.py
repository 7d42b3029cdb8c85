"""A room of a remote probe (docs/rooms.md), for a run of the judge or of pytest: made, read, and ended over HTTP."""

from __future__ import annotations

import json
import math
import shutil
import urllib.error
import urllib.request
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from typing import Any, Final, TypeVar

import trio
from msgspec import structs

from ...core.escaping import shown
from ...log import ndjson
from ...log.event_log import Entry, Gap
from ...log.ndjson import End, Item, LogReader

# The longest silence of a probe, in seconds.
_SILENCE_S: Final = 30
# The longest time for one method of a room, in seconds: it may read a log of 64 MiB at 2 Mbit/s.
_METHOD_S: Final = 300
_MOST_READ: Final = 64 * 1024
_ENDED: Final = "the room ended before its log was read, so there is no verdict"

_T = TypeVar("_T")


class RoomError(Exception):
    """A remote probe has no room for this run, or no longer; the message is one line with the reason."""


async def in_thread(method: Callable[..., _T], *arguments: Any) -> _T:
    """Call a method of a room in a thread, which goes on if this is cancelled. Raises `RoomError` after 300 s."""
    with trio.move_on_after(_METHOD_S):
        return await trio.to_thread.run_sync(method, *arguments, abandon_on_cancel=True)
    raise RoomError(f"the probe has not sent a whole answer within {_METHOD_S} s")


def run_in_thread(method: Callable[..., _T], *arguments: Any) -> _T:
    """Call a method as `in_thread` does, outside of trio."""
    return trio.run(in_thread, method, *arguments)


@dataclass(frozen=True, slots=True)
class RemoteRoom:
    """A room at `origin`, such as `https://probe.example/r/ROOM`. Its owner calls `end`.

    `read_only` is the address of its dashboard for others, `run` names its log. A method ends if the probe is silent
    for 30 s; call it by `in_thread`, which bounds a slow answer, too.
    """

    origin: str
    read_only: str
    run: str

    @classmethod
    def make(cls, url: str) -> RemoteRoom:
        """Make a room on the probe at a URL, and open it. Raises `RoomError`."""
        base = url.rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise RoomError(f"{url} is no URL of a probe, such as https://probe.example")
        try:
            with _asked("POST", f"{base}/api/rooms") as answer:
                made = _value(answer)
        except _StatusError as error:
            if error.status in (404, 405):
                raise RoomError(f"{url} makes no rooms: it is no MCP Probe, or one without --rooms") from None
            raise
        id, read_only = made.get("id"), made.get("read_only")
        if not isinstance(id, str) or not isinstance(read_only, dict):
            raise RoomError(f"{url} makes no rooms: what answers is no MCP Probe")
        # Not the address in the answer: this one is known to lead there.
        origin = f"{base}/r/{id}"
        with _asked("GET", f"{origin}/api/server") as answer:
            run = _value(answer).get("run")
        return cls(origin, str(read_only.get("dashboard")), str(run))

    def save_log(self, path: Path) -> None:
        """Write the event log to a file. Raises `RoomError`, and `NdjsonError` and `OSError` for the file."""
        try:
            with _asked("GET", f"{self.origin}/api/events.ndjson") as answer, path.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except _StatusError as error:
            if error.status == 404:
                raise RoomError(_ENDED) from None
            raise
        with path.open("rb") as lines:
            # Another process opens a new room under an id that is fresh, if the one with the room has ended.
            if LogReader(lines).header.run != self.run:
                raise RoomError(_ENDED)

    def now(self) -> float:
        """The time by the clock of the room, in seconds since 1970. Raises `RoomError`."""
        with _asked("GET", f"{self.origin}/api/server") as answer:
            server = _value(answer)
        try:
            now = float(server["started_at"] + server["uptime_s"])
        except (LookupError, TypeError, ValueError, OverflowError):
            now = math.nan
        if not math.isfinite(now):
            raise RoomError("the room does not tell its time: what answers is no MCP Probe")
        return now

    def end(self) -> None:
        """End it. Harmless if it has ended. Raises `RoomError`."""
        try:
            with _asked("DELETE", f"{self.origin}/api/room"):
                pass
        except _StatusError as error:
            if error.status != 404:
                raise


def add_entries(log: Path, own: Sequence[Entry], clock_offset: float, path: Path) -> None:
    """Write the log of a room to `path` with further entries: at their `mono` and `clock_offset` in seconds since 1970.

    Entries that follow them have higher numbers than in the room. Raises `NdjsonError` and `OSError`.
    """
    with log.open("rb") as lines, path.open("wb") as file:
        reader = LogReader(lines)
        file.write(ndjson.header(reader.header))
        last = 0
        for item in _merged(reader, own, clock_offset):
            last = item.last if isinstance(item, Gap) else item.seq
            file.write(ndjson.line(item))
        # A log that is cut off stays so.
        if reader.end is not None:
            file.write(ndjson.line(End(max(last, reader.end.last + len(own)), reader.end.why)))


def _merged(items: Iterable[Item], own: Sequence[Entry], clock_offset: float) -> Iterator[Item]:
    left = list(reversed(own))
    # For each added entry the number that the next one had.
    places: list[int] = []
    last, mono_offset = 0, 0.0

    def moved(number: int) -> int:
        return number + bisect_right(places, number)

    def placed(entry: Entry, before: int) -> Entry:
        at = entry.mono + clock_offset
        places.append(before)
        return structs.replace(entry, seq=before + len(places) - 1, at=at, mono=at - mono_offset)

    for item in items:
        if isinstance(item, Gap):
            last = item.last
            yield Gap(moved(item.first), moved(item.last))
            continue
        while left and left[-1].mono + clock_offset < item.at:
            mono_offset = item.at - item.mono
            yield placed(left.pop(), item.seq)
        last, mono_offset = item.seq, item.at - item.mono
        cause = None if item.cause is None else moved(item.cause)
        yield structs.replace(item, seq=moved(item.seq), cause=cause)
    while left:
        yield placed(left.pop(), last + 1)


class _StatusError(RoomError):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@contextmanager
def _asked(method: str, url: str) -> Iterator[HTTPResponse]:
    """The answer to a request while the block lasts. Raises `RoomError`; no message has the secret part of a URL."""
    server = url.partition("/r/")[0].removesuffix("/api/rooms")
    try:
        request = urllib.request.Request(url, method=method)  # noqa: S310 - `make` takes http and https only
    except ValueError as error:
        raise RoomError(f"{server} is no URL: {error}") from None
    try:
        with urllib.request.urlopen(request, timeout=_SILENCE_S) as answer:  # noqa: S310
            yield answer
    except urllib.error.HTTPError as error:
        with error:
            raise _StatusError(error.code, f"{server} answers with status {error.code}{_detail(error)}") from None
    except urllib.error.URLError as error:
        raise RoomError(f"{server} cannot be reached: {error.reason}") from None
    except UnicodeError as error:
        raise RoomError(f"{server} cannot be reached: {error}") from None
    except InvalidURL:
        # Its message may have the secret part.
        raise RoomError(f"{server} is no URL: a space or a control character is in it") from None
    except (TimeoutError, ConnectionError, HTTPException) as error:
        raise RoomError(f"the answer of {server} broke off: {str(error) or type(error).__name__}") from None


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        detail = _value(error).get("detail")
    except (OSError, HTTPException):
        return ""
    # Other servers have lists there.
    return f": {shown(detail)}" if isinstance(detail, str) else ""


def _value(answer: HTTPResponse | urllib.error.HTTPError) -> dict[str, Any]:
    try:
        value = json.loads(answer.read(_MOST_READ))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
