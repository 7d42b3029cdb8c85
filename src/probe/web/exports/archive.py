"""A `.mcpprobe` file: a zip with these members, written while it is sent.

    log.ndjson      the event log, or a part of it, as `probe.log.ndjson` writes it
    audit.json      {"calls": […]}: the records of its tool calls, as `/api/calls` gives them
    report.json     the judge's report on the clients; missing if the server did not judge
    manifest.json   the members of `Manifest`

The manifest comes last: it describes the written entries.
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

# Twice as fast as the default and a tenth larger: the event loop compresses between calls.
_LEVEL: Final = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a session file.

    `program` is the version of the server that saved it at `saved_at`. `run` is the run of the server in the log, begun
    at `started_at`. Both times are seconds since the epoch. `client` and `call` are the query's; both are null for a
    whole log. `contains` is the overview of the log, and `report` is true if there is a report.
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

    `take` returns the bytes packed since the last `take`, so that few are in memory. `saved_at` is seconds since the
    epoch. The caller closes it, finished or not.
    """

    def __init__(self, extract: Extract, header: Header, saved_at: float) -> None:
        self._extract = extract
        self._header = header
        self._saved_at = saved_at
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
        """The ids of the tool calls begun in it."""
        return self._tally.calls

    def take(self) -> bytes:
        """The bytes packed since the last `take`; empty until a block is full."""
        return self._out.take()

    def add(self, item: Entry | Gap, line: bytes | None = None) -> None:
        """Add an entry, with its JSON in `line` if made already, or a gap of lost entries."""
        self._member.write(ndjson.line(item) if line is None else line + b"\n")
        if isinstance(item, Gap):
            self._tally.miss(item)
            self._last = item.last
        else:
            self._tally.take(item)
            self._last = item.seq

    def end_log(self, end: End | None) -> None:
        """End the log, with an `end` unless it was cut off; rows of the audit follow."""
        if end is not None:
            # A gap may reach beyond the end: entries may come and leave during the export.
            self._member.write(ndjson.line(End(max(end.last, self._last), end.why)))
        self._member.close()
        self._member = self._zip.open(AUDIT, "w", force_zip64=True)
        self._member.write(b'{"calls":[')

    def add_call(self, row: bytes) -> None:
        """Add a row of the audit, in JSON."""
        self._member.write(self._comma + row)
        self._comma = b","

    def finish(self, report: bytes | None) -> None:
        """Write the report and the manifest."""
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
        """Close the zip, finished or not."""
        self._member.close()
        self._zip.close()

    def _put(self, name: str, body: bytes) -> None:
        with self._zip.open(name, "w") as member:
            member.write(body)
