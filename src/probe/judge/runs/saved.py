"""Saved logs, judged line by line, so that they may be larger than the memory."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from msgspec import structs
from pydantic_core import from_json

from ...log import ndjson
from ...log.event_log import Entry
from ...log.ndjson import LATEST, MANIFEST, LogReader, NdjsonError, check_manifest
from ...views.retention import members
from ...wire.jsonrpc import clip
from ..judge import Judge
from ..report import Judgement, report_of
from .judged import Judged

# No line is read in pieces that a server has written: the body of a message has a limit far below.
_LONGEST_LINE = 256 * 1024 * 1024
# Bytes between two reports of progress.
_TOLD_BYTES = 1024 * 1024
# The member of a session file (`.mcpprobe`, a zip) that has its log.
_LOG: Final = "log.ndjson"
_LARGEST_MANIFEST: Final = 1024 * 1024
# A name that a server gives: of a session, or of a modern client.
_GIVEN_BY_SERVER: Final = re.compile(r"[a-z]\d+")
# The first bytes of a zip.
_ZIP: Final = b"PK\x03\x04"
_EMPTY_ZIP: Final = b"PK\x05\x06"
# Editors of some systems begin a text with one of these.
_MARKS: Final[Mapping[bytes, str]] = {
    b"\xef\xbb\xbf": "UTF-8 with a byte order mark",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class _About(NamedTuple):
    """The client of which a session file has all entries, None for all clients; the time up to which its log goes.

    An `old` file is one about a client without that time. The program that saved it left out where other clients
    deleted sessions of it.
    """

    client: str | None = None
    ended_at: float | None = None
    old: bool = False


def judge_files(judge: Judge, files: Sequence[Path], have_read: Callable[[int], None] = lambda size: None) -> Judged:
    """Judge logs and session files in the order in which their servers started.

    Raises `NdjsonError`, which names the file. `have_read` is called for every megabyte with the number of bytes that
    were read since its last call.
    """
    ordered = sorted(files, key=_started)
    runs: dict[str, Path] = {}
    for path in ordered:
        with _log_in(path) as (file, about):
            reading = _named(path, _told(_lines(file), have_read))
            other = runs.setdefault(reading.header.run, path)
            if other is not path:
                raise NdjsonError(f"{path} is of the same run as {other}: {reading.header.run}")
            judge.begin(reading.header, about=about.client, old=about.old)
            at = 0.0
            try:
                for item in reading:
                    judge.take(item)
                    at = item.at if isinstance(item, Entry) else at
            except NdjsonError as error:
                raise NdjsonError(f"{path}: {error}") from None
            if about.ended_at is not None and at:
                judge.tick(judge.now + about.ended_at - at)
            judge.end(reading.end)
    report = report_of(judge)
    found = _entries(ordered, [log.offset for log in judge.logs], _evidence(report))
    return Judged(report, found.get)


def _started(path: Path) -> tuple[float, str]:
    if not path.is_file():
        # A pipe can be read once.
        raise NdjsonError(f"{path} is no regular file: a log is read several times, so save it first")
    with _log_in(path) as (file, _):
        return _named(path, _lines(file)).header.started_at, path.name


@contextmanager
def _log_in(path: Path) -> Iterator[tuple[IO[bytes], _About]]:
    with path.open("rb") as file:
        begins = file.read(len(_ZIP))
        file.seek(0)
        for mark, name in _MARKS.items():
            if begins.startswith(mark):
                raise NdjsonError(f"{path}: it is {name}: save it as UTF-8 without a byte order mark")
        if begins not in (_ZIP, _EMPTY_ZIP):
            yield file, _About()
            return
        if not zipfile.is_zipfile(file):
            raise NdjsonError(f"{path}: a session file that is cut off: save or copy it again")
        try:
            with zipfile.ZipFile(file) as session, session.open(_LOG) as log:
                yield log, _about(path, session)
        except KeyError:
            raise NdjsonError(f"{path}: a zip without {_LOG}, so it is no session file") from None
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise NdjsonError(f"{path}: a session file that is damaged: {error}") from None


def _about(path: Path, session: zipfile.ZipFile) -> _About:
    """Nothing for a file about a call, or about one of several sessions of a client: entries of it are missing."""
    if MANIFEST not in session.namelist():
        return _About()
    with session.open(MANIFEST) as member:
        body = member.read(_LARGEST_MANIFEST)
    try:
        manifest = members(from_json(body))
        check_manifest(manifest)
        ended_at = _ended_at(manifest)
    except ValueError as error:
        raise NdjsonError(f"{path}: {error}") from None
    client, named = manifest.get("client"), members(manifest.get("contains")).get("clients")
    is_part = client is not None and named != [client] and _GIVEN_BY_SERVER.fullmatch(f"{client}") is not None
    if is_part or manifest.get("call") is not None:
        return _About()
    if ended_at is None:
        # Another part of a part has null, and may lack entries about its client.
        return _About(old=client is not None and "ended_at" not in manifest)
    return _About(None if client is None else f"{client}", ended_at)


def _ended_at(manifest: Mapping[str, Any]) -> float | None:
    """Raises `NdjsonError`."""
    ended_at = manifest.get("ended_at")
    if ended_at is None:
        return None
    if type(ended_at) not in (int, float) or not 0 <= ended_at <= LATEST:
        raise NdjsonError(f"{MANIFEST}: ended_at cannot be {clip(repr(ended_at))}: it is no time between 1970 and 9999")
    return float(ended_at)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.readline, _LONGEST_LINE), b"")


def _told(lines: Iterable[bytes], have_read: Callable[[int], None]) -> Iterator[bytes]:
    size = 0
    for line in lines:
        size += len(line)
        if size >= _TOLD_BYTES:
            have_read(size)
            size = 0
        yield line
    have_read(size)


def _named(path: Path, lines: Iterable[bytes]) -> LogReader:
    try:
        return LogReader(lines)
    except NdjsonError as error:
        raise NdjsonError(f"{path}: {error}") from None


def _evidence(report: Judgement) -> set[int]:
    return {
        seq
        for subject in report.subjects
        for rule in subject.rules
        for evidence in rule.evidence
        for seq in evidence.seqs
    }


def _entries(files: Sequence[Path], offsets: Sequence[int], wanted: set[int]) -> Mapping[int, Entry]:
    """The wanted entries, by their numbers in the report; read again, so that only these are kept."""
    found: dict[int, Entry] = {}
    for at, (path, offset) in enumerate(zip(files, offsets, strict=True)):
        until = offsets[at + 1] if at + 1 < len(offsets) else math.inf
        here = {number - offset for number in wanted if offset < number <= until}
        if here:
            with _log_in(path) as (file, _):
                for entry in ndjson.entries(_lines(file), here):
                    found[entry.seq + offset] = structs.replace(entry, seq=entry.seq + offset)
    return found
