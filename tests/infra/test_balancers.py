"""container/haproxy.cfg and container/nginx.conf.template, read by the real programs, before three real replicas."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from .tools import ROOT

PATIENCE_S = 30.0
REPLICAS = 3
KEYS = "5e" * 32
LATEST = "2025-11-25"


@dataclass
class Cluster:
    """A balancer and the replicas behind it."""

    url: str
    replicas: list[subprocess.Popen[bytes]]
    ports: list[int]

    def holder(self, room: Room) -> int:
        """The number of the replica that has a room. It alone knows the read-only address, which opens none."""
        path = urlsplit(room["read_only"]["api"]).path + "/server"
        holders = [n for n, port in enumerate(self.ports) if _status(f"http://127.0.0.1:{port}{path}") == 200]
        assert len(holders) == 1, holders
        return holders[0]


Room = dict[str, Any]


def _program(variable: str, name: str) -> str:
    found = os.environ.get(variable) or shutil.which(name) or shutil.which(name, path="/usr/sbin")
    assert found, f"there is no {name}: nox -s proxy brings one, or set {variable} to one"
    return found


def _haproxy(home: Path, variables: dict[str, str]) -> list[str]:
    return [_program("PROBE_HAPROXY", "haproxy"), "-f", str(ROOT / "container" / "haproxy.cfg")]


def _nginx(home: Path, variables: dict[str, str]) -> list[str]:
    inner = re.sub(
        r"\$\{(PROBE_\w+)\}",
        lambda found: variables[found[1]],
        (ROOT / "container" / "nginx.conf.template").read_text(),
    )
    temporary = "".join(f"{name}_temp_path {home};\n" for name in ("proxy", "client_body", "fastcgi", "uwsgi", "scgi"))
    text = f"daemon off; pid {home}/pid; error_log stderr; events {{}}\nhttp {{\n{temporary}{inner}}}\n"
    file = home / "nginx.conf"
    file.write_text(text)
    return [_program("PROBE_NGINX", "nginx"), "-e", "stderr", "-p", str(home), "-c", str(file)]


BALANCERS: dict[str, Callable[[Path, dict[str, str]], list[str]]] = {"haproxy": _haproxy, "nginx": _nginx}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _status(url: str) -> int:
    return _asked("GET", url)[0]


def _asked(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any, Any]:
    """The status, headers and body of an answer; status 0 where nothing listens. Redirects are not followed."""
    parts = urlsplit(url)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_S)) as connection:
        try:
            connection.request(method, parts.path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except ConnectionError:
            return 0, {}, b""


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)  # real time: another process can only be asked


@contextmanager
def _replica(port: int) -> Iterator[subprocess.Popen[bytes]]:
    names = ("--allowed-hosts", "127.0.0.1", "--trusted-proxies", "127.0.0.1")
    command = [
        sys.executable,
        "-m",
        "probe",
        "serve",
        "--rooms",
        "only",
        "--port",
        str(port),
        "--grace-s",
        "20",
        *names,
    ]
    environment = os.environ | {"MCP_PROBE_REQUEST_STATE_KEYS": KEYS}
    with subprocess.Popen(command, env=environment) as process:
        try:
            _until(lambda: _status(f"http://127.0.0.1:{port}/ready") == 200, "a replica does not start")
            yield process
        finally:
            process.kill()


@pytest.fixture(params=BALANCERS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    ports = [_free_port() for _ in range(REPLICAS)]
    own = _free_port()
    variables = {f"PROBE_REPLICA_{n}": f"127.0.0.1:{port}" for n, port in enumerate(ports, 1)}
    variables["PROBE_LISTEN"] = f"127.0.0.1:{own}"
    with ExitStack() as stack:
        replicas = [stack.enter_context(_replica(port)) for port in ports]
        command = BALANCERS[request.param](tmp_path, variables)
        balancer = stack.enter_context(subprocess.Popen(command, env=os.environ | variables))
        stack.callback(balancer.terminate)
        url = f"http://127.0.0.1:{own}"
        _until(lambda: _status(f"{url}/new") == 303, f"{request.param} passes nothing on")
        yield Cluster(url, replicas, ports)


def _new_room(cluster: Cluster) -> Room:
    status, _, body = _asked("POST", f"{cluster.url}/api/rooms", {})
    assert status == 201, body
    room: Room = json.loads(body)
    assert room["mcp"].startswith(cluster.url)
    return room


def _begun(room: Room) -> str:
    """The id of a new session in a room."""
    params = {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "balanced", "version": "1"}}
    status, headers, body = _asked("POST", room["mcp"], _request(1, "initialize", params))
    assert status == 200, body
    return str(headers["Mcp-Session-Id"])


def _request(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _call(room: Room, session: str, tool: str, **arguments: object) -> tuple[int, bytes]:
    call = _request(2, "tools/call", {"name": tool, "arguments": arguments})
    status, _, body = _asked("POST", room["mcp"], call, {"Mcp-Session-Id": session, "MCP-Protocol-Version": LATEST})
    return status, body


def test_a_room_stays_on_its_replica_and_a_killed_one_loses_its_rooms_alone(cluster: Cluster) -> None:
    rooms = [_new_room(cluster) for _ in range(24)]
    sessions = [_begun(room) for room in rooms]
    holders = [cluster.holder(room) for room in rooms]
    assert set(holders) == set(range(REPLICAS)), "the rooms are not divided"
    for room, session in zip(rooms, sessions, strict=True):
        for _ in range(3):
            assert _call(room, session, "simple_tool")[0] == 200

    cluster.replicas[0].kill()
    cluster.replicas[0].wait(PATIENCE_S)
    for room, session, holder in zip(rooms, sessions, holders, strict=True):
        if holder:
            assert _call(room, session, "simple_tool")[0] == 200
        else:
            _until(lambda room=room, session=session: _call(room, session, "simple_tool")[0] == 404, "no 404")
    for _ in range(6):
        assert cluster.holder(_opened(cluster)) != 0


def _opened(cluster: Cluster) -> Room:
    room = _new_room(cluster)
    _begun(room)
    return room


def test_a_replica_that_drains_keeps_its_rooms_and_opens_none(cluster: Cluster) -> None:
    room = _opened(cluster)
    while cluster.holder(room) != 0:
        room = _opened(cluster)
    session = _begun(room)
    with closing(http.client.HTTPConnection(*_address(cluster.url), timeout=PATIENCE_S)) as running:
        params = {"name": "progress", "arguments": {"steps": 80, "step_ms": 100}, "_meta": {"progressToken": 1}}
        call = _request(2, "tools/call", params)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        running.request("POST", urlsplit(room["mcp"]).path, json.dumps(call), headers | {"Mcp-Session-Id": session})
        answer = running.getresponse()
        assert next(line for line in answer if b"notifications/progress" in line)
        cluster.replicas[0].send_signal(signal.SIGTERM)
        _until(lambda: _status(f"http://127.0.0.1:{cluster.ports[0]}/ready") != 200, "it does not drain")
        statuses = []
        for _ in range(40):
            made, _, body = _asked("POST", f"{cluster.url}/api/rooms", {})
            statuses.append(_status(json.loads(body)["api"] + "/room") if made == 201 else made)
        # Either another replica opened the room, or the answer says that this one is ending.
        assert set(statuses) == {200, 503}
        assert b'"result"' in answer.read()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_the_gateway_check_finds_nothing(cluster: Cluster) -> None:
    room = _new_room(cluster)
    assert _status(room["api"] + "/room") == 200
    direct = f"http://127.0.0.1:{cluster.ports[cluster.holder(room)]}{urlsplit(room['room']).path}"
    options = ("--probe", direct.rstrip("/"), "--through", room["mcp"], "--profile", "quick", "--strict")
    command = [sys.executable, "-m", "probe", "gateway", *options]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
