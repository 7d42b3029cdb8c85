"""What `mcp-probe doctor` finds on the way to a probe, without a proxy and with a bad one."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme

from probe.cli.program import main
from probe.gateway.doctor import needs, path
from probe.gateway.doctor.needs import ProbeAddress, WrongError
from probe.gateway.doctor.path import PathFinding, Visit

from ...infra.proxies import buffering, delaying
from ...support.process import served


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with served("--keep-alive-s", "0.2") as url:
        yield url.removesuffix("/mcp")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter call for `leaving`, and a shorter wait for its end."""
    monkeypatch.setattr(path, "_LEFT_STEPS", 15)
    monkeypatch.setattr(path, "_SEEN_S", 2.0)


def asked(origin: str) -> Visit:
    return Visit(ProbeAddress(origin, None), hold_s=1.0)


def marks(found: list[PathFinding]) -> list[tuple[str, str]]:
    return [(finding.about, finding.mark) for finding in found]


def test_where_nothing_stands_between_nothing_is_bad(origin: str) -> None:
    found = [*path.findings(asked(origin))]
    assert marks(found) == [
        ("tls", "note"),
        ("between", "ok"),
        ("request", "ok"),
        ("stream", "ok"),
        ("leaving", "ok"),
        ("body", "ok"),
        ("holding", "ok"),
    ]
    assert found[2].text.startswith("arrives as HTTP/1.1 from 127.0.0.1")


