"""Every task of this project. `nox` runs what CI runs; `nox -l` lists the rest; `nox -s NAME -- ARGS` passes arguments.

All installs come from the locks in requirements/, checked by hash.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
# one environment per lock, not per session (see `environment`): nox itself makes none
nox.options.default_venv_backend = "none"
nox.options.sessions = [
    "lint",
    "types",
    "imports",
    "tests",
    "properties",
    "interop",
    "interop_legacy",
    "conformance",
    "build",
]

ROOT = Path(__file__).parent
REQUIREMENTS = ROOT / "requirements"
ENVIRONMENTS = ROOT / ".nox"
NODE = ROOT / "tests" / "node"
NOT_OURS = ("--ignore=tests/clients", "--ignore=tests/conformance")
# the conformance suite imports fs.globSync
NODE_MAJOR = 22


def digest(files: Iterable[Path]) -> str:
    """One hash over the contents of some files."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def create(session: nox.Session, home: Path, *installs: tuple[str, ...]) -> Path:
    """Make a new virtual environment and run pip in it, once per tuple of arguments; returns its folder of programs."""
    session.run(sys.executable, "-m", "venv", "--clear", str(home))
    programs = home / "bin"
    for arguments in installs:
        session.run(programs / "python", "-m", "pip", "install", "--quiet", *arguments)
    return programs


def environment(session: nox.Session, lock: str) -> Path:
    """The environment of one lock, with this package, editable; returns its folder of programs.

    Sessions share it: six copies of the dev lock would only cost minutes and a gigabyte. It is made again when the
    lock or pyproject.toml changes.
    """
    locks = [REQUIREMENTS / f"{name}.txt" for name in (lock, "build")]
    wanted = digest([*locks, ROOT / "pyproject.toml"])
    home = ENVIRONMENTS / lock
    stamp = home / "made-from"
    if not (stamp.exists() and stamp.read_text() == wanted):
        hashed = [("--require-hashes", "-r", str(file)) for file in locks]
        create(session, home, *hashed, ("--no-deps", "--no-build-isolation", "--editable", str(ROOT)))
        stamp.write_text(wanted)
    return home / "bin"


def npm_ci(session: nox.Session, folder: Path) -> Path:
    """Install a package-lock.json beside itself, unless that is done already; returns its node_modules."""
    if shutil.which("npm") is None:
        session.error("this session needs Node.js 18 or newer, with npm")
    modules = folder / "node_modules"
    wanted = digest([folder / "package-lock.json"])
    stamp = modules / ".installed"
    if not (stamp.exists() and stamp.read_text() == wanted):
        with session.chdir(folder):
            session.run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
        stamp.write_text(wanted)
    return modules


def node_environment(session: nox.Session) -> dict[str, str]:
    """Install the Node programs of the tests; `PROBE_NODE` is a node binary that is new enough to run them."""
    npm_ci(session, NODE)
    own = shutil.which("node")
    if own and int(str(session.run(own, "--version", silent=True)).lstrip("v").split(".")[0]) >= NODE_MAJOR:
        return {"PROBE_NODE": own}
    runtime = npm_ci(session, NODE / "runtime")
    return {"PROBE_NODE": str(next(runtime.glob("node-*/bin/node")))}


def junit(session: nox.Session) -> Path:
    """Where a session leaves its report for .ci/tally.py."""
    return ENVIRONMENTS / "junit" / f"{session.name}.xml"


def pytest(session: nox.Session, lock: str, *arguments: str, **variables: str) -> None:
    """Run pytest in the environment of a lock."""
    programs = environment(session, lock)
    session.run(programs / "pytest", f"--junitxml={junit(session)}", *arguments, *session.posargs, env=variables)


@nox.session
def serve(session: nox.Session) -> None:
    """Start a server: `nox -s serve -- --port 9000`."""
    programs = environment(session, "run")
    # Ctrl-C reaches the server too; nox has to outwait its grace period, and 0.3 s is its own idea
    session.run(programs / "mcp-probe", "serve", *session.posargs, interrupt_timeout=None)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and likely mistakes (ruff)."""
    session.run(environment(session, "dev") / "ruff", "check", *(session.posargs or ["."]))


@nox.session
def types(session: nox.Session) -> None:
    """Strict types (mypy)."""
    session.run(environment(session, "dev") / "mypy", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """Who may import whom (import-linter)."""
    session.run(environment(session, "dev") / "lint-imports", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Every test without a session of its own."""
    pytest(session, "dev", "-m", "not hypothesis", *NOT_OURS)


@nox.session
def properties(session: nox.Session) -> None:
    """The hypothesis tests, with thousands of examples each."""
    pytest(session, "dev", "-m", "hypothesis", *NOT_OURS, HYPOTHESIS_PROFILE="thorough")


@nox.session
def interop(session: nox.Session) -> None:
    """Today's official clients, Python and TypeScript, against this server."""
    pytest(session, "dev", "tests/clients", "--ignore=tests/clients/legacy", **node_environment(session))


@nox.session
def interop_legacy(session: nox.Session) -> None:
    """The last 1.x of the official Python client against this server."""
    pytest(session, "interop-legacy", "tests/clients/legacy")


@nox.session
def conformance(session: nox.Session) -> None:
    """The official conformance suite, both of its generations."""
    python = environment(session, "dev") / "python"
    run = (python, "tests/conformance/run.py", f"--junitxml={junit(session)}")
    session.run(*run, *session.posargs, env=node_environment(session))


@nox.session
def bench(session: nox.Session) -> None:
    """Throughput and latency; the numbers are for reading, none fails."""
    python = environment(session, "dev") / "python"
    session.run(python, "-m", "bench", *session.posargs, env=node_environment(session))


@nox.session
def build(session: nox.Session) -> None:
    """Build sdist and wheel into dist/, and start the wheel where nothing else is installed."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    python = environment(session, "dev") / "python"
    session.run(python, "-m", "build", "--no-isolation", "--outdir", str(dist), str(ROOT), silent=True)
    lock = ("--require-hashes", "-r", str(REQUIREMENTS / "run.txt"))
    programs = create(session, ENVIRONMENTS / "wheel", lock, ("--no-deps", str(next(dist.glob("*.whl")))))
    for arguments in (["--version"], ["settings"], ["serve", "--help"]):
        session.run(programs / "mcp-probe", *arguments, silent=True)


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve all locks again: `nox -s lock -- --upgrade` for newer versions."""
    uv = create(session, ENVIRONMENTS / "lock", ("uv==0.13.8",)) / "uv"
    # one resolution for every platform and Python that pyproject.toml allows, with one version of each package
    options = ["--no-config", "--quiet", "--universal", "--fork-strategy=fewest", "--python-version=3.11"]
    options += ["--generate-hashes", "--annotation-style=line", *session.posargs]
    inputs = {
        "run": ["pyproject.toml"],
        "dev": ["pyproject.toml", "--group=dev", "--constraint=requirements/run.txt"],
        "interop-legacy": ["pyproject.toml", "--group=interop-legacy", "--constraint=requirements/run.txt"],
        "build": ["--group=build", "--constraint=requirements/dev.txt"],
    }
    for name, wanted in inputs.items():
        output = f"--output-file=requirements/{name}.txt"
        session.run(uv, "pip", "compile", *options, *wanted, output, env={"UV_CUSTOM_COMPILE_COMMAND": "nox -s lock"})
    for folder in (NODE, NODE / "runtime"):
        with session.chdir(folder):
            session.run("npm", "install", "--package-lock-only", "--no-audit", "--no-fund")
