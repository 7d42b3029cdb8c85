"""A `.mcpprobe` file: a zip with these members, written while it is sent, and read back.

    log.ndjson      the event log, or a part of it, as `probe.log.ndjson` writes it
    audit.json      {"calls": […]}: the records of its tool calls, as `/api/calls` gives them
    report.json     the judge's report on the clients; missing if the server did not judge
    manifest.json   the members of `Manifest`

The manifest comes last: it describes the written entries. A file that is read is untrusted: no member is unpacked to a
disk, no name in it is used as a path, and the bytes read into memory are bounded.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

from pydantic_core import from_json

from ...judge.reports import as_json
from ...log import ndjson
from ...log.event_log import Entry, Gap
from ...log.ndjson import FILE_FORMAT, FILE_VERSION, MANIFEST, End, Header, NdjsonError, OpenedFile, SavedLog
from ...wire.jsonrpc import encode
from .extract import Extract, Overview, OverviewTally

SUFFIX: Final = ".mcpprobe"
LOG: Final = "log.ndjson"
AUDIT: Final = "audit.json"
REPORT: Final = "report.json"

# Twice as fast as the default and a tenth larger: the event loop compresses between calls.
_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a session file; times are seconds since the epoch.

    `program` is the version of the server that saved it. `run` is the run in the log. `client` and `call` are the
    query's; both are null for a whole log. `ended_at` is the time up to which the whole log goes, for a file that of
    its newest entry. It is null for another part of a part, which may lack entries about its client. `report` is true
    if there is one.
    """

    format: Literal["mcpprobe"]
    version: Literal[1]
    program: str
    run: str
    started_at: float
    saved_at: float
    ended_at: float | None
    client: str | None
    call: str | None
    report: bool
    contains: Overview


class _Packed(io.RawIOBase):
    """The output of the zip: bytes that wait to be taken. It cannot seek, so the zip is written forwards."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self._bytes += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken


class Archive:
    """One file while it is made: `add` entries and gaps in order, `end_log`, `add_call` for each row, `finish`.

    `take` returns the bytes packed since the last `take`. The caller closes it, finished or not.
    """

    def __init__(self, extract: Extract, header: Header, saved_at: float, ended_at: float | None = None) -> None:
        self._extract = extract
        self._header = header
        self._saved_at = saved_at
        self._ended_at = ended_at
        self._out = _Packed()
        self._zip = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        # The size of a log is not known before, and may be above 2 GiB.
        self._member = self._zip.open(LOG, "w", force_zip64=True)
        self._member.write(ndjson.header(header))
        self._comma = b""
        self._tally = OverviewTally()
        self._last = 0

    @property
    def calls(self) -> set[str]:
        return self._tally.calls

    def take(self) -> bytes:
        return self._out.take()

    def add(self, item: Entry | Gap, line: bytes | None = None) -> None:
        """An entry's JSON in `line` is not made again."""
        self._member.write(ndjson.line(item) if line is None else line + b"\n")
        self._tally.take(item)
        self._last = item.last if isinstance(item, Gap) else item.seq

    def end_log(self, end: End | None) -> None:
        """Without an `end` it is cut off; rows of the audit follow."""
        if end is not None:
            # A gap may reach beyond the end: entries may come and leave during the export.
            self._member.write(ndjson.line(End(max(end.last, self._last), end.why)))
        self._member.close()
        self._member = self._zip.open(AUDIT, "w", force_zip64=True)
        self._member.write(b'{"calls":[')

    def add_call(self, row: bytes) -> None:
        self._member.write(self._comma + row)
        self._comma = b","

    def finish(self, report: bytes | None) -> None:
        self._member.write(b"]}\n")
        self._member.close()
        if report is not None:
            self._put(REPORT, report + b"\n")
        header = self._header
        manifest = Manifest(
            FILE_FORMAT,
            FILE_VERSION,
            header.program,
            header.run,
            header.started_at,
            self._saved_at,
            self._ended_at,
            self._extract.client,
            self._extract.call,
            report is not None,
            self._tally.overview(),
        )
        self._put(MANIFEST, encode(asdict(manifest)) + b"\n")
        self.close()

    def close(self) -> None:
        self._member.close()
        self._zip.close()

    def _put(self, name: str, body: bytes) -> None:
        with self._zip.open(name, "w") as member:
            member.write(body)


class _Bounds(NamedTuple):
    """The most that is read of a file, in bytes but for entries and blank lines."""

    # Unpacked: eight times the default of a server. In memory it takes twice that.
    log: int = 512 * 1024 * 1024
    # Far above the limit of a message.
    line: int = 64 * 1024 * 1024
    entries: int = 1_000_000
    # No program writes blank lines. A hundred million pack into 100 kB and take minutes to read.
    blank_lines: int = 1000
    report: int = 64 * 1024 * 1024
    manifest: int = 1024 * 1024
    # Ours takes some hundred bytes; a longer one is refused unread.
    list_of_members: int = 4096


_AT_MOST: Final = _Bounds()
# Some milliseconds of reading.
_LINES_PER_LOOK: Final = 256
_MEMBERS: Final = frozenset({LOG, AUDIT, REPORT, MANIFEST})

_ZIP: Final = b"PK\x03\x04"
# The record at the end of a zip (APPNOTE.TXT 4.3.16), and the locator of a larger zip64 record (4.3.15).
_END: Final = struct.Struct("<4s4H2LH")
_END_SIGNATURE: Final = b"PK\x05\x06"
_LOCATOR_SIGNATURE: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
# The errors that the library raises for damaged and hostile zips.
_DEFECTS: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError),
)


