"""`mcp-probe judge --room` and `pytest --mcp-probe-room`: a client in a room of a probe in another process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from probe.judge.pytest_plugin import McpProbe, ProbeError
from probe.judge.runs.remote_room import RemoteRoom, RoomError

from ...support.process import served
from .test_command import CLIENT, client, judged, report
from .test_pytest_plugin import TESTS

__all__ = ["client"]

# It ends its own room, as another owner of the address may.
ENDS = """
import sys, urllib.request
room = sys.argv[-1].partition("/mcp")[0]
urllib.request.urlopen(urllib.request.Request(f"{room}/api/room", method="DELETE")).read()
"""


@pytest.fixture(scope="module")
def probe() -> Iterator[str]:
    """The URL of a probe with one room at a time."""
    with served("--rooms", "on", "--max-rooms", "1") as mcp:
        yield mcp.removesuffix("/mcp")


def no_room_is_left(probe: str) -> bool:
    """True if a room can be made and opened: there is a place for one only. It is ended again."""
    with urllib.request.urlopen(urllib.request.Request(f"{probe}/api/rooms", method="POST")) as answer:
        api = json.load(answer)["api"]
    for method in ("GET", "DELETE"):
        urllib.request.urlopen(urllib.request.Request(f"{api}/room", method=method)).close()
    return True


def test_a_client_is_judged_in_a_room_that_ends_with_the_run(
    probe: str, client: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = judged(capfd, "--room", probe, "--", *client)
    assert status == 0
    assert out.splitlines()[-1].startswith("client: no fault seen; "), "the pages of the room have ended with it"
    saved, log = tmp_path / "report.json", tmp_path / "log.ndjson"
    options = ["--json", str(saved), "--save", str(log), "--label", "acme", "--client-must-exit-0"]
    status, out, err = judged(capfd, "--room", f"{probe}/", *options, "--", *client, "version")
    assert status == 1
    assert out.splitlines()[-1] == f"On the dashboard: mcp-probe open {log}"
    [subject] = report(saved)["subjects"]
    assert (subject["label"], subject["requests"]) == ("acme", 3)
    assert [rule["rule"] for rule in subject["verdicts"] if rule["verdict"] == "FAIL"] == ["jsonrpc.version"]
    # Lines of a run in CI are public: they have the read-only address, and not that of the owner.
    urls = {word for word in err.split() if "/r/" in word}
    assert [url.rpartition("/")[2] for url in urls] == ["dashboard"]
    assert judged(capfd, "--log", str(log))[0] == 1
    assert judged(capfd, "--room", probe, "--client-must-exit-0", "--", *client, "exit")[0] == 1
    assert no_room_is_left(probe)


LEAVES = """
import json, sys, urllib.request
about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "leaves", "version": "1"}}
body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
urllib.request.urlopen(urllib.request.Request(sys.argv[-1], json.dumps(body).encode(), headers)).read()
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("status", [0, 3])
def test_the_end_of_a_client_is_judged_as_with_a_server_of_its_own(
    probe: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES)
    client, found = [sys.executable, str(tmp_path / "leaves.py"), str(status)], []
    log, rooms_log = tmp_path / "own.ndjson", tmp_path / "room.ndjson"
    for saved, options in ((log, []), (rooms_log, ["--room", probe])):
        out = tmp_path / "report.json"
        wanted = ["--strict", "--require", "none", "--save", str(saved), "--json", str(out)]
        ended = judged(capfd, *options, *wanted, "--", *client)[0]
        [subject] = report(out)["subjects"]
        found.append((ended, [(rule["rule"], rule["verdict"], rule["remark"]) for rule in subject["verdicts"]]))
    assert found[0] == found[1]
    verdicts = {rule: verdict for rule, verdict, _ in found[1][1]}
    assert verdicts["session.deleted"] == ("WARN" if status == 0 else "INCONCLUSIVE")
    entries = [json.loads(line) for line in rooms_log.read_text().splitlines()][1:]
    kinds = [entry.get("what", entry["kind"]) for entry in entries]
    assert kinds.index("started") < kinds.index("http.request") < kinds.index("exited")
    assert [entry["seq"] for entry in entries[:-1]] == list(range(1, len(entries)))
    assert entries[-1]["last"] == len(entries) - 1
    times = [entry["mono"] for entry in entries[:-1]]
    assert times == sorted(times)
    # An answer still names the request that made it.
    [asked] = [each for each in entries if each["kind"] == "message.received"]
    [opened] = [each for each in entries if each["kind"] == "session.opened"]
    assert opened["cause"] == asked["seq"]