def test_a_machine_that_is_busy_for_a_moment_does_not_buffer_streams(
    origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, busy_s = path.events, iter([path._HELD_S + 0.2])

    def read(response: Any) -> Iterator[Any]:
        for number, message in enumerate(real(response)):
            if number == 3:
                time.sleep(next(busy_s, 0.0))  # real time: a process that gets no processor for a moment
            yield message

    monkeypatch.setattr(path, "events", read)
    assert marks([*path.stream(asked(origin))]) == [("stream", "ok")]


class Answers(BaseHTTPRequestHandler):
    """Answers each POST with the headers of the server, and two messages."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        for name, value in self.server.headers.items():  # type: ignore[attr-defined]
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b'data: {"method":"notifications/progress"}\n\n' * 2)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}, "the event stream is packed (gzip)"),
        ({"Content-Type": "text/plain"}, "the event stream comes as text/plain"),
        ({"Content-Type": "text/event-stream"}, "of 10 messages 2 came"),
    ],
)
def test_what_no_busy_moment_explains_is_asked_for_once(headers: dict[str, str], text: str) -> None:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.headers = headers  # type: ignore[attr-defined]
        answering = Thread(target=server.handle_request)
        answering.start()
        # Nothing answers a second request.
        server.timeout = 0
        visit = asked(f"http://127.0.0.1:{server.server_port}")
        (found,) = path.stream(visit)
        answering.join(30)
    assert (found.mark, found.text.startswith(text)) == ("bad", True)


def test_a_proxy_that_buffers_is_bad_for_streams_and_hides_that_a_client_has_gone(origin: str) -> None:
    with buffering(origin) as behind:
        (stream,) = path.stream(asked(behind))
        (leaving,) = path.leaving(asked(behind))
    assert (stream.mark, "something buffers the stream" in stream.text) == ("bad", True)
    assert (leaving.mark, "the close is not passed on" in leaving.text) == ("bad", True)


def test_a_proxy_that_is_late_with_each_message_does_not_pass(origin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HAProxy is without `option http-no-delay`, by some 200 ms."""
    monkeypatch.setattr(needs, "_STEPS", 4)
    monkeypatch.setattr(needs, "_STEP_MS", 300)
    with delaying(origin, 0.25) as behind, pytest.raises(WrongError, match="ms late: something waits before it sends"):
        needs.check_stream(ProbeAddress(behind, None))


def test_a_proxy_that_adds_its_name_is_told(origin: str) -> None:
    with buffering(origin) as behind:
        (between,) = path.between(asked(behind))
    assert (between.mark, "Server: BaseHTTP" in between.text) == ("note", True)


def test_what_arrives_otherwise_than_it_was_sent_is_told() -> None:
    target = ProbeAddress("http://probe.example", None)
    sent = {"Mcp-Method": "tools/call", "Mcp-Name": "x", "Accept": "a/b"}
    there = [["host", "inside:8000"], ["accept", "a/b"], ["mcp-method", "tools/call"], ["via", "1.1 edge"]]
    entry = {"headers": there, "http_version": "1.0", "client": "10.0.0.1:5"}
    assert [*path._compared(sent, entry, target)] == [
        PathFinding("request", "bad", "headers that do not arrive: mcp-name"),
        PathFinding("request", "note", "host arrives as 'inside:8000' instead of 'probe.example'"),
        PathFinding("request", "note", "headers that are added: via: 1.1 edge"),
        PathFinding("request", "note", "arrives as HTTP/1.0 from 10.0.0.1:5"),
    ]


PIECES = [0.2, 0.4, 1.4, 1.41, 1.42, 1.43, 1.6, 1.8, 2.0, 2.2]


@pytest.mark.parametrize(
    ("came", "mark", "text"),
    [
        ([number * 0.2 + 0.25 for number in range(10)], "ok", "each as it was sent"),
        ([2.5 + number * 0.001 for number in range(10)], "bad", "all messages came at the end"),
        (PIECES, "bad", "in pieces"),
        ([0.2, 0.4], "bad", "of 10 messages 2 came"),
    ],
)
def test_the_times_of_messages_tell_what_happens_to_a_stream(came: list[float], mark: str, text: str) -> None:
    found = path._judged(path._Received(None, "text/event-stream", came))
    assert (found.mark, text in found.text) == (mark, True)


class Cuts(BaseHTTPRequestHandler):
    """Begins an event stream and ends it at once."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b": here\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_a_stream_that_is_cut_is_bad() -> None:
    with HTTPServer(("127.0.0.1", 0), Cuts) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        found = path._held(asked(f"http://127.0.0.1:{server.server_port}"), {})
        answering.join(30)
    assert (found.mark, found.text) == ("bad", "an idle event stream was ended after 0 s")


def test_a_body_that_does_not_pass_is_bad() -> None:
    with served("--max-body-bytes", "1048576") as url:
        (found,) = path.large(Visit(ProbeAddress(url.removesuffix("/mcp"), None)))
    assert (found.mark, "HTTP 413" in found.text) == ("bad", True)


def test_tls_and_the_days_of_its_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["h2"])
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = Thread(target=shake_hands, args=(listener, context))
        answering.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        (found,) = path.tls(Visit(ProbeAddress(url, str(tmp_path / "ca.pem"))))
        answering.join(30)
    assert found.text.startswith("TLSv1.3, h2; the certificate is valid for ")


def test_certificates_for_an_address_without_tls_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    assert main(["doctor", "http://127.0.0.1:1", "--cafile", str(tmp_path / "ca.pem")]) == 2
    said = "error: --cafile is about TLS, and an address with http:// has none; see mcp-probe doctor --help\n"
    assert capsys.readouterr().err == said
    (found,) = path.tls(Visit(ProbeAddress("http://127.0.0.1:1", str(tmp_path / "ca.pem"))))
    assert (found.mark, found.text) == ("note", "no TLS: what is sent can be read and changed on the way")


def shake_hands(listener: socket.socket, context: ssl.SSLContext) -> None:
    plain, _ = listener.accept()
    with plain, context.wrap_socket(plain, server_side=True):
        pass


def test_the_command_says_it_in_lines_and_its_exit_code(origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", origin, "--hold", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"ok", "note"}
    assert [line.split()[1] for line in lines[:6]] == ["health", "ready", "call", "session", "websocket", "dashboard"]
    with buffering(origin) as behind:
        assert main(["doctor", behind, "--hold", "1"]) == 1
    said = capsys.readouterr().out
    assert "bad  stream " in said
    assert "bad  holding    an event stream did not begin within 1 s: something buffers it" in said


def test_the_command_says_what_it_waits_for_before_it_waits(
    origin: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def findings(_: Visit) -> list[PathFinding]:
        said.append(capsys.readouterr().err)
        return []

    monkeypatch.setattr(path, "findings", findings)
    assert main(["doctor", origin, "--hold", "1.5"]) == 0
    assert said == ["mcp-probe: an idle stream is held for 1.5 s, so this takes a little longer\n"]


def test_another_server_is_told_by_its_status_without_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert main(["doctor", url]) == 2
        answering.join(30)
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"error: no probe answers at {url}: HTTP 501 instead of 200"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
def test_where_nobody_answers_one_line_says_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", url]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: no probe answers at {url}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "why"), [("none.pem", "No such file or directory"), ("no.pem", "it has no certificates")]
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_file_without_certificates_is_refused_for_each_address(
    scheme: str, name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    assert main(["doctor", f"{scheme}://127.0.0.1:1", "--cafile", str(tmp_path / name)]) == 2
    assert capsys.readouterr().err == f"error: --cafile: {tmp_path / name} cannot be used: {why}\n"
