"""container/haproxy.cfg and container/nginx.conf.template, read by the real programs, before three real replicas."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from bench.cluster import BALANCERS, Cluster, asked, new_room, running
from load.hashing import haproxy, nginx

from .tools import ROOT

PATIENCE_S = 30.0
REPLICAS = 3
LATEST = "2025-11-25"


Room = dict[str, Any]


def replica_of(cluster: Cluster, room: Room) -> int:
    """The number of the replica that has a room. It alone knows the read-only address, which opens none."""
    path = urlsplit(room["read_only"]["api"]).path + "/server"
    holders = [n for n, port in enumerate(cluster.ports) if _status(f"http://127.0.0.1:{port}{path}") == 200]
    assert len(holders) == 1, holders
    return holders[0]


def _status(url: str) -> int:
    return asked("GET", url)[0]


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, otherwise
        time.sleep(0.05)  # real time: another process can only be asked


@pytest.fixture(scope="module", params=BALANCERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One for all tests of a balancer, as to start replicas takes longer than most of them. The last ones end some."""
    with running(request.param, "--grace-s", "20") as cluster:
        yield cluster


def _alive(cluster: Cluster) -> list[int]:
    """The numbers of the replicas that have not ended."""
    return [number for number, replica in enumerate(cluster.replicas) if replica.poll() is None]


def _begun(room: Room) -> str:
    """The id of a new session in a room."""
    params = {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {"name": "balanced", "version": "1"}}
    status, headers, body = asked("POST", room["mcp"], _request(1, "initialize", params))
    assert status == 200, body
    return str(headers["Mcp-Session-Id"])


def _request(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _call(room: Room, session: str, tool: str, **arguments: object) -> tuple[int, bytes]:
    call = _request(2, "tools/call", {"name": tool, "arguments": arguments})
    status, _, body = asked("POST", room["mcp"], call, {"Mcp-Session-Id": session, "MCP-Protocol-Version": LATEST})
    return status, body


def test_the_gateway_check_finds_nothing(cluster: Cluster) -> None:
    room = new_room(cluster.url)
    assert _status(room["api"] + "/room") == 200
    direct = f"http://127.0.0.1:{cluster.ports[replica_of(cluster, room)]}{urlsplit(room['room']).path}"
    options = ("--probe", direct.rstrip("/"), "--through", room["mcp"], "--profile", "quick", "--strict")
    command = [sys.executable, "-m", "probe", "gateway", *options]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_smoke_test_of_a_deployment_passes(cluster: Cluster) -> None:
    command = [sys.executable, str(ROOT / "infra" / "smoke.py"), cluster.url]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stdout.count("ok ")) == (0, 9), done.stdout


def test_rooms_are_where_the_simulation_puts_them(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    rings = {
        "haproxy": haproxy(range(1, 4)),
        "nginx": nginx({n: f"127.0.0.1:{port}" for n, port in enumerate(cluster.ports, 1)}),
    }
    ring = rings[request.node.callspec.params["cluster"]]
    for _ in range(20):
        room = new_room(cluster.url)
        assert replica_of(cluster, room) + 1 == ring.replica(room["id"].partition("/")[0])


def test_a_room_stays_on_its_replica_and_a_killed_one_loses_its_rooms_alone(cluster: Cluster) -> None:
    rooms = [new_room(cluster.url) for _ in range(24)]
    assert rooms[0]["mcp"].startswith(cluster.url)
    sessions = [_begun(room) for room in rooms]
    holders = [replica_of(cluster, room) for room in rooms]
    assert set(holders) == set(_alive(cluster)) == set(range(REPLICAS)), "the rooms are not divided"
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
        assert replica_of(cluster, _opened(cluster)) != 0


def _opened(cluster: Cluster) -> Room:
    room = new_room(cluster.url)
    _begun(room)
    return room


def test_a_replica_that_drains_keeps_its_rooms_and_opens_none(cluster: Cluster) -> None:
    drained = _alive(cluster)[0]
    room = _opened(cluster)
    while replica_of(cluster, room) != drained:
        room = _opened(cluster)
    session = _begun(room)
    with closing(http.client.HTTPConnection(*_address(cluster.url), timeout=PATIENCE_S)) as connection:
        params = {"name": "progress", "arguments": {"steps": 80, "step_ms": 100}, "_meta": {"progressToken": 1}}
        call = _request(2, "tools/call", params)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", urlsplit(room["mcp"]).path, json.dumps(call), headers | {"Mcp-Session-Id": session})
        answer = connection.getresponse()
        assert next(line for line in answer if b"notifications/progress" in line)
        cluster.replicas[drained].send_signal(signal.SIGTERM)
        _until(lambda: _status(f"http://127.0.0.1:{cluster.ports[drained]}/ready") != 200, "it does not drain")
        statuses = []
        for _ in range(40):
            made, _, body = asked("POST", f"{cluster.url}/api/rooms", {})
            statuses.append(_status(json.loads(body)["api"] + "/room") if made == 201 else made)
        # Either another replica opened the room, or the answer says that this one is ending.
        assert set(statuses) == {200, 503}
        assert b'"result"' in answer.read()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_one_command_runs_a_cluster_and_an_interrupt_ends_it() -> None:
    command = [sys.executable, "-m", "bench.cluster", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if "behind haproxy" in line)
        origin = said.split()[-1].removesuffix("/new")
        assert new_room(origin)["mcp"].startswith(origin)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, _status(f"{origin}/new")) == (0, 0)
