"""`python -m bench.cluster`: replicas with rooms behind HAProxy or nginx on this machine, without containers.

It needs the balancer on the PATH (or `PROBE_HAPROXY`, `PROBE_NGINX`), and a Python that has MCP Probe. Options that it
does not know go to each `mcp-probe serve`. Interrupt it to end: replicas finish running work first.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_FILES: Final = Path(__file__).parent.parent / "container"
_KEYS: Final = "MCP_PROBE_REQUEST_STATE_KEYS"
MOST_REPLICAS: Final = 3
"""The lines for replicas in the configurations. One that is not started counts as down."""
# Of nginx, which has 512 by default: two for each client.
_CONNECTIONS: Final = 16_384
_START_S: Final = 60.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
# Beyond the grace period of the replicas.
_STOP_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A balancer at the origin `url`, and the replicas behind it with their ports."""

    url: str
    balancer: subprocess.Popen[bytes]
    replicas: Sequence[subprocess.Popen[bytes]]
    ports: Sequence[int]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop all processes where they are while the block runs (SIGSTOP)."""
        # The balancer first, which else finds that its replicas do not answer.
        processes = [self.balancer, *self.replicas]
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGCONT)


def haproxy(home: Path, variables: dict[str, str]) -> list[str]:
    """The command that runs HAProxy."""
    return [_program("haproxy"), "-f", str(_FILES / "haproxy.cfg")]


def nginx(home: Path, variables: dict[str, str]) -> list[str]:
    """The command that runs nginx, with its files in `home`."""
    template = (_FILES / "nginx.conf.template").read_text()
    inner = re.sub(r"\$\{(PROBE_\w+)\}", lambda found: variables[found[1]], template)
    kinds = ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {home};\n" for kind in kinds)
    file = home / "nginx.conf"
    main = f"daemon off; pid {home}/pid; error_log stderr;\nevents {{ worker_connections {_CONNECTIONS}; }}\n"
    file.write_text(f"{main}http {{\n{temporary}{inner}}}\n")
    return [_program("nginx"), "-e", "stderr", "-p", str(home), "-c", str(file)]


BALANCERS: Final[dict[str, Callable[[Path, dict[str, str]], list[str]]]] = {"haproxy": haproxy, "nginx": nginx}


def _program(name: str) -> str:
    named = os.environ.get(f"PROBE_{name.upper()}")
    found = named or shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        raise FileNotFoundError(f"there is no {name}: install it, or set PROBE_{name.upper()} to one")
    return found


@contextmanager
def running(
    balancer: str = "haproxy", *options: str, replicas: int = MOST_REPLICAS, port: int = 0
) -> Iterator[Cluster]:
    """Run replicas with these options of `mcp-probe serve` behind a balancer; all have ended after the block.

    Raises `FileNotFoundError` without the balancer, and `TimeoutError` if a process does not serve.
    """
    own, *ports = [port or _free_port(), *(_free_port() for _ in range(MOST_REPLICAS))]
    variables = {f"PROBE_REPLICA_{n}": f"127.0.0.1:{each}" for n, each in enumerate(ports, 1)}
    variables["PROBE_LISTEN"] = f"127.0.0.1:{own}"
    environment = {_KEYS: secrets.token_hex(32)} | os.environ | variables
    url = f"http://127.0.0.1:{own}"
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = BALANCERS[balancer](home, variables)
        servers = [stack.enter_context(_replica(each, options, environment)) for each in ports[:replicas]]
        for each in ports[:replicas]:
            _wait_for(f"http://127.0.0.1:{each}/ready", 200)
        front = stack.enter_context(_process(command, environment))
        _wait_for(f"{url}/new", 303)
        yield Cluster(url, front, servers, ports[:replicas])


def _replica(port: int, options: Sequence[str], environment: dict[str, str]) -> Any:
    usual = ("--rooms", "only", "--port", str(port), "--trusted-proxies", "127.0.0.1")
    return _process([sys.executable, "-m", "probe", "serve", *usual, *options], environment)


@contextmanager
def _process(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    # A session of its own: else Ctrl-C would reach it as well, and a second signal ends running work.
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:  # noqa: S603 - made above
        try:
            yield process
            process.terminate()
            process.wait(_STOP_S)
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def asked(
    method: str, url: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage | dict[str, str], bytes]:
    """Status, headers and body of an answer; status 0 if there is none. Redirects are not followed."""
    parts = urlsplit(url)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_START_S)) as connection:
        try:
            connection.request(method, parts.path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (ConnectionError, http.client.BadStatusLine):
            return 0, {}, b""


def new_room(origin: str) -> dict[str, Any]:
    """A room, opened: the answer of `POST /api/rooms`. Raises `ConnectionError` if none is made."""
    status, _, body = asked("POST", f"{origin}/api/rooms", {})
    if status != 201:
        raise ConnectionError(f"no room: {status} {body[:300]!r}")
    room: dict[str, Any] = json.loads(body)
    status, _, body = asked("GET", room["api"] + "/room")
    if status != 200:
        raise ConnectionError(f"the room does not open: {status} {body[:300]!r}")
    return room


def _wait_for(url: str, status: int) -> None:
    until = time.monotonic() + _START_S
    while asked("GET", url)[0] != status:
        if time.monotonic() > until:
            raise TimeoutError(f"{url} does not answer with {status}")
        time.sleep(0.05)


def main() -> None:
    """Run a cluster until it is interrupted."""
    parser = argparse.ArgumentParser(prog="bench.cluster", description="Replicas with rooms behind a balancer.")
    parser.add_argument("--balancer", choices=list(BALANCERS), default="haproxy")
    parser.add_argument("--replicas", type=int, choices=range(1, MOST_REPLICAS + 1), default=MOST_REPLICAS)
    parser.add_argument("--port", type=int, default=8080, help="where the balancer listens on 127.0.0.1")
    options, rest = parser.parse_known_args()
    with running(options.balancer, *rest, replicas=options.replicas, port=options.port) as cluster:
        ports = ", ".join(map(str, cluster.ports))
        sys.stderr.write(f"{options.replicas} replicas (ports {ports}) behind {options.balancer}: {cluster.url}/new\n")
        # Not before: the processes would inherit it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        signal.sigwait(_ENDING)


if __name__ == "__main__":
    main()
