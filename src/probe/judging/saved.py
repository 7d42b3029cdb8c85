"""Saved logs: judged line by line, so that they may be larger than the memory, and written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..judge.judge import Judge
from ..judge.report import Judgement, report_of
from ..judge.reports.wording import Lookup
from ..observe import ndjson
from ..observe.log import Entry, EventLog, Gap
from ..observe.ndjson import End, Header, LogReader, NdjsonError

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class JudgedFiles:
    """What came of saved logs; `lookup` finds the entries that the report names."""

    report: Judgement
    lookup: Lookup


def judge_files(judge: Judge, files: Sequence[Path]) -> JudgedFiles:
    """Judge files in the order in which their servers started. Raises `NdjsonError`, which names the file."""
    ordered = sorted(files, key=_started)
    runs: dict[str, Path] = {}
    for path in ordered:
        with path.open("rb") as lines:
            reading = _named(path, lines)
            other = runs.setdefault(reading.header.run, path)
            if other is not path:
                raise NdjsonError(f"{path} is of the same run as {other}: {reading.header.run}")
            judge.begin(reading.header)
            try:
                for item in reading:
                    judge.take(item)
            except NdjsonError as error:
                raise NdjsonError(f"{path}: {error}") from None
            judge.end(reading.end)
    report = report_of(judge)
    found = _entries(ordered, [log.offset for log in judge.logs], _evidence(report))
    return JudgedFiles(report, found.get)


def _started(path: Path) -> tuple[float, str]:
    with path.open("rb") as lines:
        return _named(path, lines).header.started_at, path.name


def _named(path: Path, lines: Iterable[bytes]) -> LogReader:
    try:
        return LogReader(lines)
    except NdjsonError as error:
        raise NdjsonError(f"{path}: {error}") from None


def _evidence(report: Judgement) -> set[int]:
    """The numbers of all entries that a report names."""
    return {
        seq
        for subject in report.subjects
        for rule in subject.rules
        for evidence in rule.evidence
        for seq in evidence.seqs
    }


def _entries(files: Sequence[Path], offsets: Sequence[int], wanted: set[int]) -> Mapping[int, Entry]:
    """The wanted entries, by the numbers that the report has for them; read again, so that only these are kept."""
    found: dict[int, Entry] = {}
    numbers = sorted(wanted)
    for path, offset in zip(files, offsets, strict=True):
        if bisect_right(numbers, offset) == len(numbers):
            continue
        with path.open("rb") as lines:
            for item in LogReader(lines):
                if isinstance(item, Entry) and item.seq + offset in wanted:
                    found[item.seq + offset] = replace(item, seq=item.seq + offset)
    return found


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
