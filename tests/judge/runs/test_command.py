"""`mcp-probe judge`: clients that are run, logs that are read, and what the program says and exits with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from probe.cli.program import main

DOCS = Path(__file__).parents[3] / "docs"
# A client that needs nothing but the standard library; what it does wrong is in its arguments.
CLIENT = textwrap.dedent(
    """
    import json, sys, urllib.request

    def post(method, version="2.0", accept="application/json, text/event-stream"):
        prefix = "io.modelcontextprotocol/"
        meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {},
                prefix + "clientInfo": {"name": "tester", "version": "1"}}
        params = {"_meta": meta, **({"name": "simple_tool", "arguments": {}} if method == "tools/call" else {})}
        post.id = getattr(post, "id", 0) + 1
        body = {"jsonrpc": version, "id": post.id, "method": method, "params": params}
        headers = {"content-type": "application/json", "accept": accept, "mcp-protocol-version": "2026-07-28",
                   "mcp-method": method, **({"mcp-name": "simple_tool"} if method == "tools/call" else {})}
        try:
            urllib.request.urlopen(urllib.request.Request(sys.argv[-1], json.dumps(body).encode(), headers)).read()
        except urllib.error.HTTPError as error:
            error.read()

    post("tools/list")
    post("tools/call")
    if "version" in sys.argv:
        post("tools/list", version="1.0")
    if "exit" in sys.argv:
        sys.exit(3)
    if "crash" in sys.argv:
        import os
        os.abort()
    """
)


@pytest.fixture
def client(tmp_path: Path) -> list[str]:
    path = tmp_path / "client.py"
    path.write_text(CLIENT)
    return [sys.executable, str(path)]


def judged(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit status of the command, its output, and its lines for a person."""
    status = main(["judge", *arguments])
    said = capfd.readouterr()
    return status, said.out, said.err


def report(path: Path) -> Mapping[str, Any]:
    value = json.loads(path.read_text())
    Draft202012Validator(json.loads((DOCS / "judge.schema.json").read_text())).validate(value)
    return value


