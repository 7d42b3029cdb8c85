"""`mcp-probe gateway`: one run of the gateway check, or of a saved one, and its report."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click
import trio

from .. import __version__
from ..core.exceptions import first
from ..gateway.behind import BehindError
from ..gateway.breaker import Plan, serve_breaker
from ..gateway.checks import catalogue, judge
from ..gateway.client.live import H2, Target, TargetError, target
from ..gateway.marks import first_mark
from ..gateway.naming import Naming, NamingError, read_names
from ..gateway.observe import observe
from ..gateway.phases import CHECKS, of_profile
from ..gateway.phases.step import Profile, Step
from ..gateway.report import FORMATS, Allowed, AllowedError, exit_code, read_allowed, table
from ..gateway.run import Options, Recorded, UnreachableError, run, wait_reached
from ..gateway.trials import GatewayRun, RunError, dump, load
from ..server.listener import ListenError
from ..settings import build
from ..settings.description import did_you_mean
from .starting import StartError

# Seconds: several times the duration of a run on an idle machine.
_LIMIT_S = {"quick": 180.0, "full": 600.0, "idle": 900.0}
# Above the rate of the most demanding phase. The memory is used only during the run.
_LISTEN_LIMITS = {"requests_per_second": 100_000.0, "request_burst": 100_000, "event_log_bytes": 256 * 1024 * 1024}


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """The options of the command, by their names there, but for `--observe`."""

    listen: int | None
    host: str
    probe: str | None
    through: str | None
    direct: str | None
    headers: Sequence[str]
    cafile: str | None
    insecure: bool
    h2: H2
    ws: str | None
    breaker: int | None
    profile: Profile
    only: Sequence[str]
    skip: Sequence[str]
    wait: float
    save: str | None
    prefix: str
    names: str | None
    seed: int | None
    limit: float | None
    saved: str | None
    allow: str | None
    strict: bool
    form: str
    verbose: bool
    out: str | None


def check(given: CheckArguments) -> int:
    """Do a run, or read the `saved` one, and write its report; returns the exit code. Raises `click.ClickException`."""
    try:
        names = [each.name for each in catalogue().values()]
        allowed = Allowed() if given.allow is None else read_allowed(_text(given.allow), names)
    except AllowedError as error:
        raise click.ClickException(f"{given.allow}: {error}") from None
    chosen = _chosen(given.only, given.skip)
    done = _load(given.saved) if given.saved is not None else _execute(given, chosen)
    findings = judge(done, [check for check in CHECKS if check.number in chosen])
    if given.form == "table":
        text = table(done, findings, allowed, verbose=given.verbose, width=_width(given.out))
    else:
        text = FORMATS[given.form](done, findings, allowed)
    _write(given.out, text)
    return exit_code(findings, allowed, strict=given.strict, partial=bool(done.partial))


def _width(out: str | None) -> int | None:
    """The columns of a terminal. None for a file or a pipe, and in CI, as its log is read in windows of any width."""
    if out is not None or not sys.stdout.isatty() or os.environ.get("CI"):
        return None
    return shutil.get_terminal_size().columns


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from None


def _write(path: str | None, text: str) -> None:
    if path is None:
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error}") from None


def _chosen(only: Sequence[str], skip: Sequence[str]) -> set[int]:
    names = {fault.name: number for number, fault in catalogue().items()}
    wanted = set(names.values()) if not only else set[int]()
    for parts, keep in ((only, True), (skip, False)):
        for part in (each.strip() for value in parts for each in value.split(",")):
            found = {number for name, number in names.items() if name == part or name.startswith(f"{part}.")}
            if not found:
                hint = did_you_mean(part, names) or f"; known are {', '.join(names)}"
                raise click.ClickException(f"there is no check {part!r}{hint}")
            wanted = wanted | found if keep else wanted - found
    return wanted


def _load(path: str) -> GatewayRun:
    try:
        with Path(path).open("rb") as file:
            return load(file)
    except (OSError, RunError) as error:
        raise click.ClickException(f"{path}: {error}") from None


def _show(line: str) -> None:
    click.echo(line, err=True)


def _execute(given: CheckArguments, chosen: set[int]) -> GatewayRun:
    if given.through is None:
        raise click.UsageError("--through URL says where the gateway is")
    if given.listen is None and given.probe is None:
        raise click.UsageError("--listen PORT or --probe URL says where the probe is")
    if given.listen is not None and given.probe is not None:
        raise click.UsageError("--listen starts a probe and --probe uses one that runs: give one of them")
    if given.breaker is not None and given.breaker == given.listen:
        raise click.UsageError(
            "--breaker is another port than --listen: the gateway goes to it, and it goes to the probe"
        )
    headers = [_header(value) for value in given.headers]
    _naming(given)

    failure: BaseException | None = None
    results: list[Recorded] = []
    try:
        results.append(trio.run(_run, given, given.through, headers, chosen, strict_exception_groups=True))
    except* (TargetError, UnreachableError, NamingError, BehindError, ListenError, StartError, OSError) as group:
        failure = first(group)
    if failure is not None:
        raise click.ClickException(str(failure))
    run = results[0].run()
    if given.save is not None:
        try:
            with Path(given.save).open("wb") as file:
                file.writelines(dump(run))
        except OSError as error:
            raise click.ClickException(f"{given.save} cannot be written: {error}") from None
    return run


async def _run(given: CheckArguments, through: str, headers: Sequence[tuple[str, str]], chosen: set[int]) -> Recorded:
    # Half a second, which a saved run does not need.
    from . import app

    async with trio.open_nursery() as around:
        base = given.probe
        if given.listen is not None:
            addresses = {"host": given.host, "port": given.listen}
            settings = build({**addresses, "tools": "all", "judge": False, **_LISTEN_LIMITS})
            base = (await around.start(app.serve, settings))[0]
        options = _options(given, str(base), through, headers, chosen)
        if given.breaker is not None:
            plan = Plan()
            await around.start(_serve_breaker, given, options.api, plan)
            options = replace(options, breaker=plan)
        recorded = Recorded(options, __version__, time.time())
        async with _until_signal() as scope:
            if given.listen is not None:
                port = given.breaker or given.listen
                _show(f"point your gateway at http://{given.host}:{port}; waiting for {options.through.url}")
            await wait_reached(options.through, given.wait, _show)
            await run(recorded, _show)
        if scope.cancelled_caught:
            recorded.stop("stopped by a signal")
        if recorded.partial:
            _show(f"{recorded.partial}, and are judged")
        around.cancel_scope.cancel()
    return recorded


def _options(
    given: CheckArguments, base: str, through_url: str, headers: Sequence[tuple[str, str]], chosen: set[int]
) -> Options:
    base = base.rstrip("/")
    shared: dict[str, Any] = {"cafile": given.cafile, "insecure": given.insecure}
    direct = target(given.direct or f"{base}/mcp", **shared)
    through = target(through_url, headers=headers, h2=given.h2, **shared)
    api = target(f"{base}/api", **shared)
    sockets = (_websocket(direct.url, None, **shared), _websocket(through_url, given.ws, headers=headers, **shared))
    steps = _steps(given.profile, chosen)
    mark = first_mark(secrets.randbits(24) if given.seed is None else given.seed)
    naming = _naming(given)
    limit_s = given.limit or _LIMIT_S[given.profile]
    return Options(direct, through, api, mark, given.profile, steps, sockets, naming=naming, limit_s=limit_s)


def _naming(given: CheckArguments) -> Naming:
    try:
        return Naming(given.prefix, {} if given.names is None else read_names(_text(given.names)))
    except NamingError as error:
        raise click.ClickException(f"{given.names}: {error}") from None


def _header(value: str) -> tuple[str, str]:
    name, colon, text = value.partition(":")
    if not colon or not name.strip() or any(ord(letter) < 32 for letter in value):
        raise click.ClickException("--header is NAME: VALUE on one line")
    return name.strip(), text.strip()


def _websocket(endpoint: str, url: str | None, **shared: Any) -> Target | None:
    """The WebSocket's address: as given, else `/ws` beside `/mcp`. Its TLS never agrees on HTTP/2 (RFC 6455)."""
    parts = urlsplit(endpoint)
    if url is not None:
        return target(url, **shared)
    if not parts.path.endswith("/mcp"):
        return None
    return target(urlunsplit(parts._replace(path=parts.path.removesuffix("mcp") + "ws")), **shared)


