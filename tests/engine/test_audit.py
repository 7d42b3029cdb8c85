"""The audit's writer: every call is in the file in time, whatever happens to the file, and no call waits for it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.audit import file as audit_db
from probe.engine.audit import reading as audit_reading
from probe.engine.audit import writer as audit
from probe.engine.audit.call_store import AuditUnreadableError, CursorError
from probe.engine.audit.file import AuditDb, AuditFile, AuditFileError
from probe.engine.audit.writer import _ANEW as ANEW
from probe.views.search.call_filter import parse

from ..support.audit import MANY, asked, auditing, rows_in
from ..support.probe import Probe
from ..support.shown import EVERY_CALL, as_value, newest
from ..support.until import until

SLOW = {"audit_flush_s": 60}
"""Nothing is written unless somebody wants it to be."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program has the file for itself."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.close()


def states(probe: Probe) -> list[str]:
    return [event["state"] for event in probe.events("audit.state")]


def writer(probe: Probe) -> sqlite3.Connection:
    """SQLite's connection of the writer, for real faults."""
    file = probe.engine.audit._file
    assert file is not None
    assert file._db is not None
    return file._db._connection


async def settled(path: Path, count: int) -> None:
    await until(lambda: sum(row["outcome"] is not None for row in rows_in(path)) == count)


async def test_calls_are_in_the_file_soon_as_the_records_have_them(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        for steps in (1, 2):
            await client.tool("progress", {"steps": steps, "step_ms": 0})
        await until(lambda: [row["answer_delivered"] for row in rows_in(path)] == [True, True])
        assert rows_in(path) == [as_value(record) for record in newest(probe.engine.records, 9)][::-1]
        assert probe.engine.audit.status == audit.AuditStatus("file", "ok", None, None, 0)
        assert states(probe) == []


async def test_a_call_is_in_the_file_while_it_runs(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 2, "step_ms": 5000}}, "it")
        async with client.post(request):
            await until(lambda: rows_in(path) and rows_in(path)[0]["outcome"] is None)
            await client.cancel("it")
        await settled(path, 1)


@pytest.mark.parametrize("values", [{}, SLOW], ids=["written", "waiting"])
async def test_a_cancelled_call_says_so_also_after_the_file_is_opened_again(path: Path, values: dict[str, Any]) -> None:
    async with auditing(path, **values) as probe:
        client = await probe.client()
        arguments = {"steps": 100, "step_ms": 50}
        params = {"name": "progress", "arguments": arguments, "_meta": {"progressToken": 0}}
        async with client.post(client.request("tools/call", params, "it")) as answer:
            # 2025-11-25: the stream begins with an event that primes the client
            await answer.first(1 + 3)
            await client.cancel("it", "seen enough")
            await client.read(answer)
        (before,) = await asked(probe)
        detail = await probe.engine.audit.calls.get("c1", MANY)
    async with auditing(path, life=2) as probe:
        (row,) = await asked(probe, ("tool", "progress"), ("outcome", "cancelled"), ("arguments.steps", "100"))
        kept = await probe.engine.audit.calls.get(before["id"], MANY)
        assert await probe.engine.audit.calls.get("c1", MANY) is None, "of another run"
    assert row == {**before, "answer_delivered": row["answer_delivered"]}
    assert (row["done"], row["outcome"], row["cancelled_by"]) == (False, "cancelled", "notification")
    assert (row["cancel_reason"], row["steps_total"]) == ("seen enough", 100)
    assert (row["answered"], row["result"]) == (False, None)
    assert 3 <= row["steps_done"] < 100
    assert (row["progress_token"], row["progress_token_type"]) == (0, "integer")
    assert detail is not None
    assert kept is not None
    assert kept.complete
    assert kept.events[: len(detail.events)] == detail.events
    kinds = [json.loads(event)["kind"] for event in kept.events]
    assert [kind for kind in kinds if kind.startswith("call.")] == ["call.started", "call.cancelled", "call.settled"]
    places = [json.loads(event)["seq"] for event in kept.events]
    assert places == sorted(set(places))
    progress = [event for event in map(json.loads, kept.events) if event.get("method") == "notifications/progress"]
    assert [event["message"]["params"]["progress"] for event in progress][-1] == row["steps_done"]