def test_a_clean_client_a_broken_one_and_every_form(
    client: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = judged(capfd, "--", *client)
    assert status == 0
    assert out.startswith("client (tester 1): ")
    assert "FAIL" not in out
    assert "not observed" in out
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "html", "badge")}
    options = [word for form, path in files.items() for word in (f"--{form}", str(path))]
    log = tmp_path / "log.ndjson"
    status, out, err = judged(capfd, *options, "--save", str(log), "--label", "acme", "--", *client, "version")
    assert status == 1
    assert 'FAIL    jsonrpc.version  (MUST, broken in 1 of 3 checks)  A message lacks "jsonrpc": "2.0"' in out
    conclusion, page = out.splitlines()[-2:]
    assert conclusion.startswith("acme: breaks 1 MUST rule of 2026-07-28; "), "the conclusion comes last"
    assert page == f"The report: {files['html'].as_uri()}"
    assert 'jsonrpc is "1.0"' in out
    assert "acme: FAIL jsonrpc.version" in err
    [subject] = report(files["json"])["subjects"]
    assert (subject["label"], subject["verdict"]) == ("acme", "FAIL")
    failed = [rule for rule in subject["verdicts"] if rule["verdict"] == "FAIL"]
    assert [rule["rule"] for rule in failed] == ["jsonrpc.version"]
    assert 'failures="1"' in files["junit"].read_text()
    assert "jsonrpc.version" in files["html"].read_text()
    assert "1 failed" in files["badge"].read_text()
    assert judged(capfd, "--log", str(log), "--log", str(log))[0] == 2, "one run twice"
    # The saved log says the same, byte for byte.
    again = tmp_path / "again.json"
    session = tmp_path / "session.mcpprobe"
    with zipfile.ZipFile(session, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(log, "log.ndjson")
    for saved in (log, session):
        assert judged(capfd, "--log", str(saved), "--json", str(again))[0] == 1
        assert again.read_bytes() == files["json"].read_bytes()


@pytest.mark.parametrize(
    ("change", "said"), [(lambda text: text[:60] + b"?" * 40 + text[100:], "is damaged"), (None, "no session file")]
)
def test_a_zip_that_is_no_session_file_is_refused_by_name(
    change: Callable[[bytes], bytes] | None, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.mcpprobe"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("log.ndjson" if change else "notes.txt", b"".join(b"%d " % number for number in range(1000)))
    if change is not None:
        path.write_bytes(change(path.read_bytes()))
    status, _, err = judged(capfd, "--log", str(path))
    assert status == 2
    assert str(path) in err
    assert said in err


def test_warnings_count_where_they_are_told_to(client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert judged(capfd, "--require", "ping.answered", "--", *client)[0] == 2
    assert judged(capfd, "--require", "meta.*", "--", *client)[0] == 0
    assert judged(capfd, "--client-must-exit-0", "--", *client, "exit")[0] == 1
    status, _, err = judged(capfd, "--", *client, "exit")
    assert status == 0
    assert "the client ended: status 3" in err


def test_of_a_client_that_crashes_nothing_good_is_said(client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = judged(capfd, "--", *client, "crash")
    assert status == 2
    assert "the client ended: SIGABRT" in err
    assert judged(capfd, "--", *client, "version", "crash")[0] == 1, "what it did wrong before stands"


def test_of_a_client_that_never_began_its_own_error_is_said_first(capfd: pytest.CaptureFixture[str]) -> None:
    client = ["--", sys.executable, "-c", "import sys; sys.exit('no module')"]
    status, _, err = judged(capfd, *client)
    assert status == 2
    assert err.splitlines()[-1].endswith("ended with status 1 before it sent a request (what it wrote is above)")
    for options in ((), ("--require", "none")):
        assert judged(capfd, *options, "--client-must-exit-0", *client)[0] == 2


@pytest.mark.parametrize("code", [0, 1])
def test_without_a_request_there_is_no_verdict_even_if_nothing_is_required(
    code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    client = [sys.executable, "-c", f"import sys; sys.exit({code})"]
    status, out, _ = judged(capfd, "--require", "none", "--", *client)
    assert (status, out) == (2, "No client was seen.\n")


def test_requests_that_were_all_refused_came(capfd: pytest.CaptureFixture[str]) -> None:
    post = (
        "import sys, urllib.request as r\nfor _ in range(3):\n"
        "  try: r.urlopen(sys.argv[-1], b'no JSON')\n  except OSError: pass"
    )
    status, _, err = judged(capfd, "--", sys.executable, "-c", post)
    assert status in (1, 2)
    assert "none of 3 HTTP requests had a request of the protocol" in err
    assert "did it get the URL?" not in err


KILLS = """
import json, subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
prefix = "io.modelcontextprotocol/"
meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": {},
        prefix + "clientInfo": {"name": "tester", "version": "1"}}
for id, method in enumerate(["tools/list", "tools/call"]):
    params = {"_meta": meta, **({"name": "simple_tool", "arguments": {}} if id else {})}
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\\n")
    server.stdin.flush()
    server.stdout.readline()
# The log is 10 ms behind, and more on a busy machine.
time.sleep(1)
server.kill()
server.wait()
"""


def test_a_server_that_its_client_kills_is_judged_by_what_was_there(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = judged(capfd, "--stdio", "--", sys.executable, "-c", KILLS)
    assert "the server was killed, by its client most likely" in err
    assert "passed" in out
    assert status == 0, err


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ('rule = "jsonrpc.version"\nverdict = "FAIL"\nreason = "known"', 0, ""),
        (
            'rule = "jsonrpc.version"\nverdict = "FAIL"\nreason = "known"\nuntil = 2020-01-01',
            1,
            "no longer expected since 2020-01-01",
        ),
        ('rule = "jsonrpc.version"\nverdict = "WARN"\nreason = "known"', 1, "FAIL jsonrpc.version"),
        ('rule = "meta.client-info"\nverdict = "WARN"\nreason = "known"', 1, "it did not come: meta.client-info"),
        (
            'rule = "jsonrpc.version"\nverdict = "FAIL"\nreason = "x"\nuntil = 2027-01-01T00:00:00Z',
            2,
            "until is a date",
        ),
        ('rule = "nope"\nverdict = "FAIL"\nreason = "known"', 2, "there is no rule 'nope'"),
        ('rule = "page.empty-cursor"\nverdict = "WARN"\nreason = "known"', 2, "'page.empty-cursor' needs a drill"),
        ('rule = "jsonrpc.version"\nverdict = "FAIL"', 2, "a reason is needed"),
        ("rule = ", 2, "no TOML"),
    ],
)
def test_expected_faults(
    text: str, status: int, said: str, client: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expect.toml"
    path.write_text(f"[[expect]]\n{text}\n")
    found, _, err = judged(capfd, "--expect", str(path), "--", *client, "version")
    assert (found, said in err) == (status, True), err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "nan", "--", "true"], "--for must be a number of seconds"),
        (["--junit", "/nonexistent/x.xml", "--", "true"], "error: /nonexistent/x.xml: No such file or directory"),
        ([], "give the command of a client behind --, or saved logs with --log"),
        (["--verbose", "--json", "-", "--", "true"], "--verbose is about the report as text, and --json - prints JSON"),
        (["--require", "none", "--require", "call", "--", "true"], "nothing, so --require call has no effect"),
        (["--room", "http://127.0.0.1:1", "--no-judge", "--", "true"], "--no-judge is a setting of a server"),
        (["--", "no-such-program"], "no-such-program cannot be started: No such file or directory"),
        (["--", __file__], "A script needs its interpreter before it"),
        (["--label", "two words", "--", "true"], "label must be 1 to 64 characters"),
        (["--require", "nope", "--", "true"], "there is no rule 'nope'"),
        (["--require", "pge.*", "--", "true"], "'pge.*'; did you mean page.* or ping.* or progress.*?"),
        (["--require", "ping.answred", "--", "true"], "did you mean ping.answered"),
        (["--", "true"], "no request of a client came"),
        (["--", "true"], "did it get the URL?"),
        (["--stdio", "--", "true"], "did it start the server?"),
        (["--", "sh", "-c", "kill -9 $$"], "your client ended with SIGKILL before it sent"),
    ],
)
def test_nothing_can_be_said(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = judged(capfd, *arguments)
    assert (status, said in err, "Traceback" in err) == (2, True, False), err


def test_where_nothing_can_be_said_no_report_is_left(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert judged(capfd, "--junit", str(tmp_path / "report.xml"), "--", "no-such-program")[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_logs_that_cannot_be_judged(tmp_path: Path, client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.ndjson"
    judged(capfd, "--save", str(log), "--", *client)
    lines = log.read_bytes().splitlines(keepends=True)
    for text, said in (
        (b"", "a log begins with"),
        (b"\x89PNG\r\n", "line 1: no JSON, so it is no event log"),
        (lines[0].replace(b'"version":2', b'"version":1'), "version 1 of the format"),
        (b"".join(lines[:-1]), "was cut off"),
        (b"".join([*lines[:3], *lines[5:]]), "lacks entries"),
        (b"".join([lines[0], lines[2], lines[1], *lines[3:]]), "numbers only grow"),
        (b"".join([*lines[:4], b'{"seq":99,"kind":"nope"}\n']), "kind cannot be 'nope'"),
    ):
        path = tmp_path / "bad.ndjson"
        path.write_bytes(text)
        status, _, err = judged(capfd, "--log", str(path))
        assert (status, said in err, "Traceback" in err) == (2, True, False), err


def test_a_client_that_hangs_and_heeds_no_signal_is_killed_with_its_children(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.judge.runs.client._END_S", 0.2)
    pid = tmp_path / "pid"
    script = f"trap '' TERM; sleep 600 & echo $! >{pid}; wait; wait"
    status, _, err = judged(capfd, "--for", "0.3", "--", "sh", "-c", script)
    assert (status, "its time was over" in err) == (2, True)
    child = Path(f"/proc/{pid.read_text().strip()}/stat")
    # It is told at once; that it is over takes the system a moment.
    until = time.monotonic() + 30
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() < until


def test_a_signal_ends_the_client_and_what_was_seen_is_told(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "probe", "judge", "--", "sh", "-c", f"echo >{ready}; exec sleep 600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "the client gets http://127.0.0.1:" in process.stderr.readline()
        while not ready.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (2, False), err
    assert "the client ended: SIGTERM" in err
    assert "No client was seen." in out


def test_nothing_that_a_client_has_started_survives_and_nothing_else_is_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.judge.runs.client._END_S", 0.3)
    pids = tmp_path / "pids"
    # The first is in a session of its own, the second heeds no signal, the third has lost its parent.
    script = f"""
        setsid sleep 600 & echo $! >>{pids}
        setsid sh -c "trap '' TERM; echo \\$\\$ >>{pids}; while :; do sleep 1; done" &
        (setsid sh -c 'sleep 600 & echo $! >>{pids}' &)
        while [ $(wc -l <{pids}) -lt 3 ]; do sleep 0.1; done
    """
    other = subprocess.Popen(["sleep", "600"])
    left: list[int] = []
    try:
        status, _, _ = judged(capfd, "--", "sh", "-c", script)
        left = [int(pid) for pid in pids.read_text().split()]
        assert (status, len(left)) == (2, 3)
        assert [pid for pid in left if _runs(pid)] == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        for pid in filter(_runs, left):
            os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


SESSION = textwrap.dedent(
    """
    import json, subprocess, sys, urllib.request

    def send(value, method="POST", **headers):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
        body = None if value is None else json.dumps({"jsonrpc": "2.0", **value}).encode()
        return urllib.request.urlopen(urllib.request.Request(sys.argv[-1], body, headers, method=method))

    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
    opened = send({"id": 1, "method": "initialize", "params": about})
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    send({"method": "notifications/initialized"}, **session)
    if sys.argv[1] == "deletes":
        send(None, "DELETE", **session)
    if sys.argv[1] == "leaves a part":
        subprocess.Popen(["sleep", "600"])
    """
)


@pytest.mark.parametrize(
    ("how", "verdict"), [("deletes", "PASS"), ("forgets", "WARN"), ("leaves a part", "INCONCLUSIVE")]
)
def test_a_session_that_the_end_of_its_client_leaves_open(
    how: str, verdict: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, saved = tmp_path / "client.py", tmp_path / "report.json"
    program.write_text(SESSION)
    judged(capfd, "--json", str(saved), "--", sys.executable, str(program), how)
    [subject] = report(saved)["subjects"]
    assert [each["verdict"] for each in subject["verdicts"] if each["rule"] == "session.deleted"] == [verdict]


def test_a_relative_folder_is_one_of_the_judge_also_where_the_client_starts_the_server_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    client = ["sh", "-c", f"cd elsewhere; echo '{ping}' | \"$@\"", "sh"]
    _, out, err = judged(capfd, "--stdio", "--save", "logs", "--", *client)
    assert "did it start the server?" not in err
    [log] = (tmp_path / "logs").iterdir()
    assert out.splitlines()[-1] == f"On the dashboard: mcp-probe open logs/{log.name}"
    assert list((tmp_path / "elsewhere").iterdir()) == []
