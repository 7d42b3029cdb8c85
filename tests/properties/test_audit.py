"""The audit, at random: memory and the file answer alike, pages give each call once, the newest are kept, and what is
exported can be read back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from probe.engine.audit import reading as audit_reading
from probe.engine.audit.call_store import FileCalls, MemoryCalls, Unwritten
from probe.engine.audit.file import AuditDb, AuditFile, Written
from probe.engine.observer import Observer
from probe.log.event_log import EventLog
from probe.settings import Limits
from probe.views.records import CallRecord
from probe.views.search.call_filter import OUTCOMES, CallFilter, parse
from probe.web.api import tables
from probe.wire.jsonrpc import encode

from ..views.calls import RUN, begun, record, written
from . import at_most

MANY = 10**9
WORDS = st.sampled_from(["a", "b", "A", "É", "é", "ß", "a,b", "'", '"', "\\", "x\0y", "", "%", "_", "null", "5"])
TIMES = st.sampled_from([0.0, 1000.0, 1000.5, 1001.0, 1001.25, 2000.0])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, 2**60]) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "a.b", "0", "é"]), VALUES, max_size=4)
RECORDS = st.fixed_dictionaries(
    {
        "tool": WORDS,
        "toolset": WORDS,
        "outcome": st.none() | st.sampled_from(OUTCOMES),
        "session": st.none() | WORDS,
        "client_name": WORDS,
        "era": st.sampled_from(["legacy", "modern"]),
        "revision": WORDS,
        "task": st.none() | WORDS,
        "started_at": TIMES,
        "request_id": st.integers() | st.text(),
        "progress_token": st.none() | st.integers() | st.text(),
        "arguments": OBJECTS.map(encode),
        "result": st.none() | OBJECTS.map(encode),
        "cancel_reason": st.none() | st.text(),
        "client_version": st.text(),
        "steps_done": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    }
)
PATHS = st.sampled_from(
    [
        *("arguments.a", "arguments.b", r"arguments.a\.b", "arguments.a.b", "arguments.a.0", "arguments.é"),
        *("result.a", "result.a.0.b", "result.0"),
    ]
)
FILTERS = st.dictionaries(
    st.sampled_from(["tool", "toolset", "session", "client", "revision", "task", "text"]),
    WORDS.filter(bool),
    max_size=2,
).flatmap(
    lambda plain: st.tuples(
        st.dictionaries(st.sampled_from(["from", "until"]), TIMES.map(str), max_size=2),
        st.dictionaries(PATHS, VALUES.map(lambda value: encode(value).decode()) | WORDS, max_size=1),
        st.lists(st.sampled_from([*OUTCOMES, "running"]), max_size=3).map(
            lambda chosen: {"outcome": ",".join(chosen)} if chosen else {}
        ),
        st.sampled_from([{}, {"era": "legacy"}, {"era": "modern,legacy"}]),
    ).map(lambda more: parse({**plain, **{name: value for part in more for name, value in part.items()}}.items()))
)


@contextmanager
def database() -> Iterator[tuple[AuditDb, Path]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "audit.db"
        db = AuditDb.open(path, RUN, 1.0)
        try:
            yield db, path
        finally:
            db.close()


def all_pages(path: Path, wanted: CallFilter, limit: int) -> list[bytes]:
    rows: list[bytes] = []
    before = None
    while True:
        found = audit_reading.page(path, wanted, before, limit, MANY)
        rows += [row for _, row in found.rows]
        before = found.reached
        if before is None:
            return rows


@at_most(200)
@given(st.lists(RECORDS, max_size=12), st.lists(FILTERS, min_size=1, max_size=6), st.integers(1, 5))
def test_memory_and_the_file_agree(made: list[dict[str, Any]], filters: list[CallFilter], limit: int) -> None:
    records = [record(number, **fields) for number, fields in enumerate(made, 1)]
    with database() as (db, path):
        db.write([written(item) for item in records], MANY)
        for wanted in filters:
            expected = [item.encoded() for item in reversed(records) if wanted.matches(item)]
            assert [item.encoded() for item in reversed(records) if wanted.matches_row(item.encoded())] == expected
            assert all_pages(path, wanted, limit) == expected


@at_most(200)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(1, 20))
def test_the_newest_are_kept(batches: list[int], most: int) -> None:
    with database() as (db, path):
        number = 0
        for size in batches:
            db.write([written(record(number + each), (each, b"e")) for each in range(1, size + 1)], most)
            number += size
            kept = [json.loads(row)["call"] for row in all_pages(path, CallFilter(), 7)]
            assert kept == [f"c{each}" for each in range(number, max(0, number - most), -1)]


STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "start", "settle", "write", "fail", "page", "page"]), st.integers(0, 1000)),
    max_size=60,
)


class Story:
    """Calls that start, change and are written, and a reader who asks for one page after the other."""

    def __init__(self, path: Path, limit: int, max_bytes: int, wanted: CallFilter) -> None:
        log = EventLog(lambda: (0.0, 0.0), max_events=100, max_bytes=MANY)
        observer = Observer(log, RUN, Limits())
        self.views, self.records = observer.views, observer.records
        self.unwritten = Unwritten(self.records, 1000)
        self.file = AuditFile(path, RUN, 1.0)
        self.file.ensure()
        self.store = FileCalls(self.file, RUN, MemoryCalls(RUN, observer, log), self.unwritten, observer)
        self.limit = limit
        self.max_bytes = max_bytes
        self.wanted = wanted
        self.calls: list[CallRecord] = []
        self.seen: list[str] = []
        self.there: set[str] = set()
        self.cursor: str | None = None

    async def start(self, pick: int) -> None:
        self.views.take(begun(len(self.calls) + 1))
        self.calls.append(next(self.records.newest_first()))
        self.unwritten.note(self.calls[-1].call)

    async def settle(self, pick: int) -> None:
        if self.calls:
            item = self.calls[pick % len(self.calls)]
            item.outcome = "completed"
            self.unwritten.note(item.call)

    async def write(self, pick: int) -> None:
        self.file.write(self._take(pick), MANY)
        self.unwritten.commit()

    async def fail(self, pick: int) -> None:
        self._take(pick)
        self.unwritten.put_back()

    def _take(self, pick: int) -> list[Written]:
        batch = []
        while len(batch) <= pick % 5 and (taken := self.unwritten.take()) is not None:
            self.unwritten.taken_as(taken[0], 0)
            batch.append(written(taken[0]))
        return batch

    async def page(self, pick: int) -> None:
        if self.cursor is None:
            self.seen, self.there = [], {item.call for item in self.calls}
        page = await self.store.page(self.wanted, self.cursor, self.limit, self.max_bytes)
        rows = [json.loads(row) for row in page.rows]
        outcomes = {item.call: item.outcome for item in self.calls}
        assert all(row["outcome"] == outcomes[row["call"]] for row in rows)
        self.seen += [row["call"] for row in rows]
        self.cursor = page.next
        if self.cursor is None:
            assert set(self.seen) >= self.there
            assert self.seen == sorted(set(self.seen), key=lambda call: -int(call[1:]))


@at_most(300)
@given(STEPS, st.integers(1, 4), st.sampled_from([1, 1500, MANY]), st.booleans())
def test_pages_give_each_call_once_while_calls_start_change_and_are_written(
    steps: list[tuple[str, int]], limit: int, max_bytes: int, filtered: bool
) -> None:
    async def told() -> None:
        with TemporaryDirectory() as folder:
            wanted = parse([("tool", "simple_tool")] if filtered else [])
            story = Story(Path(folder) / "audit.db", limit, max_bytes, wanted)
            for step, pick in steps:
                await getattr(story, step)(pick)
            await story.page(0)
            while story.cursor is not None:
                await story.page(0)
            story.file.close()

    trio.run(told)


def _read_back(line: dict[str, str]) -> dict[str, Any]:
    """What a program makes of a line that knows how the columns are written."""
    texts = (
        *("id", "run", "call", "tool", "toolset", "era", "revision", "transport", "session", "client_name"),
        *("client_version", "task", "outcome", "cancelled_by", "cancel_reason", "progress_token_type"),
    )
    read: dict[str, Any] = {}
    for name, cell in line.items():
        if name in texts:
            read[name] = cell.removeprefix("'") or None
        else:
            read[name] = json.loads(cell) if cell else None
    return read


@at_most(300)
@given(st.lists(RECORDS, max_size=5))
def test_a_table_can_be_read_back_and_has_no_formulas(made: list[dict[str, Any]]) -> None:
    rows = [record(number, **fields).encoded() for number, fields in enumerate(made, 1)]
    text = b"".join([tables.csv_header(), *map(tables.csv_line, rows)]).decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        expected = json.loads(row)
        del expected["cancelled_how"]
        assert _read_back(line) == {name: None if value == "" else value for name, value in expected.items()} | {
            typed: expected[typed] for typed in ("request_id", "progress_token")
        }
        for name, cell in line.items():
            number = not isinstance(expected[name], str)
            assert number or cell[:1] not in {*"=+-@\t\r\n＝＋－＠"}, (name, cell)