def _steps(profile: Profile, chosen: set[int]) -> list[Step]:
    wanted = {name for check in CHECKS if check.number in chosen for name in check.steps}
    if any(step.phase == "stopping" and step.name in wanted for step in of_profile(profile)):
        # Its messages give the offset between the clocks of both ends.
        wanted.add("progress.modern")
    return [step for step in of_profile(profile) if step.name in wanted or step.phase == "reach"]


async def _serve_breaker(
    given: CheckArguments, probe: Target, plan: Plan, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    try:
        await serve_breaker(given.breaker or 0, probe.host, probe.port, plan, given.host, task_status=task_status)
    except OSError as error:
        taken = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise ListenError(f"--breaker cannot listen on {given.host}:{given.breaker}: {taken}") from None


@asynccontextmanager
async def _until_signal() -> AsyncIterator[Any]:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                await anext(signals)
                scope.cancel()

            nursery.start_soon(wait)
            with trio.CancelScope() as scope:
                yield scope
            nursery.cancel_scope.cancel()


def observed(given: CheckArguments) -> int:
    """Write what is likely from the log of --probe alone; returns the exit code. Raises `click.ClickException`."""
    if given.probe is None:
        raise click.ClickException("--observe reads the log of --probe URL")
    try:
        api = target(given.probe.rstrip("/") + "/api", cafile=given.cafile, insecure=given.insecure)
        found = trio.run(observe, api)
    except (TargetError, BehindError) as error:
        raise click.ClickException(str(error)) from None
    _write(given.out, found.shown())
    return 0
