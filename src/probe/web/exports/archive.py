"""A `.mcpprobe` file: a zip with these members, written while it is sent.

    log.ndjson      the event log, or a part of it, as `probe.log.ndjson` writes it
    audit.json      {"calls": […]}: the records of its tool calls, as `/api/calls` gives them
    report.json     what the judge of the server says of its clients; not there where the server did not judge
    manifest.json   the members of `Manifest`

The manifest comes last, since it says what was really written.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import asdict, dataclass
from typing import Final, Literal

from ...log import ndjson
from ...log.event_log import Entry, Gap
from ...log.header import End, Header
from ...wire.jsonrpc import encode
from .extract import Extract
from .overview import Overview, OverviewTally

SUFFIX: Final = ".mcpprobe"
LOG: Final = "log.ndjson"
AUDIT: Final = "audit.json"
REPORT: Final = "report.json"
MANIFEST: Final = "manifest.json"
FORMAT: Final = "mcpprobe"
VERSION: Final = 1

# Twice as fast as the default, and a tenth larger: the event loop packs between calls.
_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a session file.

    `program` is the version of the server that saved it at `saved_at`, `run` the life of the server that the log is of,
    which began at `started_at`; both are seconds since the epoch. `client` and `call` are what was asked for; both are
    null where nothing was left out. `contains` is what the log has, and `report` says whether there is a report.
    """

    format: Literal["mcpprobe"]
    version: Literal[1]
    program: str
    run: str
    started_at: float
    saved_at: float
    client: str | None
    call: str | None
    report: bool
    contains: Overview


class _Packed(io.RawIOBase):
    """Where the zip is written to: bytes that wait to be taken. It cannot seek, so nothing is gone back to."""

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
    """One file in the making: entries and gaps in order, `end_log`, rows of calls, `finish`.

    `take` gives what was packed since it was asked last; nothing waits for the end. `saved_at` is seconds since the
    epoch. The caller closes it, whether it is finished or not.
    """

    def __init__(self, extract: Extract, header: Header, saved_at: float) -> None:
        self._extract = extract
        self._header = header
        self._saved_at = saved_at
        self._out = _Packed()
        self._zip = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        # A log has no size that is known before, and may be larger than 2 GiB.
        self._member = self._zip.open(LOG, "w", force_zip64=True)
        self._member.write(ndjson.header(header))
        self._comma = b""
        self._tally = OverviewTally()
        self._last = 0

    @property
    def calls(self) -> set[str]:
        """The ids of the tool calls that have begun in it."""
        return self._tally.calls

    def take(self) -> bytes:
        """The bytes that were packed since the last time; empty where they are not enough for a block yet."""
        return self._out.take()

    def add(self, item: Entry | Gap, line: bytes | None = None) -> None:
        """One more entry, whose JSON is `line` where somebody has it already, or entries that are lost."""
        self._member.write(ndjson.line(item) if line is None else line + b"\n")
        if isinstance(item, Gap):
            self._tally.miss(item)
            self._last = item.last
        else:
            self._tally.take(item)
            self._last = item.seq

    def end_log(self, end: End | None) -> None:
        """The log is over, and has an `end` unless it was cut off; rows of the audit follow."""
        if end is not None:
            # Entries that came while this was written, and have gone again, are in a gap beyond it.
            self._member.write(ndjson.line(End(max(end.last, self._last), end.why)))
        self._member.close()
        self._member = self._zip.open(AUDIT, "w", force_zip64=True)
        self._member.write(b'{"calls":[')

    def add_call(self, row: bytes) -> None:
        """One more row of the audit, in JSON."""
        self._member.write(self._comma + row)
        self._comma = b","

    def finish(self, report: bytes | None) -> None:
        """Write what is left: the report, and the manifest."""
        self._member.write(b"]}\n")
        self._member.close()
        if report is not None:
            self._put(REPORT, report + b"\n")
        header = self._header
        manifest = Manifest(
            FORMAT,
            VERSION,
            header.program,
            header.run,
            header.started_at,
            self._saved_at,
            self._extract.client,
            self._extract.call,
            report is not None,
            self._tally.overview(),
        )
        self._put(MANIFEST, encode(asdict(manifest)) + b"\n")
        self.close()

    def close(self) -> None:
        """End it, finished or not."""
        self._member.close()
        self._zip.close()

    def _put(self, name: str, body: bytes) -> None:
        with self._zip.open(name, "w") as member:
            member.write(body)
