"""The results of a run: the report with the entries that it names, and the log as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...log import ndjson
from ...log.event_log import EventLog, Gap
from ...log.ndjson import End, Header
from ..report import Judgement
from ..reports.wording import Lookup
from .client import ClientExit

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Judged:
    """A report. `lookup` finds the entries that it names; `ended` is the end of a client that was run."""

    report: Judgement
    lookup: Lookup
    ended: ClientExit | None = None


def save(log: EventLog, header: Header, path: Path) -> None:
    """Write a log as it is now. Raises `OSError`."""
    with path.open("wb") as file:
        file.write(ndjson.header(header))
        after = 0
        while after < log.last:
            page = log.since(after, _PAGE)
            if page.gap is not None:
                file.write(ndjson.line(Gap(page.gap.first, page.gap.last)))
            file.writelines(map(ndjson.line, page.entries))
            after = page.next
        file.write(ndjson.line(End(log.last)))