def test_a_room_that_ends_in_between_gives_no_verdict(
    probe: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    status, _, err = judged(capfd, "--room", probe, "--", sys.executable, str(tmp_path / "ends.py"))
    assert (status, "the room ended before its log was read" in err) == (2, True)
    assert no_room_is_left(probe)


def test_the_log_of_a_room_that_another_process_opened_again_is_not_taken(tmp_path: Path) -> None:
    """A balancer leads to another process when the one with the room has ended; the id is good for a minute."""
    options = ["--rooms", "on", "--request-state-keys", "b" * 64]
    with served(*options) as first, served(*options) as second:
        room = RemoteRoom.make(first.removesuffix("/mcp"))
        room.save_log(tmp_path / "log.ndjson")
        again = replace(room, origin=room.origin.replace(first.removesuffix("/mcp"), second.removesuffix("/mcp")))
        with pytest.raises(RoomError, match="the room ended before its log was read"):
            again.save_log(tmp_path / "log.ndjson")


def test_a_client_that_does_not_start_leaves_no_room(probe: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = judged(capfd, "--room", probe, "--", "/nowhere/client")
    assert (status, "/nowhere/client" in err) == (2, True)
    assert no_room_is_left(probe)


def test_a_probe_that_is_full_says_so(probe: str, client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with urllib.request.urlopen(urllib.request.Request(f"{probe}/api/rooms", method="POST")) as answer:
        api = json.load(answer)["api"]
    urllib.request.urlopen(f"{api}/room").close()
    try:
        status, _, err = judged(capfd, "--room", probe, "--", *client)
        assert (status, "503: There are 1 rooms already (max_rooms)" in err) == (2, True)
    finally:
        urllib.request.urlopen(urllib.request.Request(f"{api}/room", method="DELETE")).close()


def test_what_is_no_probe_with_rooms_is_named(client: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with served() as mcp:
        status, _, err = judged(capfd, "--room", mcp.removesuffix("/mcp"), "--", *client)
        assert (status, "makes no rooms" in err) == (2, True)
    status, _, err = judged(capfd, "--room", mcp.removesuffix("/mcp"), "--", *client)
    assert (status, "cannot be reached" in err) == (2, True)
    status, _, err = judged(capfd, "--room", "probe.example", "--", *client)
    assert (status, "is no URL" in err) == (2, True)


@pytest.mark.parametrize("url", ["http://[", "http://a..b", "http://a b"])
def test_what_no_host_can_have_is_refused_as_a_url(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = judged(capfd, "--room", url, "--", "client")
    assert (status, err.startswith(f"error: {url} "), "broke off" in err) == (2, True, False), err


class Trickling(ThreadingHTTPServer):
    """A probe whose log never ends: it sends a byte each 50 ms until `over` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TricklingHandler)
        self.asked, self.over, self.ended = Event(), Event(), Event()
        self.server = b"{}"
        self.refusal: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class TricklingHandler(BaseHTTPRequestHandler):
    server: Trickling

    def handle(self) -> None:
        self.close_connection = True
        self.handle_one_request()

    def do_GET(self) -> None:
        self._answer(self.server.server)
        if self.path.endswith("/api/events.ndjson"):
            self.server.asked.set()
            while not self.server.over.wait(0.05):
                self.wfile.write(b" ")

    def do_POST(self) -> None:
        if self.server.refusal is not None:
            self._answer(self.server.refusal, 422)
            return
        self._answer(json.dumps({"id": "a", "read_only": {"dashboard": "b"}}).encode())

    def do_DELETE(self) -> None:
        self.server.ended.set()
        self._answer(b"")

    def _answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def trickling() -> Iterator[Trickling]:
    with Trickling() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "server",
    [
        b"{}",
        b"not JSON",
        b"\xff",
        b"[" * 100_000,
        b'{"started_at": "1", "uptime_s": 2}',
        b'{"started_at": "1", "uptime_s": "2e999"}',
        b'{"started_at": 1, "uptime_s": 1e999}',
        b'{"started_at": 1%s, "uptime_s": 1}' % (b"0" * 400),
    ],
)
def test_a_probe_that_does_not_tell_its_time_is_named(trickling: Trickling, server: bytes) -> None:
    trickling.server = server
    with pytest.raises(RoomError, match="does not tell its time"):
        RemoteRoom(f"{trickling.url}/r/a", "page", "run").now()


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (b'{"detail": "not now\\u001b[31m"}', ": not now\\x1b[31m"),
        (b'{"detail": [{"loc": ["body"], "msg": "Field required"}]}', ""),
        (b'{"detail": null}', ""),
        (b'["detail"]', ""),
        (b'{"detail": %s' % (b"[" * 60_000), ""),
        (b"<html>", ""),
        (b"\xff", ""),
    ],
)
def test_a_refusal_of_any_server_is_one_line(
    trickling: Trickling, refusal: bytes, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    trickling.refusal = refusal
    status, _, err = judged(capfd, "--room", trickling.url, "--", "true")
    assert (status, err) == (2, f"error: {trickling.url} answers with status 422{said}\n")


def test_a_log_that_trickles_is_read_for_a_limited_time(
    trickling: Trickling, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.judge.runs.remote_room._METHOD_S", 2)
    status, _, err = judged(capfd, "--room", trickling.url, "--", "true")
    assert (status, "has not sent a whole answer within 2 s" in err) == (2, True), err
    assert trickling.ended.is_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_reading_of_a_log_and_the_room(trickling: Trickling, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "probe", "judge", "--room", trickling.url, "--", "true"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert trickling.asked.wait(30)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "a signal came before the log of the room was read" in err) == (2, True), err
    assert trickling.ended.is_set()


@pytest.mark.parametrize(
    "options", [["--log", __file__], ["--stdio"], ["--tools", "all"], ["--session-idle-s", "5"]], ids=lambda x: x[0]
)
def test_options_of_another_run_are_refused(options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    own = [] if "--log" in options else ["--", "client"]
    status, _, err = judged(capfd, "--room", "http://127.0.0.1:9", *options, *own)
    assert (status, "--room" in err) == (2, True)


def test_tests_of_pytest_share_a_room_that_ends_with_them(probe: str, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "test_client.py").write_text(TESTS)
    options = ["-p", "no:cacheprovider", "-q", "-rfE", "--mcp-probe-room", probe]
    command = [sys.executable, "-m", "pytest", *options, "test_client.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "2 failed, 4 passed, 1 error" in run.stdout, run.stdout + run.stderr
    assert no_room_is_left(probe)


def test_pytest_names_a_room_that_has_ended(probe: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    test = "def test(mcp_probe):\n    import subprocess, sys\n"
    test += "    subprocess.run([sys.executable, 'ends.py', mcp_probe.url], check=True)\n    mcp_probe.assert_clean()\n"
    (tmp_path / "test_client.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--mcp-probe-room", probe]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "ProbeError: the room of these tests has ended" in run.stdout, run.stdout


@pytest.mark.parametrize("read", [McpProbe.events, McpProbe.calls, McpProbe.report, McpProbe.assert_clean])
def test_pytest_takes_nothing_of_another_run_than_its_own(
    probe: str, read: Callable[[McpProbe], object], tmp_path: Path
) -> None:
    """A balancer leads to a new room in another process when the one with the room has ended."""
    room = RemoteRoom.make(probe)
    try:
        McpProbe("a", f"{room.origin}/mcp", (), room.origin, room.run, tmp_path).events()
        again = McpProbe("a", f"{room.origin}/mcp", (), room.origin, "another", tmp_path)
        with pytest.raises(ProbeError, match="the room of these tests has ended"):
            read(again)
    finally:
        room.end()
