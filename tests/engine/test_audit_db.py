"""The audit's file: what is written is there, only the audit's own file is touched, and it does not grow for ever."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from probe.engine.audit import file as audit_db
from probe.engine.audit import reading as audit_reading
from probe.engine.audit.file import AuditDb, AuditFile, AuditFileError
from probe.engine.audit.reading import APPLICATION_ID, MIGRATIONS, entry_as_now
from probe.log.context import Context
from probe.views.records import cancelled_how
from probe.views.search.call_filter import parse
from probe.wire.jsonrpc import encode

from ..support.shown import EVERY_CALL, as_value
from ..views.calls import RUN, record, written

MANY = 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit 100% ?#.db"


@pytest.fixture
def db(path: Path) -> Iterator[AuditDb]:
    opened = AuditDb.open(path, RUN, 1000.0)
    yield opened
    opened.close()


def calls_of(path: Path, *pairs: tuple[str, str]) -> list[str]:
    found = audit_reading.page(path, parse(pairs), None, MANY, MANY)
    return [json.loads(row)["call"] for _, row in found.rows]


def pragma(path: Path, name: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
    finally:
        connection.close()


def test_rows_and_their_evidence_come_back_as_they_are(db: AuditDb, path: Path) -> None:
    item = record(7, arguments=b'{"a": 1.0e0,"a":2}', client_name="n\0\xe4'\"", request_id="7")
    db.write([written(item, (70, b'{"seq":70}'), (72, b'{"seq":72}'))], MANY)
    found = audit_reading.page(path, EVERY_CALL, None, 10, MANY)
    assert (found.rows, found.reached) == ([(db.base + 70, item.encoded())], None)
    kept = audit_reading.find(path, f"{RUN}.c7", MANY)
    assert kept is not None
    assert (kept.row, kept.complete) == (item.encoded(), True)
    assert kept.entries == [(70, b'{"seq":70}'), (72, b'{"seq":72}')]
    assert calls_of(path, ("client", "n\0\xe4'\"")) == ["c7"]


def test_a_call_that_is_not_there_is_not_found(db: AuditDb, path: Path) -> None:
    db.write([written(record(1))], MANY)
    for id in ("c1", f"{RUN}.c2", f"{RUN}.c1 ", "", "x.c1", f"{RUN}.c%"):
        assert audit_reading.find(path, id, MANY) is None


def test_a_row_changes_and_its_evidence_grows(db: AuditDb, path: Path) -> None:
    item = record(1)
    db.write([written(item, (10, b"a"), (12, b"b"))], MANY)
    item.outcome, item.task = "completed", "t"
    # An entry may belong to a call later than one that came after it; and one that is sent again is there once.
    db.write([written(item, (11, b"c"), (12, b"b"), (13, b"d"))], MANY)
    kept = audit_reading.find(path, item.id, MANY)
    assert kept is not None
    assert (kept.row, [body for _, body in kept.entries]) == (item.encoded(), [b"a", b"c", b"b", b"d"])
    assert calls_of(path) == calls_of(path, ("outcome", "completed")) == calls_of(path, ("task", "t")) == ["c1"]
    assert calls_of(path, ("outcome", "running")) == []


def test_evidence_that_was_once_incomplete_stays_so(db: AuditDb, path: Path) -> None:
    for complete, stands in [(True, True), (False, False), (True, False)]:
        db.write([written(record(1), complete=complete)], MANY)
        kept = audit_reading.find(path, f"{RUN}.c1", MANY)
        assert kept is not None
        assert kept.complete is stands


def test_evidence_beyond_its_bound_is_left_out_and_that_is_told(db: AuditDb, path: Path) -> None:
    db.write([written(record(1), (10, b"x" * 60), (11, b"y" * 60))], MANY)
    kept = audit_reading.find(path, f"{RUN}.c1", 100)
    assert kept is not None
    assert (kept.complete, kept.entries) == (False, [(10, b"x" * 60)])


def test_a_writing_is_whole_or_not_at_all(db: AuditDb, path: Path) -> None:
    broken = written(record(2, tool=None))
    with pytest.raises(sqlite3.IntegrityError):
        db.write([written(record(1)), broken], MANY)
    assert calls_of(path) == []
    db.write([written(record(1))], MANY)
    assert calls_of(path) == ["c1"]


def test_the_file_is_in_wal_mode_and_has_a_name_and_a_version(db: AuditDb, path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert pragma(path, "application_id") == APPLICATION_ID
    assert pragma(path, "user_version") == len(MIGRATIONS)
    assert pragma(path, "auto_vacuum") == 2


def test_runs_follow_each_other_in_one_file(path: Path) -> None:
    """The order of calls over restarts does not depend on the clock, which may have been set back."""
    for place, run in enumerate(("ffff", "0000", "aaaa")):
        db = AuditDb.open(path, run, 5.0 - place)
        db.write([written(record(number, run=run, started_at=9.0 - place)) for number in (1, 2)], MANY)
        db.close()
    rows = audit_reading.page(path, EVERY_CALL, None, 10, MANY).rows
    ids = [json.loads(row)["id"] for _, row in rows]
    assert ids == ["aaaa.c2", "aaaa.c1", "0000.c2", "0000.c1", "ffff.c2", "ffff.c1"]


def test_a_call_that_ran_when_its_server_died_is_lost(path: Path) -> None:
    db = AuditDb.open(path, "first", 1.0)
    arguments = b'{"outcome":null,"arguments":{"outcome":null}, "n":1.50}'
    running = record(1, run="first", client_name='",outcome:null,"arguments":', arguments=arguments, steps_done=4)
    db.write([written(running, (10, b"e")), written(record(2, run="first", outcome="completed"))], MANY)
    db.close()
    again = AuditDb.open(path, "second", 2.0)
    kept = audit_reading.find(path, "first.c1", MANY)
    assert kept is not None
    assert json.loads(kept.row) == {**as_value(running), "outcome": "lost"}
    assert arguments in kept.row
    assert [body for _, body in kept.entries] == [b"e"]
    assert calls_of(path, ("outcome", "lost")) == ["c1"]
    assert calls_of(path, ("outcome", "completed")) == ["c2"]
    again.close()


def test_a_run_that_opens_its_file_again_goes_on(path: Path) -> None:
    """Its own calls are not lost: they run."""
    db = AuditDb.open(path, RUN, 1.0)
    db.write([written(record(1))], MANY)
    base = db.base
    db.close()
    again = AuditDb.open(path, RUN, 1.0)
    assert again.base == base
    assert calls_of(path, ("outcome", "running")) == ["c1"]
    again.close()


def test_one_server_writes_a_file_at_a_time(path: Path) -> None:
    db = AuditDb.open(path, RUN, 1.0)
    with pytest.raises(AuditFileError, match="is written by another server"):
        AuditDb.open(path, "other", 1.0)
    db.write([written(record(1))], MANY)
    db.close()
    AuditDb.open(path, "other", 1.0).close()


def _other_database(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (("CREATE TABLE mine (x)", "PRAGMA user_version = 3"), "the database of another program"),
        (("CREATE TABLE mine (x)",), "the database of another program"),
        (("CREATE TABLE calls (x)", "PRAGMA application_id = 7"), "the database of another program"),
        (("CREATE TABLE mine (x)", "PRAGMA journal_mode = WAL", "INSERT INTO mine VALUES (1)"), "another program"),
        (
            ("CREATE TABLE calls (x)", f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 99"),
            f"has version 99 of the audit; this program knows {len(MIGRATIONS)}",
        ),
    ],
)
def test_a_foreign_or_newer_database_is_refused_and_left_alone(
    path: Path, statements: tuple[str, ...], why: str
) -> None:
    _other_database(path, *statements)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(AuditFileError, match=why) as caught:
        AuditDb.open(path, RUN, 1.0)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    _other_database(path, "SELECT 1")


@pytest.mark.parametrize("content", [b"hello\n", b"SQLite format 3\0", b"SQLite format 4\0" + bytes(200), bytes(4096)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(AuditFileError, match="is no SQLite file"):
        AuditDb.open(path, RUN, 1.0)
    assert path.read_bytes() == content


def test_a_directory_or_a_pipe_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(AuditFileError, match="is no file"):
        AuditDb.open(path, RUN, 1.0)
    path.unlink()
    path.mkdir()
    with pytest.raises(AuditFileError, match="is no file"):
        AuditDb.open(path, RUN, 1.0)


def test_a_refused_file_is_not_held(path: Path) -> None:
    path.write_bytes(b"hello\n")
    with pytest.raises(AuditFileError):
        AuditDb.open(path, RUN, 1.0)
    path.unlink()
    AuditDb.open(path, RUN, 1.0).close()


def test_an_empty_file_becomes_the_audit(path: Path) -> None:
    path.touch()
    AuditDb.open(path, RUN, 1.0).close()
    assert pragma(path, "user_version") == len(MIGRATIONS)


# Of each earlier version a file that a server of that version has written, as statements of SQL.
FILES = Path(__file__).parent / "audit_files"


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(path)
    try:
        columns = {
            "runs": "number, run, started_at",
            "calls": """number, id, run, tool, toolset, outcome, session, client_name, era, revision, transport, task,
                started_at, complete""",
            "rows": "number, row",
            "evidence": "number, seq, entry",
        }
        return {name: connection.execute(f"SELECT {of} FROM {name}").fetchall() for name, of in columns.items()}
    finally:
        connection.close()


def left_by(version: int, path: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(path)
    connection.executescript((FILES / f"version_{version}.sql").read_text())
    connection.close()
    assert pragma(path, "user_version") == version
    return everything(path)


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_file_of_each_earlier_version_is_brought_up_and_nothing_is_lost(version: int, path: Path) -> None:
    before = left_by(version, path)
    db = AuditDb.open(path, RUN, 2e9)
    assert pragma(path, "user_version") == len(MIGRATIONS)
    after = everything(path)
    assert after == {**before, "runs": [*before["runs"], (2, RUN, 2e9)]}, "also byte for byte"
    db.write([written(record(1, tool="progress", label="ann"), (10, b"e"))], MANY)
    assert len(calls_of(path)) == 1 + len(before["calls"])
    assert len(calls_of(path, ("tool", "progress"))) == 3
    assert calls_of(path, ("label", "ann")) == ["c1"]
    assert calls_of(path, ("outcome", "cancelled"), ("until", "1999999999"), ("arguments.steps", "100")) != []
    db.close()


def test_what_version_1_has_written_is_shown_in_the_form_of_today(path: Path) -> None:
    before = left_by(1, path)
    AuditDb.open(path, RUN, 2e9).close()
    columns = [*json.loads(record().encoded())]
    rows = dict(audit_reading.page(path, EVERY_CALL, None, MANY, MANY).rows)
    assert len(rows) == len(before["rows"]) == 4
    for number, row in before["rows"]:
        shown = json.loads(rows[number])
        assert sorted(shown) == sorted(columns)
        by = json.loads(row)["cancelled_by"]
        how = None if by is None else cancelled_how(by)
        assert shown == {**json.loads(row), "label": None, "cancelled_how": how}
        kept = audit_reading.find(path, shown["id"], MANY)
        assert kept is not None
        assert (kept.row, kept.complete) == (rows[number], True)
        old = [(seq, entry) for call, seq, entry in before["evidence"] if call == number]
        assert [seq for seq, _ in kept.entries] == [seq for seq, _ in old]
        for (_, entry), (_, was) in zip(kept.entries, old, strict=True):
            check_entry(entry, was)


def test_a_row_is_told_how_its_call_was_cancelled_also_where_it_was_written_without_that() -> None:
    now = record(cancelled_by="deadline", arguments=b'{"cancelled_how": "no"}').encoded()
    members = json.loads(now)
    assert audit_reading.with_how(now) == now
    assert members.pop("cancelled_how") == "by a deadline"
    old = json.dumps(members, separators=(",", ":")).encode()
    assert json.loads(audit_reading.with_how(old)) == json.loads(now)


def check_entry(entry: bytes, was: bytes) -> None:
    found, old = json.loads(entry), json.loads(was)
    assert found["cause"] == old.pop("pair")
    assert found.keys() >= {"seq", "at", "mono", "kind", *Context.__struct_fields__}
    assert {name: found[name] for name in old} == old
    assert all(found[name] is None for name in found.keys() - old.keys() - {"cause"})
    _, mark, message = was.partition(b',"message":')
    assert entry.endswith(mark + message), "stored JSON keeps its bytes"


def test_of_a_dispatch_that_version_1_has_cancelled_the_cause_is_who_did_it() -> None:
    place, about = {"seq": 9, "at": 1.0, "mono": 1.0}, {"call": "c1", "session": "s1", "host": "h", "dispatch": "d1"}
    own = {"cause": "notification", "reason": '","cause":'}
    was = encode({**place, "kind": "dispatch.cancelled", "pair": None, **about, **own})
    shown = json.loads(entry_as_now(was))
    assert (shown["by"], shown["cause"], shown["reason"]) == ("notification", None, '","cause":')
    assert (shown["call"], shown["exchange"]) == ("c1", None)


def test_a_later_version_is_made_step_by_step_or_not_at_all(path: Path) -> None:
    AuditDb.open(path, "first", 1.0).close()
    newer = [*MIGRATIONS, "ALTER TABLE calls ADD COLUMN more TEXT", "UPDATE calls SET more = 'x'; CREATE TABLE t (x)"]
    with pytest.raises(sqlite3.Error):
        AuditDb.open(path, RUN, 1.0, [*newer, "CREATE TABLE t (x)"])
    assert pragma(path, "user_version") == len(MIGRATIONS)
    AuditDb.open(path, RUN, 1.0, newer).close()
    assert pragma(path, "user_version") == len(newer)
    with pytest.raises(AuditFileError, match=f"has version {len(newer)}"):
        AuditDb.open(path, RUN, 1.0)


def test_the_oldest_rows_make_room_with_their_evidence(db: AuditDb, path: Path) -> None:
    for number in range(1, 31):
        db.write([written(record(number), (10 * number, b"e"))], 10)
    assert calls_of(path) == [f"c{number}" for number in range(30, 20, -1)]
    connection = sqlite3.connect(path)
    for table in ("rows", "evidence"):
        (count, oldest) = connection.execute(f"SELECT count(*), min(number) FROM {table}").fetchone()
        assert (count, oldest) == (10, db.base + 210)
    connection.close()


def test_rows_that_change_make_no_room(db: AuditDb, path: Path) -> None:
    for number in range(1, 11):
        db.write([written(record(number))], 10)
    for _ in range(5):
        db.write([written(record(number, outcome="completed")) for number in range(1, 11)], 10)
    assert len(calls_of(path)) == 10


def test_runs_that_have_no_rows_any_more_are_forgotten(path: Path) -> None:
    for run in ("a", "b", "c"):
        db = AuditDb.open(path, run, 1.0)
        db.write([written(record(number, run=run, outcome="completed")) for number in range(1, 6)], 7)
        db.close()
    connection = sqlite3.connect(path)
    assert [run for (run,) in connection.execute("SELECT run FROM runs ORDER BY number")] == ["b", "c"]
    connection.close()


def test_a_bound_that_was_lowered_holds_after_the_next_writing(path: Path) -> None:
    db = AuditDb.open(path, "first", 1.0)
    db.write([written(record(number, run="first", outcome="completed")) for number in range(1, 101)], MANY)
    db.close()
    again = AuditDb.open(path, RUN, 2.0)
    again.write([written(record(1))], 10)
    assert len(calls_of(path)) == 10
    assert calls_of(path)[0] == "c1"
    again.close()


def test_the_file_does_not_grow_for_ever(path: Path) -> None:
    db = AuditDb.open(path, RUN, 1.0)
    sizes = []
    for number in range(1, 121):
        batch = [written(record(20 * number + each, arguments=b'"%b"' % (b"x" * 4000))) for each in range(20)]
        db.write(batch, 100)
        sizes.append(path.stat().st_size + path.with_name(path.name + "-wal").stat().st_size)
    assert max(sizes[60:]) <= 1.5 * max(sizes[:60])
    # Room that a smaller bound frees goes back to the file system.
    db.write([written(record(3000))], 10)
    db.close()
    assert path.stat().st_size < 10 * 8000 + 200_000


def test_the_oldest_make_room_for_bytes(path: Path) -> None:
    db = AuditDb.open(path, RUN, 1.0)
    for number in range(1, 61):
        db.write([written(record(number), (10 * number, b"x" * 200_000))], MANY, 2_000_000)
    kept = calls_of(path)
    assert kept == [f"c{number}" for number in range(60, 60 - len(kept), -1)]
    assert 5 <= len(kept) <= 10
    db.close()
    assert path.stat().st_size < 2_500_000


def test_what_made_room_while_it_ran_comes_back_incomplete(db: AuditDb, path: Path) -> None:
    db.write([written(record(1), (10, b"e"))], MANY)
    db.write([written(record(2)), written(record(3))], 2)
    again = replace(written(record(1, outcome="completed"), (11, b"f")), continues=True)
    db.write([again], MANY)
    kept = audit_reading.find(path, f"{RUN}.c1", MANY)
    assert kept is not None
    assert (kept.complete, kept.entries) == (False, [(11, b"f")])


def test_the_wal_is_cut_back_once_nobody_reads(db: AuditDb, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_db, "_WAL_BYTES", 100_000)
    with audit_reading._reading(path) as connection:
        connection.execute("SELECT count(*) FROM calls").fetchone()
        db.write([written(record(1), (10, b"x" * 200_000))], MANY)
        assert db.is_long
        db.shorten()
        assert db.is_long
    db.shorten()
    assert not db.is_long
    assert calls_of(path) == ["c1"]


def test_pages_give_each_row_once_and_end(db: AuditDb, path: Path) -> None:
    db.write([written(record(number, arguments=b'{"n":%d}' % (number % 3))) for number in range(1, 51)], MANY)
    for wanted, count in [(EVERY_CALL, 50), (parse([("arguments.n", "1")]), 17), (parse([("tool", "none")]), 0)]:
        seen, before, pages = [], None, 0
        while True:
            found = audit_reading.page(path, wanted, before, 7, MANY)
            assert len(found.rows) <= 7
            seen += [number for number, _ in found.rows]
            pages += 1
            if found.reached is None:
                break
            before = found.reached
        assert (len(seen), pages) == (count, max(1, -(-count // 7)))
        assert seen == sorted(set(seen), reverse=True)


def test_a_page_is_bounded_in_bytes_and_has_a_row(db: AuditDb, path: Path) -> None:
    db.write([written(record(number, arguments=b'"%b"' % (b"x" * 1000))) for number in range(1, 6)], MANY)
    assert len(audit_reading.page(path, EVERY_CALL, None, 10, 4000).rows) == 2
    found = audit_reading.page(path, EVERY_CALL, None, 10, 1)
    assert (len(found.rows), found.reached) == (1, db.base + 50)


def test_a_page_looks_into_a_bounded_number_of_rows_and_the_next_goes_on(
    db: AuditDb, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_reading, "MOST_READ", 10)
    db.write([written(record(number, arguments=b'{"n":%d}' % number)) for number in range(1, 31)], MANY)
    wanted = parse([("arguments.n", "15")])
    first = audit_reading.page(path, wanted, None, 5, MANY)
    assert (first.rows, first.reached) == ([], db.base + 210)
    second = audit_reading.page(path, wanted, first.reached, 5, MANY)
    assert ([number for number, _ in second.rows], second.reached) == ([db.base + 150], db.base + 110)
    assert audit_reading.page(path, wanted, second.reached, 5, MANY).reached is None


def test_a_page_that_looks_for_long_ends_early_and_the_next_goes_on(
    db: AuditDb, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_reading, "_LOOKING_S", -1.0)
    db.write([written(record(number)) for number in range(1, 4)], MANY)
    found = audit_reading.page(path, parse([("text", "nothing")]), None, 5, MANY)
    assert (found.rows, found.reached) == ([], db.base + 30)
    assert audit_reading.page(path, EVERY_CALL, None, 5, MANY).reached is None


def test_rows_to_skip_are_left_out(db: AuditDb, path: Path) -> None:
    db.write([written(record(number)) for number in (1, 2, 3)], MANY)
    found = audit_reading.page(path, EVERY_CALL, None, 2, MANY, {db.base + 30, db.base + 20})
    assert [number for number, _ in found.rows] == [db.base + 10]


@pytest.mark.parametrize("pairs", [[("toolset", "x"), ("from", "5")], [("outcome", "lost,running"), ("text", "x")]])
def test_a_question_that_takes_too_long_is_given_up(
    db: AuditDb, path: Path, monkeypatch: pytest.MonkeyPatch, pairs: list[tuple[str, str]]
) -> None:
    db.write([written(record(number)) for number in range(1, 200)], MANY)
    monkeypatch.setattr(audit_reading, "_SECONDS", -1.0)
    monkeypatch.setattr(audit_reading, "_STEPS", 1)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        audit_reading.page(path, parse(pairs), None, 10, MANY)


def test_a_reader_cannot_write_and_makes_no_file(db: AuditDb, path: Path) -> None:
    with audit_reading._reading(path) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM calls")
    missing = path.with_name("missing.db")
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        audit_reading.page(missing, EVERY_CALL, None, 10, MANY)
    assert not missing.exists()


def test_conditions_are_answered_by_an_index_where_there_is_one(db: AuditDb, path: Path) -> None:
    """A million rows are not read one by one to find the newest of one tool."""
    db.write([written(record(number)) for number in range(1, 200)], MANY)
    cases = {
        "tool": "calls_tool",
        "session": "calls_session",
        "client": "calls_client",
        "outcome": "calls_outcome",
    }
    for name, index in cases.items():
        query, values = audit_reading._query(parse([(name, "running" if name == "outcome" else "x")]).conditions, 5)
        with audit_reading._reading(path) as connection:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values))
        assert index in plan
        assert "TEMP B-TREE" not in plan
    for pairs in ([("from", "5"), ("until", "9")], [("outcome", "lost,running")], [("era", "legacy")], []):
        query, values = audit_reading._query(parse(pairs).conditions, None)
        with audit_reading._reading(path) as connection:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values))
        assert "TEMP B-TREE" not in plan


def test_a_file_that_was_deleted_is_made_anew(path: Path) -> None:
    file = AuditFile(path, RUN, 1.0)
    assert file.ensure()
    assert not file.ensure()
    file.write([written(record(1))], MANY)
    for name in path.parent.iterdir():
        name.unlink()
    assert file.ensure()
    file.write([written(record(2))], MANY)
    assert calls_of(path) == ["c2"]
    file.close()


def test_numbers_go_on_in_a_file_that_was_made_anew(path: Path) -> None:
    """So that a cursor of before does not begin with the newest again."""
    for run in ("first", "second"):
        AuditDb.open(path, run, 1.0).close()
    file = AuditFile(path, RUN, 1.0)
    file.ensure()
    before = file.base
    for name in path.parent.iterdir():
        name.unlink()
    file.ensure()
    assert file.base == before > 2**40
    file.close()


def test_a_file_that_was_replaced_by_a_foreign_one_is_left_alone(path: Path) -> None:
    file = AuditFile(path, RUN, 1.0)
    file.ensure()
    path.rename(path.with_name("elsewhere"))
    path.write_bytes(b"somebody's\n")
    with pytest.raises(AuditFileError, match="no SQLite file"):
        file.ensure()
    assert path.read_bytes() == b"somebody's\n"
    file.close()
