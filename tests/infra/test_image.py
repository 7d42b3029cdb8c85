"""The image, stage by stage, without a container engine; and what comes out of it, started as the image starts it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from .dockerfile import Build, Stage, context, instructions
from .tools import ROOT, accepted, script

checks = script("smoke")

DOCKERFILE = (ROOT / "Dockerfile").read_text()
USER = 10001
START_S = 30
STOP_S = 30
# an agreed bound; the machine that runs the tests may be busy
COLD_S = 10.0


@dataclass
class Built:
    """The last stage, and the folder that all of them are in."""

    home: Path
    image: Stage

    @property
    def prefix(self) -> Path:
        return self.image.place("/opt/mcp-probe")


@pytest.fixture(scope="module")
def built() -> Iterator[Built]:
    # not in pytest's own folder, which nobody else may enter: the server runs as another user
    home = Path(tempfile.mkdtemp(prefix="image-"))
    home.chmod(0o755)
    try:
        source = context(ROOT, ROOT / ".dockerignore", home / "context")
        yield Built(home, Build(home / "stages", source).run(DOCKERFILE))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def as_image(built: Built, command: list[str], **environment: str) -> dict[str, object]:
    """How the image starts a program: no rights, its variables, no place of its own to write."""
    variables = {**built.image.environment, "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/nonexistent"}
    return {"args": [*powerless(), *built.image.placed(command)], "env": variables | environment, "cwd": "/"}


def powerless() -> list[str]:
    """What gives up the rights of whoever runs the tests, for the program that follows.

    Without capabilities root may write as little as anybody else. The user becomes another one too, except where the
    interpreter is in a folder that only its owner may enter.
    """
    if os.geteuid() != 0:
        return []
    python = Path(sys.executable).resolve()
    public = all(folder.stat().st_mode & 0o001 for folder in python.parents)
    ids = ["--reuid", str(USER), "--regid", str(USER), "--clear-groups"] if public else []
    return ["setpriv", *ids, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]


@contextmanager
def started(built: Built, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*built.image.entrypoint, *built.image.command]
    with subprocess.Popen(**as_image(built, command, **environment), stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def smoked(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "infra" / "smoke.py"), url]
    return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, timeout=120)


def files(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


# -- what the file says


def test_a_linter_finds_nothing_in_the_dockerfile() -> None:
    accepted("hadolint", "--no-color", "Dockerfile")


def test_the_server_is_process_1_and_not_root() -> None:
    said = dict(instructions(DOCKERFILE))
    assert json.loads(said["ENTRYPOINT"]) == ["/opt/mcp-probe/bin/mcp-probe"]
    assert json.loads(said["CMD"]) == ["serve"]
    assert said["USER"] == f"{USER}:{USER}"


def test_the_base_is_one_image_of_one_release() -> None:
    bases = {rest for word, rest in instructions(DOCKERFILE) if word == "ARG" and rest.startswith("PYTHON=")}
    assert len(bases) == 1
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", bases.pop())


# -- what comes out


def test_it_serves_as_another_user_in_a_tree_that_nobody_can_write(built: Built) -> None:
    before = files(built.prefix)
    for path in [built.prefix, *built.prefix.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o555)
    port = free_port()
    with started(built, MCP_PROBE_PORT=str(port), MCP_PROBE_GRACE_S="1") as server:
        first_answer(server, port)
        said = smoked(f"http://127.0.0.1:{port}")
        assert said.returncode == 0, said.stdout
        server.send_signal(getattr(signal, built.image.signal))
        _, errors = server.communicate(timeout=STOP_S)
    assert server.returncode == 0, errors
    assert b"Traceback" not in errors
    assert files(built.prefix) == before


def test_a_call_is_answered_soon_after_the_start(built: Built) -> None:
    port = free_port()
    began = time.monotonic()
    with started(built, MCP_PROBE_PORT=str(port)) as server:
        first_answer(server, port)
        took = time.monotonic() - began
    print(f"start to first answered call: {took:.2f} s")
    assert took < COLD_S


def first_answer(server: subprocess.Popen[bytes], port: int) -> None:
    """Ask until a tool call is answered, with next to no stops in between: they would be measured too."""
    target = checks.ProbeAddress(f"http://127.0.0.1:{port}", None)
    until = time.monotonic() + START_S
    while True:
        try:
            return checks.check_call(target)
        except ConnectionRefusedError:
            assert server.poll() is None, server.stderr.read().decode()
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.005)  # real time: a process can only be asked


def test_the_health_check_tells_a_server_from_none(built: Built) -> None:
    port = free_port()
    check = as_image(built, built.image.health, MCP_PROBE_PORT=str(port))
    assert subprocess.run(**check, check=False, timeout=START_S).returncode == 1
    with started(built, MCP_PROBE_PORT=str(port)) as server:
        first_answer(server, port)
        assert subprocess.run(**check, check=False, timeout=START_S).returncode == 0


def test_a_mounted_volume_keeps_calls_over_a_restart(built: Built) -> None:
    data = built.image.place("/data")
    if os.geteuid() == 0:
        assert (data.stat().st_uid, data.stat().st_gid) == (USER, USER)
        # whoever runs the server here, which may be root without its capabilities
        data.chmod(0o777)
    database = data / "audit.db"
    port = free_port()
    with started(built, MCP_PROBE_PORT=str(port), MCP_PROBE_AUDIT_DB=str(database)) as server:
        first_answer(server, port)
        server.terminate()
        assert server.wait(STOP_S) == 0
    assert database.stat().st_size > 0


# -- what is in it


def test_exactly_the_lock_is_installed(built: Built) -> None:
    lock = (ROOT / "requirements" / "run.txt").read_text()
    wanted = {_canonical(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE)}
    there = {_canonical(name): version for name, version in _installed(built)}
    assert there.pop("mcp-probe-server")
    # some of the lock is for other systems
    assert there.items() <= wanted.items()
    assert {"trio", "hypercorn", "h11", "h2"} <= there.keys()


def test_nothing_in_it_installs_or_compiles(built: Built) -> None:
    names = {path.name for path in (built.prefix / "bin").iterdir()}
    assert not names & {"pip", "pip3", "gcc", "node", "npm", "cyclonedx-py"}
    assert subprocess.run([built.prefix / "bin" / "python", "-c", "import pip"], check=False).returncode == 1
    base = built.image.root / "base" / "bin" / "python"
    assert subprocess.run([base, "-c", "import pip"], check=False).returncode == 1


def test_everything_is_compiled_and_checks_no_sources(built: Built) -> None:
    sources = [file for file in built.prefix.rglob("*.py") if "share" not in file.relative_to(built.prefix).parts]
    for file in sources:
        compiled = list((file.parent / "__pycache__").glob(f"{file.stem}.cpython-*.pyc"))
        # PEP 552: bit 0, it has a hash and no time; bit 1, the hash is looked at
        assert [int.from_bytes(found.read_bytes()[4:8], "little") for found in compiled] == [0b01], file


def test_the_lists_of_contents_name_what_is_there(built: Built) -> None:
    server = _bom(built, "server")
    assert {(part["name"], part["version"]) for part in server["components"]} >= {
        (name, version) for name, version in _installed(built) if name != "mcp-probe-server"
    }
    dashboard = {part["name"]: part["version"] for part in _bom(built, "dashboard")["components"]}
    lock = json.loads((ROOT / "dashboard" / "package-lock.json").read_text())["packages"]
    shipped = {path: entry for path, entry in lock.items() if path and not (entry.keys() & {"dev", "devOptional"})}
    assert dashboard == {path.rpartition("node_modules/")[2]: entry["version"] for path, entry in shipped.items()}
    assert dashboard["react"]


def test_the_lists_of_contents_have_nothing_random(built: Built) -> None:
    for name in ("server", "dashboard"):
        bom = _bom(built, name)
        assert "serialNumber" not in bom
        assert "timestamp" not in bom["metadata"]


def test_another_build_gives_the_same_wheel(built: Built, tmp_path: Path) -> None:
    (first,) = (built.home / "stages" / "wheel" / "out" / "dist").glob("*.whl")
    again = shutil.copytree(built.home / "stages" / "wheel" / "build", tmp_path / "elsewhere")
    for file in again.rglob("*"):
        os.utime(file, (1_600_000_000, 1_600_000_000))
    command = ["sh", "container/build-wheel.sh", str(tmp_path / "dist")]
    subprocess.run(command, cwd=again, check=True, stdout=subprocess.DEVNULL, timeout=300)
    (second,) = (tmp_path / "dist").glob("*.whl")
    assert second.name == first.name
    assert second.read_bytes() == first.read_bytes()


def test_a_wheel_without_pages_is_not_built(built: Built, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "container", tmp_path / "container")
    command = ["sh", "container/build-wheel.sh", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=tmp_path, check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "build-wheel.sh: the dashboard is not built\n")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(built: Built) -> list[tuple[str, str]]:
    ask = "import importlib.metadata as m, json; print(json.dumps([(d.name, d.version) for d in m.distributions()]))"
    command = [built.prefix / "bin" / "python", "-I", "-c", ask]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [tuple(pair) for pair in json.loads(done.stdout)]


def _bom(built: Built, name: str) -> dict[str, object]:
    return json.loads((built.prefix / "share" / "sbom" / f"{name}.cdx.json").read_text())