@pytest.mark.parametrize("values", [{}, SLOW], ids=["written", "waiting"])
async def test_the_end_of_the_engine_is_in_the_file(path: Path, values: dict[str, Any]) -> None:
    """Cancelled from outside, with calls in flight: their end is known, so they are not lost."""
    async with trio.open_nursery() as nursery, auditing(path, **values) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 9, "step_ms": 5000}}, 1)

        async def call() -> None:
            async with client.post(request) as answer:
                await client.read(answer)

        nursery.start_soon(call)
        await until(lambda: newest(probe.engine.records, 1))
        await client.tool("chatty")
    assert {row["tool"]: row["outcome"] for row in rows_in(path)} == {"progress": "cancelled", "chatty": "completed"}


async def test_what_waits_is_seen_as_it_is_and_once(path: Path) -> None:
    async with auditing(path, **SLOW) as probe:
        client = await probe.client()
        for number in range(3):
            await client.call("tools/call", {"name": "chatty"}, number)
        assert rows_in(path) == []
        rows = await asked(probe, limit=2)
        assert [row["request_id"] for row in rows] == [2, 1, 0]
        assert await probe.engine.audit._flush(probe.engine.audit._file)
        assert len(rows_in(path)) == 3
        assert await asked(probe, limit=2) == rows
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 9, "step_ms": 5000}}, "it")
        async with client.post(request):
            await until(lambda: len(newest(probe.engine.records, 9)) == 4)
            await probe.engine.audit._flush(probe.engine.audit._file)
            assert [row["call"] for row in await asked(probe, ("outcome", "running"))] == ["c4"]
            await client.cancel("it")
            await until(lambda: probe.record()["outcome"])
            assert rows_in(path)[-1]["outcome"] is None
            # In the file it still runs; nobody is told so.
            assert await asked(probe, ("outcome", "running")) == []
            assert [row["call"] for row in await asked(probe, ("outcome", "cancelled"))] == ["c4"]
            assert [row["call"] for row in await asked(probe)] == ["c4", "c3", "c2", "c1"]


async def test_evidence_that_the_log_has_lost_is_in_the_file_and_what_is_not_written_in_the_log(path: Path) -> None:
    async with auditing(path, event_log_events=100, **SLOW) as probe:
        client = await probe.client()
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 9, "step_ms": 5000}}, "it")
        async with client.post(request):
            await until(lambda: newest(probe.engine.records, 1))
            await probe.engine.audit._flush(probe.engine.audit._file)
            for _ in range(40):
                await client.call("ping")
                probe.engine.observer.catch_up()
            await client.cancel("it")
            await until(lambda: probe.record()["outcome"])
        found = await probe.engine.audit.calls.get("c1", MANY)
        assert found is not None
        places = [json.loads(event)["seq"] for event in found.events]
        assert places[0] < probe.engine.log.first <= places[-1]
        assert found.complete
        assert json.loads(found.row)["outcome"] == "cancelled"
        # Without the file it would not be.
        memory = await probe.engine.audit.calls._memory.get("c1", MANY)  # type: ignore[attr-defined]
        assert memory is not None
        assert not memory.complete


async def test_evidence_that_nobody_has_any_more_is_missed(path: Path) -> None:
    async with auditing(path, event_log_events=100, **SLOW) as probe:
        client = await probe.client()
        await client.tool("chatty")
        for _ in range(40):
            await client.call("ping")
            probe.engine.observer.catch_up()
        for _ in range(2):
            found = await probe.engine.audit.calls.get("c1", MANY)
            assert found is not None
            assert (found.complete, found.events) == (False, [])
            await probe.engine.audit._flush(probe.engine.audit._file)


