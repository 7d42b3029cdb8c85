"""The telemetry of real server processes: their flags, their standard error, their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from threading import Timer
from typing import Any

import pytest

from ..support.modern import Modern
from .collector import Collector, collecting

PATIENCE_S = 60


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector


def start(command: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "probe", command, "--port", "0", "--grace-s", "1", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MCP_PROBE_")},
    )


def first_line(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    return server.stderr.readline()


def rest(server: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code, and what it still says. Not by `communicate`, which forgets what is read ahead."""
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    patience = Timer(PATIENCE_S, server.kill)
    patience.start()
    with server:
        server.stdin.close()
        said, told = server.stdout.read(), server.stderr.read()
    patience.cancel()
    return server.returncode, said, told


def ended(server: subprocess.Popen[str]) -> tuple[int, str, str]:
    server.send_signal(signal.SIGTERM)
    return rest(server)


def call(url: str) -> int:
    """One modern tool call."""
    message = Modern(None, "").request("tools/call", {"name": "simple_tool", "arguments": {}})
    headers = {**Modern.headers(message), "host": url.split("/")[2]}
    asked = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
        answer.read()
        return int(answer.status)


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def test_a_server_in_json() -> None:
    server = start("serve", "--metrics", "--log-format", "json", "--log-level", "info")
    # That it is ready is a line of the event log, whose follower may be first.
    first = [line := json.loads(first_line(server))]
    while line["event"] != "server":
        first.append(line := json.loads(first_line(server)))
    assert line["level"] == "info"
    url = next(word for word in line["message"].split() if word.startswith("http"))
    assert call(url) == 200
    assert "\nmcp_probe_in_flight" in fetched(url.removesuffix("mcp") + "metrics")
    code, said, told = ended(server)
    lines: list[dict[str, Any]] = [*first, *(json.loads(line) for line in told.splitlines())]
    assert (code, said) == (0, "")
    assert [line["outcome"] for line in lines if line["event"] == "call.settled"] == ["completed"]
    states = [line["message"] for line in lines if line["event"] == "server.state"]
    assert states == ["the server is ready", "the server is draining", "the server is stopped"]
    assert [line["message"].partition(":")[0] for line in lines if line["event"] == "server"][1:] == [
        "Dashboard",
        "stopping",
    ]


def test_for_people_nothing_new_is_said_by_default() -> None:
    server = start("serve")
    line = first_line(server)
    assert line.startswith("MCP Probe listens on http")
    assert call(line.split()[4]) == 200
    code, said, told = ended(server)
    assert (code, said) == (0, "")
    assert [line.partition(":")[0] for line in told.splitlines()] == ["Dashboard", "stopping"]


def test_the_last_spans_are_sent_before_the_end(collector: Collector) -> None:
    server = start("serve", "--telemetry")
    assert call(first_line(server).split()[4]) == 200
    assert ended(server)[0] == 0
    assert collector.named("tools/call simple_tool").attributes["mcp_probe.outcome"] == "completed"


def test_over_stdio_only_the_protocol_is_on_standard_output(collector: Collector) -> None:
    server = start("stdio", "--telemetry", "--log-level", "debug", "--log-format", "json")
    request = Modern(None, "").request("tools/call", {"name": "simple_tool", "arguments": {}}, id=9)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    assert json.loads(server.stdout.readline())["id"] == 9
    code, said, told = rest(server)
    assert (code, said) == (0, "")
    events = [json.loads(line)["event"] for line in told.splitlines()]
    assert {"server", "connection.opened", "call.settled", "connection.closed"} <= set(events)
    span = collector.named("tools/call simple_tool")
    assert span.attributes["network.transport"] == "pipe"
    assert "client.address" not in span.attributes


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"),
        ({"OTEL_PROPAGATORS": "tracecontext,unheard_of"}, "Propagator unheard_of not found"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "::::"}, "OTEL_EXPORTER_OTLP_ENDPOINT must be an http"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(
    variables: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    server = start("serve", "--telemetry")
    code, _, told = rest(server)
    assert code == 2
    assert told.startswith("error: ")
    assert said in told
    assert told.count("\n") == 1


def test_without_its_packages_it_is_one_line_too() -> None:
    code = "import sys; sys.modules['opentelemetry.sdk'] = None; from probe.cli.program import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--telemetry"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: --telemetry needs packages that are not installed: pip install 'mcp-probe-server[telemetry]'\n",
    )