class OpeningError(Exception):
    """The file cannot be opened; the message is one line."""


def _go_on() -> None:
    pass


def open_file(path: Path) -> OpenedFile:
    """Read a `.mcpprobe` file, or the lines of a log. Raises `OpeningError`."""
    try:
        with path.open("rb") as file:
            return read_file(path.name, file, _AT_MOST.log)
    except OSError as error:
        raise OpeningError(f"{path}: {error.strerror or error}") from None
    except OpeningError as error:
        raise OpeningError(f"{path}: {error}") from None


def read_file(name: str, file: IO[bytes], most_bytes: int, look: Callable[[], None] = _go_on) -> OpenedFile:
    """Read a seekable file of this name, with at most `most_bytes` of log.

    `look` is called every few milliseconds; an error that it raises ends the reading. Raises `OpeningError`.
    """
    packed = file.read(len(_ZIP)) == _ZIP
    file.seek(0)
    try:
        read = partial(_log, most_bytes=most_bytes, look=look)
        return _from_zip(name, file, read) if packed else OpenedFile(name, read(file))
    except NdjsonError as error:
        raise OpeningError(str(error)) from None


def _from_zip(name: str, file: IO[bytes], read: Callable[[IO[bytes]], SavedLog]) -> OpenedFile:
    _check_list(file)
    try:
        with zipfile.ZipFile(file) as members:
            _check_members(members.infolist())
            manifest = _object(members, MANIFEST, _AT_MOST.manifest)
            ndjson.check_manifest(manifest)
            judged = REPORT in members.namelist()
            report = _report(_object(members, REPORT, _AT_MOST.report)) if judged else None
            with members.open(LOG) as log:
                return OpenedFile(name, read(log), manifest, report)
    except NdjsonError:
        raise
    except _DEFECTS as error:
        raise OpeningError(f"it is damaged: {_one_line(error)}") from None


def _check_list(file: IO[bytes]) -> None:
    """Refuse a long list of members: the library would read all of it at once."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - _LOCATOR_BYTES))
    tail = file.read()
    file.seek(0)
    record = tail[-_END.size :]
    if len(record) < _END.size or not record.startswith(_END_SIGNATURE):
        raise OpeningError("it is cut off: the list at the end of the zip is missing")
    *_, length, _, comment = _END.unpack(record)
    if length > _AT_MOST.list_of_members or comment or tail.startswith(_LOCATOR_SIGNATURE):
        raise OpeningError("it is a zip, but no session file")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if unknown := [name for name in names if name not in _MEMBERS]:
        raise OpeningError(f"it is a zip, but no session file: {unknown[0][:100]!r} is none of its members")
    if len(set(names)) < len(names):
        raise OpeningError("it has two members of one name")
    for needed in (MANIFEST, LOG):
        if needed not in names:
            raise OpeningError(f"it is a zip, but no session file: {needed} is missing")
    for member in members:
        # Other methods may need more memory than bounded here: a dictionary may have 4 GiB.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise OpeningError(f"{member.filename} is packed in a way that no session file is")


def _object(members: zipfile.ZipFile, name: str, most: int) -> dict[str, Any]:
    with members.open(name) as member:
        body = member.read(most + 1)
    if len(body) > most:
        raise OpeningError(f"{name} has more than {most >> 20} MiB")
    try:
        value = from_json(body)
    except ValueError as error:
        raise OpeningError(f"{name} is no JSON: {_one_line(error)}") from None
    if not isinstance(value, dict):
        raise OpeningError(f"{name} is no JSON object")
    return value


def _report(value: dict[str, Any]) -> dict[str, Any]:
    subjects = value.get("subjects")
    known = value.get("format") == as_json.FORMAT and value.get("version") == as_json.VERSION
    if not known or not isinstance(subjects, list) or not all(map(_is_subject, subjects)):
        raise OpeningError(f"its {REPORT} is no report that this program reads")
    return value


def _is_subject(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("label"), str):
        return False
    rules = value.get("verdicts")
    return isinstance(rules, list) and all(isinstance(rule, dict) and "verdict" in rule for rule in rules)


def _log(source: IO[bytes], most_bytes: int, look: Callable[[], None]) -> SavedLog:
    reading = ndjson.LogReader(_lines(source, most_bytes, look))
    items: list[ndjson.Item] = []
    for item in reading:
        if len(items) == _AT_MOST.entries:
            raise OpeningError(f"its log has more than {_AT_MOST.entries:,} entries")
        items.append(item)
    return SavedLog(reading.header, items, reading.end)


def _lines(source: IO[bytes], most_bytes: int, look: Callable[[], None]) -> Iterator[bytes]:
    size = blank = 0
    for number in count():
        if number % _LINES_PER_LOOK == 0:
            look()
        line = source.readline(_AT_MOST.line + 1)
        if not line:
            return
        blank += line.isspace()
        if blank > _AT_MOST.blank_lines:
            raise OpeningError(f"its log has more than {_AT_MOST.blank_lines:,} blank lines")
        size += len(line)
        if len(line) > _AT_MOST.line:
            raise OpeningError(f"its log has a line of more than {_AT_MOST.line >> 20} MiB")
        if size > most_bytes:
            raise OpeningError(f"its log has more than {most_bytes >> 20} MiB")
        yield line


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