async def test_a_locked_file_is_told_of_once_and_written_when_it_is_free(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        await client.tool("chatty")
        await settled(path, 1)
        with locked(path):
            with trio.fail_after(2):
                for _ in range(20):
                    await client.tool("chatty")
            await until(lambda: probe.engine.audit.status.state == "failing")
            await until(lambda: probe.engine.audit._failures > 2)
            status = probe.engine.audit.status
            assert (status.store, status.lost) == ("file", 0)
            assert status.why == "database is locked (SQLITE_BUSY)"
            assert status.since is not None
            assert states(probe) == ["failing"]
            assert len(rows_in(path)) == 1
            assert len(await asked(probe)) == 21
        await settled(path, 21)
        await until(lambda: probe.engine.audit.status == audit.AuditStatus("file", "ok", None, None, 0))
        await until(lambda: states(probe) == ["failing", "ok"])


async def test_a_full_disk_is_told_of_and_written_when_there_is_room(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        await client.tool("chatty")
        await settled(path, 1)
        (pages,) = writer(probe).execute("PRAGMA page_count").fetchone()
        writer(probe).execute(f"PRAGMA max_page_count = {pages}").fetchall()
        for _ in range(20):
            await client.tool("chatty")
        await until(lambda: probe.engine.audit.status.state == "failing")
        assert probe.engine.audit.status.why == "database or disk is full (SQLITE_FULL)"
        assert len(await asked(probe)) == 21
        writer(probe).execute("PRAGMA max_page_count = 100000").fetchall()
        await settled(path, 21)
        assert len(await asked(probe)) == 21
        assert probe.engine.audit.status.lost == 0
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


async def test_a_file_that_became_read_only_is_opened_again(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        await until(path.exists)
        first = writer(probe)
        first.execute("PRAGMA query_only = 1")
        await client.tool("chatty")
        await settled(path, 1)
        await until(lambda: states(probe)[1:])
        assert [(event["state"], event["why"]) for event in probe.events("audit.state")] == [
            ("failing", "attempt to write a readonly database (SQLITE_READONLY)"),
            ("ok", ANEW),
        ]
        assert writer(probe) is not first


async def test_a_directory_that_was_deleted_is_told_of_and_used_when_it_is_there_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "audit.db"
    async with auditing(path) as probe:
        client = await probe.client()
        await client.tool("chatty")
        await settled(path, 1)
        folder.rename(tmp_path / "away")
        await client.tool("chatty")
        await until(lambda: probe.engine.audit.status.state == "failing")
        assert "No such file or directory" in str(probe.engine.audit.status.why)
        with pytest.raises(AuditUnreadableError, match="cannot be read now"):
            await probe.engine.audit.calls.page(EVERY_CALL, None, 10, MANY)
        # What memory has needs no file.
        assert await probe.engine.audit.calls.get("c2", MANY) is not None
        folder.mkdir()
        await settled(path, 2)
        assert [row["call"] for row in rows_in(path)] == ["c1", "c2"], "what memory has is written again"
        await until(lambda: states(probe) == ["failing", "ok"])


async def test_a_file_that_was_deleted_is_made_anew_and_that_is_told_each_time(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        for turn in (1, 2):
            await client.tool("chatty")
            await settled(path, turn)
            for file in path.parent.glob(f"{path.name}*"):
                if not file.name.endswith("-lock"):
                    file.unlink()
            await until(lambda turn=turn: len(states(probe)) == turn)
            await settled(path, turn)
        assert [(event["state"], event["why"]) for event in probe.events("audit.state")] == [("ok", ANEW)] * 2
        assert probe.engine.audit.status.why == ANEW


async def test_what_has_no_room_while_the_file_fails_is_counted(path: Path) -> None:
    async with auditing(path, call_records=50) as probe:
        client = await probe.client()
        with locked(path):
            for number in range(120):
                await client.call("tools/call", {"name": "chatty"}, number)
                probe.engine.observer.catch_up()
            await until(lambda: probe.engine.audit.status.state == "failing")
            await until(lambda: len(probe.engine.audit._unwritten) == 50)
        await until(lambda: not probe.engine.audit._unwritten.pending())
        lost = probe.engine.audit.status.lost
        assert lost == 70
        assert [row["request_id"] for row in rows_in(path)] == list(range(lost, 120))
        await until(lambda: states(probe) == ["failing", "ok"])
        assert probe.events("audit.state")[-1]["lost"] == lost


async def test_a_burst_is_written_before_it_must_make_room(path: Path) -> None:
    async with auditing(path, call_records=50, **SLOW) as probe:
        client = await probe.client()
        for _ in range(200):
            await client.tool("chatty")
            probe.engine.observer.catch_up()
            await until(lambda: len(probe.engine.audit._unwritten) <= 30)
        assert probe.engine.audit.status.lost == 0
    assert len(rows_in(path)) == 200


async def test_a_call_that_outlives_all_others_has_its_end_in_the_file(path: Path) -> None:
    async with auditing(path, call_records=50) as probe:
        client, other = await probe.client(), await probe.client()
        request = client.request("tools/call", {"name": "progress", "arguments": {"steps": 9, "step_ms": 5000}}, "it")
        async with client.post(request) as answer:
            await until(lambda: rows_in(path))
            for _ in range(60):
                await other.tool("chatty")
            await client.cancel("it")
            await client.read(answer)
        await until(lambda: rows_in(path)[0]["outcome"] == "cancelled")
        await until(lambda: not probe.engine.audit._unwritten._running)
        found = await probe.engine.audit.calls.get(rows_in(path)[0]["id"], MANY)
        assert found is not None
        assert found.complete


async def test_a_thread_that_cannot_be_had_is_told_of_and_the_server_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with auditing(path) as probe:
        client = await probe.client()

        def refuse(*_: object, **__: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr("trio._threads.start_thread_soon", refuse)
            await until(lambda: probe.engine.audit.status.state == "failing")
            assert probe.engine.audit.status.why == "can't start new thread"
            with pytest.raises(AuditUnreadableError, match="can't start new thread"):
                await probe.engine.audit.calls.page(EVERY_CALL, None, 10, MANY)
            await client.tool("chatty")
        await settled(path, 1)


async def test_a_path_of_the_machine_is_told_nobody(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        await client.tool("chatty")
        await settled(path, 1)
        diary = trio.Path(path.with_name("diary"))
        await diary.write_bytes(b"my diary\n")
        # In one step: where there is no file, the audit makes one at once, and this one would be written into that.
        await diary.replace(path)
        await until(lambda: probe.engine.audit.status.state == "failing")
        assert probe.engine.audit.status.why == "the file is no SQLite file; the audit leaves it alone"
        with pytest.raises(AuditUnreadableError) as refused:
            await probe.engine.audit.calls.page(EVERY_CALL, None, 10, MANY)
        assert str(path.parent) not in str(refused.value)


async def test_the_wal_is_cut_back_though_somebody_always_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_db, "_WAL_BYTES", 200_000)
    wal = path.with_name(path.name + "-wal")
    async with auditing(path) as probe, trio.open_nursery() as nursery:

        async def read() -> None:
            while True:
                await probe.engine.audit.calls.page(parse([("text", "nothing")]), None, 10, MANY)

        for _ in range(4):
            nursery.start_soon(read)
        client = await probe.client()
        for _ in range(20):
            await client.tool("progress", {"steps": 1, "step_ms": 0, "junk": "x" * 20_000})
        await until(lambda: len(rows_in(path)) == 20 and wal.stat().st_size < 200_000)
        nursery.cancel_scope.cancel()


async def test_the_tag_of_a_call_changes_with_its_evidence(probe: Probe) -> None:
    client = await probe.client()
    await client.call("tools/call", {"name": "fail", "arguments": {}}, "it")
    store = probe.engine.audit.calls
    tags = []
    for _ in range(2):
        found, again = await store.get("c1", MANY), await store.get("c1", MANY)
        assert found is not None
        assert found == again
        tags.append(found.tag)
        # It comes too late to change the row.
        await client.cancel("it")
    cut = await store.get("c1", 1000)
    assert cut is not None
    assert len({*tags, cut.tag}) == 3


async def test_the_end_of_the_server_does_not_wait_for_a_file_that_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(audit, "FINAL_S", 0.3)
    with ExitStack() as holding:
        async with auditing(path) as probe:
            client = await probe.client()
            await client.tool("chatty")
            await settled(path, 1)
            holding.enter_context(locked(path))
            await client.tool("chatty")
            file = probe.engine.audit._file
            assert file is not None
            began = trio.current_time()
        assert trio.current_time() - began < 10
        assert "1 calls that could not be written" in caplog.text
        # The thread that waits for the lock is left behind, and closes the file.
        with trio.fail_after(10):
            await until(lambda: file._db is None)
    assert len(rows_in(path)) == 1


@pytest.mark.parametrize("at", ["open", "write", "shorten"])
def test_a_file_that_is_abandoned_is_closed_by_whoever_uses_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    file = AuditFile(path, "a run", 0)
    if at != "open":
        file.ensure()
    begun, go_on = threading.Event(), threading.Event()
    real = getattr(AuditDb, at)

    def slow(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return real(*args, **kwargs)

    monkeypatch.setattr(AuditDb, at, slow)
    work = {"open": file.ensure, "write": partial(file.write, [], 10), "shorten": file.shorten}[at]
    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(10)
    file.abandon()
    assert (file._db is None) == (at == "open")
    go_on.set()
    worker.join()
    assert file._db is None
    monkeypatch.undo()
    other = AuditFile(path, "another run", 0)
    other.ensure()
    other.close()


async def test_the_end_of_the_server_waits_a_little_for_a_file_that_is_locked(path: Path) -> None:
    async with auditing(path) as probe:
        client = await probe.client()
        await client.tool("chatty")
        await settled(path, 1)
        holding = locked(path)
        holding.__enter__()
        await client.tool("chatty")
        await until(lambda: probe.engine.audit.status.state == "failing")
        # By now the writer waits for the lock once more; it is freed after the engine has been told to end.
        release = threading.Timer(0.8, lambda: holding.__exit__(None, None, None))
        release.start()
    release.join()
    assert [row["outcome"] for row in rows_in(path)] == ["completed", "completed"]


async def test_a_file_that_is_not_the_audits_keeps_the_engine_from_starting(path: Path) -> None:
    await trio.Path(path).write_bytes(b"my diary\n")
    for named, why in [(path, "is no SQLite file"), (path / "x" / "y", "cannot be used: .*Not a directory")]:
        with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(AuditFileError, match=why))):
            async with auditing(named):
                pass
    assert await trio.Path(path).read_bytes() == b"my diary\n"


async def test_without_a_file_there_is_nothing_to_do(probe: Probe, autojump_clock: MockClock) -> None:
    client = await probe.client()
    await client.tool("chatty")
    await trio.sleep(1000)
    assert probe.engine.audit.status == audit.AuditStatus("memory", "ok", None, None, 0)
    assert len(probe.engine.audit._unwritten) == 0


# What memory answers.


async def test_memory_gives_pages_and_single_calls(probe: Probe) -> None:
    client = await probe.client()
    for number in range(7):
        await client.call("tools/call", {"name": "chatty"}, number)
    rows = await asked(probe, limit=3)
    assert rows == [as_value(record) for record in newest(probe.engine.records, 9)]
    store = probe.engine.audit.calls
    for id in ("c3", f"{probe.engine.run}.c3"):
        found = await store.get(id, MANY)
        assert found is not None
        assert json.loads(found.row)["request_id"] == 2
        assert found.complete
    for id in ("c99", "other.c3", "", ".", "c3.", f"{probe.engine.run}.", f".{probe.engine.run}.c3"):
        assert await store.get(id, MANY) is None
    found = await store.get("c3", 1)
    assert found is not None
    assert (found.complete, found.events) == (False, [])


async def test_a_page_of_memory_that_passes_little_is_short_and_goes_on(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_reading, "MOST_READ", 3)
    client = await probe.client()
    for number in range(8):
        await client.call("tools/call", {"name": "chatty", "arguments": {"lines": number + 1}}, number)
    store, wanted = probe.engine.audit.calls, parse([("arguments.lines", "2")])
    page = await store.page(wanted, None, 5, MANY)
    assert page.rows == []
    assert page.next is not None
    assert [row["request_id"] for row in await asked(probe, ("arguments.lines", "2"))] == [1]


@pytest.mark.parametrize("cursor", ["", "x", "12", "-5", "other-12", *("00000001-" + n for n in ("", "-5", "9" * 30))])
async def test_a_cursor_that_is_none_is_refused(cursor: str, probe: Probe) -> None:
    assert probe.engine.run == "00000001"
    with pytest.raises(CursorError):
        await probe.engine.audit.calls.page(EVERY_CALL, cursor, 5, MANY)


@pytest.mark.parametrize("cursor", ["", "x", "00000001-12", "-5", "1e3", "9" * 30, "٣"])
async def test_a_cursor_of_the_file_that_is_none_is_refused(cursor: str, path: Path) -> None:
    async with auditing(path) as probe:
        with pytest.raises(CursorError):
            await probe.engine.audit.calls.page(EVERY_CALL, cursor, 5, MANY)
        assert (await probe.engine.audit.calls.page(EVERY_CALL, "9" * 19, 5, MANY)).rows == []
