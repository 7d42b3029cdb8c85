"""Saved logs are judged as they are read, whatever their size."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from probe.cli.program import main
from probe.judge.runs import saved
from probe.judge.runs.run import new_judge
from probe.judge.verdicts import Verdict
from probe.log import events, ndjson
from probe.log.event_log import Entry
from probe.log.ndjson import End
from probe.web.exports.archive import Archive
from probe.web.exports.extract import ClientEntries, Extract

from ..logs import HEADER, Log

TWO = "two clients use this name, acme 1 and other 1"


def written(path: Path, log: Log) -> Path:
    path.write_bytes(b"".join(ndjson.dump(HEADER, log.items, End(log.seq))))
    return path


def story(calls: int) -> Log:
    log = Log()
    session = log.http().session()
    session.post({"jsonrpc": "1.0", "id": 77, "method": "ping"})
    for _ in range(calls):
        session.answer(session.call("echo", {}), {"content": []})
    return log


def test_only_what_a_finding_rests_on_is_read_a_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = story(200)
    path = written(tmp_path / "log.ndjson", log)
    read, original = [], ndjson.read_entry

    def read_entry(text: bytes, kind: Any) -> Entry:
        read.append(text)
        return original(text, kind)

    monkeypatch.setattr(ndjson, "read_entry", read_entry)
    found = saved.judge_files(new_judge(), [path])
    [subject] = found.report.subjects
    for rule in subject.rules:
        for evidence in rule.evidence:
            for seq in evidence.seqs:
                entry = found.lookup(seq)
                assert entry is not None
                assert entry.seq == seq
    assert len(read) < 1.5 * len(log.items)


@pytest.mark.parametrize("label", ["a\n::error ::b", "a\u2028b", "a\x00b", "..", "a" * 65])
def test_a_label_of_a_log_keeps_the_rule_of_the_option(label: str, tmp_path: Path) -> None:
    log = Log()
    log.http(label).session()
    path = written(tmp_path / "log.ndjson", log)
    with pytest.raises(ndjson.NdjsonError, match=r"line \d+: label must be 1 to 64 characters"):
        saved.judge_files(new_judge(), [path])


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_a_report_is_whole_on_an_output_that_cannot_write_it(encoding: str, tmp_path: Path) -> None:
    log = Log()
    log.http(name="日本").session().post({"jsonrpc": "1.0", "id": 77, "method": "ping"})
    path = written(tmp_path / "log.ndjson", log)
    said = subprocess.run(
        [sys.executable, "-m", "probe", "judge", "--log", path],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert b"(\\u65e5\\u672c 1): " in said.stdout, said.stderr
    assert b"FAIL    jsonrpc.version" in said.stdout


def test_two_logs_are_read_again_each_for_its_own_entries(tmp_path: Path) -> None:
    first, second = written(tmp_path / "1.ndjson", story(1)), tmp_path / "2.ndjson"
    second.write_bytes(first.read_bytes().replace(b'"run":"', b'"run":"other'))
    found = saved.judge_files(new_judge(), [first, second])
    [subject] = found.report.subjects
    [wrong] = [rule for rule in subject.rules if rule.rule.id == "jsonrpc.version"]
    places = [evidence.seqs[0] for evidence in wrong.evidence if evidence.remark]
    assert [found.lookup(place).fact for place in places] == [found.lookup(places[0]).fact] * 2  # type: ignore[union-attr]


def _one(
    path: Path,
    run: str,
    *,
    comes: bool = True,
    faults: int = 0,
    warns: int = 0,
    left: int | None = None,
    whole: bool = True,
) -> str:
    log = Log()
    if comes:
        _use(log, faults, warns)
    if left is not None:
        log.process("exited", left)
    log.idle(10)
    end = End(log.seq) if whole else None
    path.write_bytes(b"".join(ndjson.dump(replace(HEADER, run=run), log.items, end)))
    return str(path)


def _use(log: Log, faults: int, warns: int) -> None:
    session = log.http().session()
    session.answer(session.request("tools/list"), {"tools": [{"name": "echo", "inputSchema": {}}]})
    session.answer(session.call("echo", {}), {"content": []})
    for _ in range(faults):
        session.post({"jsonrpc": "1.0", "id": session.client.new_id(), "method": "ping"})
    for _ in range(warns):
        session.notify("notifications/cancelled", {"requestId": "never", "reason": "x"})


@pytest.mark.parametrize(
    ("here", "there", "options", "status", "said"),
    [
        ({}, {}, (), 0, ""),
        ({"faults": 1}, {}, (), 1, "acme: jsonrpc.version is FAIL, and PASS there"),
        ({"faults": 1}, {"faults": 1}, (), 0, ""),
        ({}, {"faults": 1}, (), 0, ""),
        ({"warns": 1}, {}, (), 0, ""),
        ({"warns": 1}, {}, ("--strict",), 1, "is WARN, and NOT_OBSERVED there"),
        ({"warns": 1}, {}, ("--strict", "--require", "cancel.shape"), 2, "--against: cancel.shape was not observed"),
        ({}, {"whole": False}, (), 2, "--against: the log of run b was cut off"),
        ({"faults": 1}, {"whole": False}, (), 2, "--against: the log of run b was cut off"),
        ({"faults": 1}, {"comes": False}, (), 2, "--against: no request of a client came"),
        ({"faults": 1, "whole": False}, {}, (), 1, "--log: the log of run a was cut off"),
        ({"left": 0}, {"left": 1}, ("--strict",), 2, "session.deleted is WARN, and INCONCLUSIVE there"),
        ({"left": 0, "warns": 1}, {"left": 1}, ("--strict",), 1, "session.deleted is WARN, and INCONCLUSIVE there"),
        ({}, {}, ("--require", "ping.answered"), 2, "--log: ping.answered was not observed"),
        ({}, {}, ("--json", "-"), 2, "--against prints a comparison"),
    ],
)
def test_a_comparison_finds_what_became_worse(
    here: Mapping[str, Any],
    there: Mapping[str, Any],
    options: Sequence[str],
    status: int,
    said: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    first, second = _one(tmp_path / "1.ndjson", "a", **here), _one(tmp_path / "2.ndjson", "b", **there)
    found = main(["judge", "--log", first, "--against", second, *options])
    err = capfd.readouterr().err
    assert (found, said in err) == (status, True), err
    assert bool(err) == bool(said)


def test_a_comparison_says_rule_by_rule_what_became_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = _one(tmp_path / "1.ndjson", "a", faults=1), _one(tmp_path / "2.ndjson", "b", warns=1)
    main(["judge", "--log", first, "--against", second])
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "jsonrpc.version" in line] == ["worse"]
    assert any(line.startswith("only there") for line in lines)
    assert not any(line.startswith("same") for line in lines)
    main(["judge", "--log", first, "--against", second, "--verbose"])
    assert any(line.startswith("same ") for line in capfd.readouterr().out.splitlines())


def test_a_comparison_names_the_measured_values_that_differ(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, token in (("a", {}), ("b", {"_meta": {"progressToken": 1}})):
        log = Log()
        session = log.http().session()
        session.answer(session.call("echo", {}, **token), {"content": []})
        text = ndjson.dump(replace(HEADER, run=name), log.items, End(log.seq))
        (tmp_path / name).write_bytes(b"".join(text))
    for first, second, lines in (("b", "a", ["no → yes  acme: asks for progress"]), ("a", "a", [])):
        main(["judge", "--log", str(tmp_path / first), "--against", str(tmp_path / second)])
        said = capfd.readouterr().out.splitlines()
        assert [line.split(maxsplit=1)[1] for line in said if line.startswith("measured")] == lines


def test_somebody_hears_how_far_the_reading_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "_TOLD_BYTES", 1000)
    path = written(tmp_path / "log.ndjson", story(20))
    read: list[int] = []
    saved.judge_files(new_judge(), [path], read.append)
    assert sum(read) == path.stat().st_size
    assert len(read) > 5


def test_a_person_at_a_terminal_sees_how_far_the_reading_is(tmp_path: Path) -> None:
    path = written(tmp_path / "log.ndjson", story(20))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "probe", "judge", "--log", str(path), "--require", "none"]
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=False, timeout=60)
        finally:
            os.close(theirs)
        shown = terminal.read(10_000)
    assert ended.returncode == 1
    assert b"mcp-probe: reading" in shown
    assert b"100%" in shown
    assert b"reading" not in ended.stdout


@pytest.mark.parametrize(
    ("other", "lost", "status", "said"),
    [
        ("acme", False, 0, ""),
        ("acme", True, 1, "mcp-probe: acme: FAIL http.session-header\n"),
        ("other", False, 0, ""),
        (
            "other",
            True,
            2,
            f"mcp-probe: acme: {TWO}, so http.session-header is not decided; give each its own name\n",
        ),
    ],
)
def test_what_may_be_of_another_client_under_the_same_name_is_not_decided(
    other: str, lost: bool, status: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    _use(log, 0, 0)
    log.http(name=other).session()
    if lost:
        client = log.http()
        asked = client.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}, connection="tcp1")
        client.refuse(asked, 400, "MISSING_SESSION")
    found = main(["judge", "--log", str(written(tmp_path / "log.ndjson", log))])
    out, err = capfd.readouterr()
    assert (found, err) == (status, said)
    assert (f"More than one client may be judged here: {TWO}." in " ".join(out.split())) is (other != "acme")


@pytest.mark.parametrize("options", [(), ("--require", "none"), ("--require", "none", "--strict")])
def test_a_log_without_any_message_of_a_client_is_no_pass(
    options: Sequence[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log()
    client = log.http()
    client.respond(client.request_head("GET"), 405)
    path = written(tmp_path / "log.ndjson", log)
    none = "none of 1 HTTP requests had a request of the protocol that the server could read"
    assert main(["judge", "--log", str(path), *options]) == 2
    assert capfd.readouterr().err == f"mcp-probe: {none}\n"
    other = _one(tmp_path / "other.ndjson", "b")
    assert main(["judge", "--log", str(path), "--against", other, *options]) == 2
    assert f"--log: {none}" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--tools", "all"],
        ["--label", "client"],
        ["--session-idle-s", "5"],
        ["--no-judge"],
        ["--client-must-exit-0"],
        ["--stdio"],
        ["--room", "http://127.0.0.1:1"],
        ["--for", "5"],
        ["--save", "log.ndjson"],
    ],
    ids=lambda each: each[0],
)
def test_an_option_of_a_client_or_of_its_server_is_refused(
    options: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _one(tmp_path / "log.ndjson", "a")
    assert main(["judge", "--log", path, *options]) == 2
    said = f"error: {options[0]} is about a client or its server, and --log has none; see mcp-probe judge --help\n"
    assert capfd.readouterr().err == said


def test_a_setting_of_the_environment_does_not_hinder_a_saved_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_PROBE_TOOLS", "all")
    assert main(["judge", "--log", _one(tmp_path / "log.ndjson", "a")]) == 0


def test_a_report_ends_with_the_way_to_its_page_or_to_its_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a log", "b"):
        _one(tmp_path / name, name)

    def last(*options: str) -> Sequence[str]:
        assert main(["judge", "--log", "a log", *options]) == 0
        return capfd.readouterr().out.splitlines()[-2:]

    conclusion, way = last()
    assert conclusion.startswith("acme: no fault seen; ")
    assert way == "On the dashboard: mcp-probe open 'a log'"
    assert last("--log", "b")[1] == "On the dashboard, one of 2 logs: mcp-probe open 'a log'"
    assert last("--html", "a page.html")[1] == f"The report: file://{tmp_path}/a%20page.html"
    main(["judge", "--log", "b", "--json", "-"])
    assert capfd.readouterr().out.endswith("}\n"), "a program reads this"


@pytest.mark.parametrize("options", [(), ("--json", "-"), ("--against", "other")])
def test_a_reader_that_has_closed_ends_the_report_without_a_word(options: Sequence[str], tmp_path: Path) -> None:
    """As in `mcp-probe judge … | head`."""
    _one(tmp_path / "other", "b")
    written(tmp_path / "log.ndjson", story(1))
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "probe", "judge", "--log", "log.ndjson", *options],
            cwd=tmp_path,
            stdout=theirs,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(theirs)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_what_can_be_read_once_is_no_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["judge", "--log", str(tmp_path / "pipe")]) == 2
    assert capfd.readouterr().err.endswith("is no regular file: a log is read several times, so save it first\n")


def test_a_connection_without_a_name_is_no_pipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = Log()
    _use(log, 0, 0)
    log.items = [structs.replace(item, context=structs.replace(item.context, connection="")) for item in log.items]  # type: ignore[union-attr]
    assert main(["judge", "--log", str(written(tmp_path / "log.ndjson", log))]) == 0, capfd.readouterr().err


def _zipped(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, body in members.items():
            file.writestr(name, body)
    return path


def test_a_session_file_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = written(tmp_path / "log.ndjson", story(20)).read_bytes()
    whole = _zipped(tmp_path / "whole.mcpprobe", {"log.ndjson": log, "manifest.json": b"{}"})
    damaged, cut = tmp_path / "damaged.mcpprobe", tmp_path / "cut.mcpprobe"
    cut.write_bytes(whole.read_bytes()[: len(log)])
    damaged.write_bytes(whole.read_bytes().replace(b"log.ndjson", b"log.xxxxxx", 1))
    reasons = {
        cut: "a session file that is cut off: save or copy it again",
        damaged: "a session file that is damaged: File name in directory 'log.ndjson' and header b'log.xxxxxx' differ.",
        _zipped(tmp_path / "other.zip", {"a": b""}): "a zip without log.ndjson, so it is no session file",
        _zipped(tmp_path / "empty.zip", {}): "a zip without log.ndjson, so it is no session file",
    }
    for encoding, name in (("utf-8-sig", "UTF-8 with a byte order mark"), ("utf-16", "UTF-16")):
        (tmp_path / encoding).write_text(log.decode(), encoding)
        reasons[tmp_path / encoding] = f"it is {name}: save it as UTF-8 without a byte order mark"
    for path, reason in reasons.items():
        assert main(["judge", "--log", str(path)]) == 2
        assert capfd.readouterr().err.strip() == f"error: {path}: {reason}"


def test_the_log_of_a_session_file_is_judged_without_its_manifest(tmp_path: Path) -> None:
    log = written(tmp_path / "log.ndjson", story(1))
    packed = _zipped(tmp_path / "log.mcpprobe", {"log.ndjson": log.read_bytes()})
    there, here = (saved.judge_files(new_judge(), [path]).report for path in (packed, log))
    assert there.subjects == here.subjects


def extract(
    path: Path, log: Log, client: str | None, later: float = 0.0, kind: type[ClientEntries] = ClientEntries
) -> Path:
    """A session file, as `mcp-probe export` writes it."""
    wanted = None if client is None else kind(client)
    for item in log.items:
        if wanted is not None and isinstance(item, Entry):
            wanted.look(item)
    newest = next(item for item in reversed(log.items) if isinstance(item, Entry))
    archive = Archive(Extract(client), HEADER, 0.0, newest.at + later)
    for item in log.items:
        if wanted is None or not isinstance(item, Entry) or wanted.has(item):
            archive.add(item)
    archive.end_log(End(log.seq, "complete" if wanted is None else "filtered"))
    archive.finish(None)
    path.write_bytes(archive.take())
    return path


def two_clients() -> Log:
    """Two labelled clients by turns, and one without a label; `acme` deletes the session of `other`."""
    log = Log()
    log.add(events.ServerState("ready"))
    clients = [log.http().session(), log.http("other").session(), log.http(None, name="third").session()]
    for _ in range(3):
        for session in clients:
            session.answer(session.request("tools/list"), {"tools": [{"name": "echo", "inputSchema": {}}]})
            session.answer(session.call("echo", {}), {"content": []})
            log.after(2)
    headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": "2025-11-25"}
    head = log.http().request_head("DELETE", clients[1].context, headers=headers, named=clients[1].label)
    log.add(events.SessionClosed("deleted"), head.context, head.seq)
    clients[1].client.respond(head, 204)
    log.after(3)
    clients[1].client.refuse(clients[1].request("ping"), 404, "UNKNOWN_SESSION")
    for session in (clients[0], clients[2]):
        session.delete()
        log.idle(40)
    return log


@pytest.mark.parametrize("client", ["acme", "other", "s3"])
def test_a_file_about_one_client_has_the_verdicts_of_the_whole_log(
    client: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = two_clients()
    whole = saved.judge_files(new_judge(), [extract(tmp_path / "whole.mcpprobe", log, None)]).report
    path = extract(tmp_path / "part.mcpprobe", log, client)
    [subject] = saved.judge_files(new_judge(), [path]).report.subjects
    (before,) = (each for each in whole.subjects if each.label == client)
    assert [(each.rule.id, each.verdict, each.remark) for each in subject.rules] == [
        (each.rule.id, each.verdict, each.remark) for each in before.rules
    ]
    assert len([rule for rule in subject.rules if rule.verdict]) > 10
    status = main(["judge", "--log", str(path)])
    out, err = capfd.readouterr()
    assert (status, err) == (0, "")
    assert "is not whole: entries were filtered out" in out


def deletes_of_another(version: str) -> Log:
    """A client that deletes the session of another one, and does nothing else."""
    log = Log()
    # Another revision than was asked for: it is negotiated with `notifications/initialized`.
    other, deleting = log.http("other").session(asks="2025-03-26"), log.http()
    headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": version}
    head = deleting.request_head("DELETE", other.context, headers=headers, named=other.label)
    log.add(events.SessionClosed("deleted"), head.context, head.seq)
    deleting.respond(head, 204)
    log.idle(40)
    return log


@pytest.mark.parametrize(("version", "verdict"), [("2025-11-25", Verdict.PASS), ("2025-06-18", Verdict.WARN)])
def test_a_file_about_a_client_has_how_the_sessions_of_others_began_that_it_uses(
    version: str, verdict: Verdict, tmp_path: Path
) -> None:
    log = deletes_of_another(version)
    found = []
    for client in (None, "acme"):
        report = saved.judge_files(new_judge(), [extract(tmp_path / "file.mcpprobe", log, client)]).report
        (subject,) = (each for each in report.subjects if each.label == "acme")
        found.append({each.rule.id: each.verdict for each in subject.rules})
    assert found[0] == found[1]
    assert found[1]["http.version-header-negotiated"] is verdict
    assert found[1]["http.session-header"] is Verdict.PASS


class WithoutHandshakes(ClientEntries):
    """What a program saved about a client that left out how the sessions of others began."""

    def look(self, entry: Entry) -> None:
        super().look(entry)
        self._handshakes.clear()


class WithoutEnds(WithoutHandshakes):
    """Before that, the ends of its sessions too that were entries of others. These files have no `ended_at`."""

    def has(self, entry: Entry) -> bool:
        return super().has(entry) and (self._names(entry.context) or not isinstance(entry.fact, events.SessionClosed))


class WithoutRefused(WithoutEnds):
    """And before that, the exchanges that were refused before the session that they named was found."""

    def look(self, entry: Entry) -> None:
        if self._names(entry.context):
            super().look(entry)


def as_of_an_older_program(path: Path, log: Log, client: str, kind: type[ClientEntries] = WithoutEnds) -> Path:
    """A session file about a client, as an older program wrote it: also without `ended_at`."""
    with zipfile.ZipFile(extract(path, log, client, kind=kind)) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    manifest = json.loads(parts["manifest.json"])
    del manifest["ended_at"]
    return _zipped(path.with_name(f"old-{path.name}"), {**parts, "manifest.json": json.dumps(manifest).encode()})


@pytest.mark.parametrize("kind", [WithoutEnds, WithoutRefused])
@pytest.mark.parametrize("client", ["acme", "other"])
def test_a_file_of_an_older_program_about_one_client_is_judged_without_what_it_left_out(
    client: str, kind: type[ClientEntries], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = two_clients()
    (before,) = (
        each
        for each in saved.judge_files(new_judge(), [extract(tmp_path / "whole.mcpprobe", log, None)]).report.subjects
        if each.label == client
    )
    path = as_of_an_older_program(tmp_path / "part.mcpprobe", log, client, kind)
    (subject,) = (each for each in saved.judge_files(new_judge(), [path]).report.subjects if each.label == client)
    there = {each.rule.id: each.verdict for each in before.rules}
    less = {each.rule.id: each.verdict for each in subject.rules if each.verdict is not there[each.rule.id]}
    unknown = {
        "acme": {"session.nothing-after-delete": Verdict.NOT_OBSERVED},
        "other": {"polite.refused-not-hammered": Verdict.NOT_OBSERVED},
    }
    assert less == unknown[client]
    assert main(["judge", "--log", str(path), "--html", str(tmp_path / "page.html")]) == 0
    out, err = capfd.readouterr()
    said = "an older program left out the entries of other clients, and perhaps ends of sessions"
    assert said in " ".join(out.split())
    assert said in (tmp_path / "page.html").read_text()
    assert err == ""


@pytest.mark.parametrize("kind", [WithoutHandshakes, WithoutEnds, WithoutRefused])
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_what_a_session_of_another_client_owes_is_not_known_from_a_file_of_an_older_program(
    version: str, kind: type[ClientEntries], tmp_path: Path
) -> None:
    log, path = deletes_of_another(version), tmp_path / "part.mcpprobe"
    if kind is WithoutHandshakes:
        extract(path, log, "acme", kind=kind)
    else:
        path = as_of_an_older_program(path, log, "acme", kind)
    assert b"initialize" not in zipfile.ZipFile(path).read("log.ndjson")
    (subject,) = (each for each in saved.judge_files(new_judge(), [path]).report.subjects if each.label == "acme")
    found = {each.rule.id: each.verdict for each in subject.rules}
    assert max(found.values()) <= Verdict.PASS
    for rule in ("http.version-header-negotiated", "http.version-header", "http.session-header"):
        assert found[rule] is Verdict.NOT_OBSERVED


def test_a_file_of_an_older_program_may_lack_entries_of_its_client(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = two_clients()
    log.gap()
    log.http().session().request("ping")
    path = as_of_an_older_program(tmp_path / "part.mcpprobe", log, "acme")
    assert main(["judge", "--log", str(path)]) == 2
    assert "lacks entries" in capfd.readouterr().err


def test_a_file_about_one_client_may_lack_entries_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = two_clients()
    log.gap()
    log.http().session().request("ping")
    assert main(["judge", "--log", str(extract(tmp_path / "part.mcpprobe", log, "acme"))]) == 2
    assert "lacks entries" in capfd.readouterr().err


def test_a_file_about_one_session_of_a_client_lacks_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "--log", str(extract(tmp_path / "part.mcpprobe", two_clients(), "s1"))]) == 2
    assert "lacks entries" in capfd.readouterr().err


def test_a_session_file_of_another_version_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log.ndjson", story(1)).read_bytes()
    for manifest, reason in (
        (b'{"format":"mcpprobe","version":99}', "it has version 99 of the format; this program reads version 1"),
        (b"{}", "its manifest.json is not that of a session file"),
    ):
        path = _zipped(tmp_path / "log.mcpprobe", {"log.ndjson": log, "manifest.json": manifest})
        assert main(["judge", "--log", str(path)]) == 2
        assert capfd.readouterr().err == f"error: {path}: {reason}\n"


def _with_ended_at(path: Path, ended_at: bytes) -> str:
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    manifest = re.sub(rb'"ended_at":[^,]*', b'"ended_at":' + ended_at, parts["manifest.json"])
    return str(_zipped(path.with_name("other.mcpprobe"), {**parts, "manifest.json": manifest}))


def test_a_part_of_a_part_may_lack_entries_about_its_client(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = _with_ended_at(extract(tmp_path / "part.mcpprobe", two_clients(), "acme"), b"null")
    assert main(["judge", "--log", path]) == 2
    assert capfd.readouterr().err == (
        f"mcp-probe: the log of run {HEADER.run} lacks entries: "
        "it is a part of a log, and what was left out may be about its client\n"
    )


@pytest.mark.parametrize("ended_at", ['"now"', "true", "NaN", "-1", "1e300", "[]"])
def test_a_time_up_to_which_no_log_goes_is_refused_by_its_name(
    ended_at: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _with_ended_at(extract(tmp_path / "part.mcpprobe", two_clients(), "acme"), ended_at.encode())
    assert main(["judge", "--log", path]) == 2
    said = capfd.readouterr().err
    assert said.startswith(f"error: {path}: manifest.json: ended_at cannot be ")
    assert said.endswith(": it is no time between 1970 and 9999\n")


def test_a_time_up_to_which_a_log_goes_may_be_a_whole_number(tmp_path: Path) -> None:
    log = two_clients()
    path = extract(tmp_path / "part.mcpprobe", log, "acme")
    newest = next(item for item in reversed(log.items) if isinstance(item, Entry))
    assert main(["judge", "--log", _with_ended_at(path, b"%d" % (newest.at + 1))]) == 0


@pytest.mark.parametrize("client", [None, "acme"])
def test_a_session_file_is_judged_up_to_the_time_of_its_export(client: str | None, tmp_path: Path) -> None:
    """As the server judged it: nothing had come by then."""
    log = Log()
    log.http().session().delete()
    for later, verdict in ((20.0, Verdict.NOT_OBSERVED), (40.0, Verdict.PASS)):
        path = extract(tmp_path / "part.mcpprobe", log, client, later)
        [subject] = saved.judge_files(new_judge(), [path]).report.subjects
        [found] = (each.verdict for each in subject.rules if each.rule.id == "session.nothing-after-delete")
        assert found is verdict
