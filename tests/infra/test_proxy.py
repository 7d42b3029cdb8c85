"""container/Caddyfile, read by a real Caddy, before a real probe: nothing that the probe does is changed on the way."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..support.process import served
from .tools import ROOT, script

CADDYFILE = ROOT / "container" / "Caddyfile"
PATIENCE_S = 30.0
checks = script("smoke")


@dataclass
class Front:
    """A proxy, where it listens and whom it trusts; and the probe behind it."""

    port: int
    authority: Path
    probe: str = ""

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def target(self) -> object:
        return checks.ProbeAddress(self.url, str(self.authority))


def caddy() -> str:
    found = os.environ.get("PROBE_CADDY") or shutil.which("caddy")
    assert found, "there is no Caddy: nox -s proxy brings one, or set PROBE_CADDY"
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def fronted(home: Path, upstream_port: int) -> Iterator[Front]:
    """Run Caddy with the file as it is. Its state is below `home`, and nothing of this machine is changed."""
    port = free_port()
    variables = {
        "PROBE_SITE": "localhost",
        "PROBE_UPSTREAM": f"127.0.0.1:{upstream_port}",
        "PROBE_HTTP_PORT": str(free_port()),
        "PROBE_HTTPS_PORT": str(port),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "HOME": str(home),
    }
    command = [caddy(), "run", "--adapter", "caddyfile", "--config", str(CADDYFILE)]
    with subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL) as process:
        try:
            authority = home / "data" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
            front = Front(port, authority)
            _until(lambda: authority.exists() and _speaks(front), "Caddy does not listen", process)
            yield front
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _speaks(front: Front) -> bool:
    try:
        return bool(negotiated(front))
    except (OSError, ssl.SSLError):
        return False


def _until(holds: object, otherwise: str, process: subprocess.Popen[bytes] | None = None) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert process is None or process.poll() is None, otherwise
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)  # real time: a process can only be asked


def negotiated(front: Front) -> str | None:
    """The protocol that a client gets which offers both."""
    context = ssl.create_default_context(cafile=str(front.authority))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", front.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        return secured.selected_alpn_protocol()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    # a second --port wins over the 0 of `served`
    port = free_port()
    arguments = ("--port", str(port), "--allowed-hosts", "localhost", "--trusted-proxies", "127.0.0.1")
    with served(*arguments) as url, fronted(tmp_path_factory.mktemp("caddy"), port) as found:
        found.probe = url.removesuffix("/mcp")
        yield found


def api(front: Front, path: str) -> dict[str, Any]:
    # not through the proxy: what it does is the question
    with urllib.request.urlopen(f"{front.probe}/api/{path}", timeout=PATIENCE_S) as answer:
        return json.load(answer)


def events(front: Front, kind: str) -> list[dict[str, Any]]:
    return [event for event in api(front, "events?limit=500")["events"] if event["kind"] == kind]


def received(front: Front, header: str) -> list[str]:
    headers = [pair for event in events(front, "http.request") for pair in event["headers"]]
    return [value for name, value in headers if name == header]


def test_the_configuration_is_valid_and_formatted() -> None:
    validated = [caddy(), "validate", "--adapter", "caddyfile", "--config", str(CADDYFILE)]
    done = subprocess.run(validated, check=False, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    formatted = subprocess.run([caddy(), "fmt", str(CADDYFILE)], check=False, stdout=subprocess.PIPE, text=True)
    assert formatted.stdout == CADDYFILE.read_text()


def test_everything_that_clients_need_passes(front: Front) -> None:
    command = [sys.executable, str(ROOT / "infra" / "smoke.py"), front.url, "--cafile", str(front.authority)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_clients_get_http_2(front: Front) -> None:
    assert negotiated(front) == "h2"


def test_a_client_that_leaves_is_seen_to_leave(front: Front) -> None:
    # since 2026-07-28 this is the cancellation; nothing is written meanwhile, which would find out too
    arguments = {"delayMs": 4999}
    headers, message = checks.modern_call("simple_tool", arguments)

    def started() -> bool:
        messages = [event["message"] for event in events(front, "message.received")]
        return any(message.get("params", {}).get("arguments") == arguments for message in messages)

    with closing(front.target.connection()) as connection:
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        _until(started, "the call has not reached the probe")

    def ended() -> list[str]:
        calls = [call for call in api(front, "calls")["calls"] if call["arguments"] == arguments]
        return [call["outcome"] for call in calls if call["outcome"]]

    _until(ended, "the call does not end")
    assert ended() == ["disconnected"]


def test_an_address_that_a_client_makes_up_is_not_passed_on(front: Front) -> None:
    headers, message = checks.modern_call("simple_tool", {"delayMs": 3})
    with front.target.response("POST", "/mcp", headers | {"X-Forwarded-For": "203.0.113.9"}, message) as response:
        assert response.status == 200
    seen = received(front, "x-forwarded-for")
    assert seen
    assert set(seen) == {"127.0.0.1"}


def test_the_name_arrives_as_the_client_sent_it(front: Front) -> None:
    headers, message = checks.modern_call("simple_tool", {"delayMs": 4})
    with front.target.response("POST", "/mcp", headers, message) as response:
        assert response.status == 200
    assert f"localhost:{front.port}" in received(front, "host")
