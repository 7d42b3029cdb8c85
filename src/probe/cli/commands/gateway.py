"""`mcp-probe gateway`: its arguments, the probe of `--listen`, signals, and output files."""

from __future__ import annotations

import errno
import secrets
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import click

from ... import __version__
from ...settings.validation import did_you_mean

if TYPE_CHECKING:
    from ...gateway.breaker import Plan
    from ...gateway.client.target import Target
    from ...gateway.naming import Naming
    from ...gateway.phases.step import Step
    from ...gateway.run import Options, Recorded
    from ...gateway.trials import GatewayRun
    from ...settings import Settings

_UNREACHABLE = 2
# Seconds: several times the duration of a run on an idle machine.
_LIMIT_S = {"quick": 180.0, "full": 600.0, "idle": 900.0}
_FORMATS = ("table", "json", "junit", "markdown", "html")
# Above the rate of the most demanding phase. The memory is used only during the run.
_LISTEN_LIMITS = {"requests_per_second": 100_000.0, "request_burst": 100_000, "event_log_bytes": 256 * 1024 * 1024}


@dataclass(frozen=True, slots=True)
class _Given:
    """The arguments of one run."""

    listen: int | None
    host: str
    probe: str | None
    through: str | None
    direct: str | None
    headers: Sequence[str]
    cafile: str | None
    insecure: bool
    h2: str
    ws: str | None
    breaker: int | None
    profile: str
    only: Sequence[str]
    skip: Sequence[str]
    wait: float
    save: str | None
    prefix: str
    names: str | None
    seed: int | None
    limit: float | None


@click.command("gateway", short_help="Say how a gateway or proxy changes the protocol.")
@click.option("--listen", type=click.IntRange(1, 65535), metavar="PORT", help="Start a probe on this port for the run.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address on which --listen and --breaker listen."
)
@click.option("--probe", metavar="URL", help="A probe that runs: http://127.0.0.1:8000. Its API is read.")
@click.option("--through", metavar="URL", help="The same endpoint through the gateway, with its path: …/mcp.")
@click.option("--direct", metavar="URL", help="Another direct way to the endpoint; without it /mcp of the probe.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME: VALUE", help="Sent to the gateway alone, and in no report."
)
@click.option("--cafile", metavar="FILE", help="Certificates to trust beside those of this machine.")
@click.option("--insecure", is_flag=True, help="Do not check the gateway's certificate.")
@click.option(
    "--h2",
    type=click.Choice(["auto", "always", "never"]),
    default="never",
    show_default=True,
    help="HTTP/2 to the gateway: where TLS agrees on it, or always.",
)
@click.option("--ws", metavar="URL", help="The WebSocket endpoint through the gateway; without it /ws beside /mcp.")
@click.option(
    "--breaker",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Listen here too; point the gateway at this port, and connections to the probe are broken on purpose.",
)
@click.option(
    "--profile",
    type=click.Choice(["quick", "full", "idle"]),
    default="full",
    show_default=True,
    help="quick: under a minute. full: under two minutes, silence of 70 s. idle: silence of 310 s.",
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only these checks, or those that begin so: close, limit.body."
)
@click.option("--skip", multiple=True, metavar="NAME", help="Not these checks.")
@click.option("--allow", metavar="FILE", help='Accepted deviations, one a line: "stream.late" = "degraded".')
@click.option("--strict", is_flag=True, help="Exit with 1 also where something is degraded.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="table",
    show_default=True,
    help="How findings are written.",
)
@click.option("--out", metavar="FILE", help="Write them to this file; without it to standard output.")
@click.option("--save", metavar="FILE", help="Keep the whole run, so that --from can judge it again.")
@click.option("--from", "saved", metavar="FILE", help="Judge a run that was saved, and send nothing.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=120.0,
    show_default=True,
    help="Seconds until the gateway has to answer.",
)
@click.option(
    "--limit",
    type=click.FloatRange(1, 7200),
    metavar="SECONDS",
    help="The run ends after this time, and is judged as far as it came. quick: 180, full: 600, idle: 900.",
)
@click.option("--prefix", default="", metavar="TEXT", help="The gateway puts this before the name of each tool: demo_.")
@click.option("--names", metavar="FILE", help='What it calls tools, as JSON: {"progress": "do_progress"}.')
@click.option(
    "--seed",
    type=click.IntRange(0, 0xFFFFFF),
    metavar="NUMBER",
    help="The marks in arguments are made of this number, so that two runs send the same bytes.",
)
@click.option("--observe", is_flag=True, help="Only read the log of --probe, and say what is likely.")
def command(
    allow: str | None, form: str, out: str | None, saved: str | None, *, strict: bool, observe: bool, **given: Any
) -> int:
    """Compare the protocol through a gateway with the protocol without it, and say how to mend what differs.

    Exit: 0 nothing is broken, 1 something is, 2 it cannot be checked, 3 nothing is broken, but something is unclear or
    was not done.
    """
    # Imports of half a second, unused by other commands.
    from ...gateway.checks import CHECKS, judge
    from ...gateway.faults import catalogue
    from ...gateway.report import FORMATS, Allowed, AllowedError, exit_code, read_allowed

    arguments = _Given(**given)
    try:
        allowed = (
            Allowed() if allow is None else read_allowed(_text(allow), [each.name for each in catalogue().values()])
        )
    except AllowedError as error:
        raise click.ClickException(f"{allow}: {error}") from None
    if observe:
        return _observe(arguments, out)
    chosen = _chosen(arguments.only, arguments.skip)
    run = _load(saved) if saved is not None else _execute(arguments, chosen)
    findings = judge(run, [check for check in CHECKS if check.number in chosen])
    _write(out, FORMATS[form](run, findings, allowed))
    return exit_code(findings, allowed, strict=strict, partial=bool(run.partial))


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
    from ...gateway.faults import catalogue

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
    from ...gateway.trials import RunError, load

    try:
        with Path(path).open("rb") as file:
            return load(file)
    except (OSError, RunError) as error:
        raise click.ClickException(f"{path}: {error}") from None


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _execute(given: _Given, chosen: set[int]) -> GatewayRun:
    import trio

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
    from ...gateway.behind import BehindError
    from ...gateway.client.target import TargetError
    from ...gateway.naming import NamingError
    from ...gateway.run import UnreachableError
    from ...gateway.trials import dump
    from ...server.listener import ListenError
    from ..starting import StartError, first

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


async def _run(given: _Given, through: str, headers: Sequence[tuple[str, str]], chosen: set[int]) -> Recorded:
    """One run: the nursery owns the probe of --listen, the breaker, and the task that waits for signals."""
    import trio

    from ...gateway.run import Recorded, run
    from .. import app

    async with trio.open_nursery() as around:
        base = given.probe
        if given.listen is not None:
            base = (await around.start(app.serve, _settings(given)))[0]
        options = _options(given, str(base), through, headers, chosen)
        if given.breaker is not None:
            options = await _with_breaker(around, given, options)
        recorded = Recorded(options, __version__, time.time())
        async with _until_signal() as scope:
            if given.listen is not None:
                port = given.breaker or given.listen
                _tell(f"point your gateway at http://{given.host}:{port}; waiting for {options.through.url}")
            await _wait_reached(options.through, given.wait)
            await run(recorded, _tell)
        if scope.cancelled_caught:
            recorded.stop("stopped by a signal")
        if recorded.partial:
            _tell(f"{recorded.partial}, and are judged")
        around.cancel_scope.cancel()
    return recorded


def _settings(given: _Given) -> Settings:
    from ...settings import build

    return build({"host": given.host, "port": given.listen, "tools": "all", "judge": False, **_LISTEN_LIMITS})


def _options(
    given: _Given, base: str, through_url: str, headers: Sequence[tuple[str, str]], chosen: set[int]
) -> Options:
    from ...gateway.client.target import target
    from ...gateway.marks import first_mark
    from ...gateway.run import Options

    base = base.rstrip("/")
    shared: dict[str, Any] = {"cafile": given.cafile, "insecure": given.insecure}
    direct = target(given.direct or f"{base}/mcp", **shared)
    through = target(through_url, headers=headers, h2=given.h2, **shared)  # type: ignore[arg-type]  # click has checked it
    api = target(f"{base}/api", **shared)
    sockets = (_websocket(direct.url, None, **shared), _websocket(through_url, given.ws, headers=headers, **shared))
    steps = _steps(given.profile, chosen)
    mark = first_mark(secrets.randbits(24) if given.seed is None else given.seed)
    naming = _naming(given)
    limit_s = given.limit or _LIMIT_S[given.profile]
    return Options(direct, through, api, mark, given.profile, steps, sockets, naming=naming, limit_s=limit_s)  # type: ignore[arg-type]  # likewise


def _naming(given: _Given) -> Naming:
    from ...gateway.naming import Naming, NamingError, read_names

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
    from ...gateway.client.target import target

    parts = urlsplit(endpoint)
    if url is not None:
        return target(url, **shared)
    if not parts.path.endswith("/mcp"):
        return None
    return target(urlunsplit(parts._replace(path=parts.path.removesuffix("mcp") + "ws")), **shared)


def _steps(profile: str, chosen: set[int]) -> list[Step]:
    from ...gateway.checks import CHECKS
    from ...gateway.phases import of_profile

    wanted = {name for check in CHECKS if check.number in chosen for name in check.steps}
    if any(step.phase == "stopping" and step.name in wanted for step in of_profile(profile)):  # type: ignore[arg-type]  # likewise
        # Its messages give the offset between the clocks of both ends.
        wanted.add("progress.modern")
    return [step for step in of_profile(profile) if step.name in wanted or step.phase == "reach"]  # type: ignore[arg-type]  # click has checked it


async def _with_breaker(around: Any, given: _Given, options: Options) -> Options:
    from ...gateway.breaker import Plan, serve_breaker
    from ...server.listener import ListenError

    plan: Plan = Plan()
    target = options.api
    try:
        await around.start(serve_breaker, given.breaker, target.host, target.port, plan, given.host)
    except OSError as error:
        taken = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise ListenError(f"--breaker cannot listen on {given.host}:{given.breaker}: {taken}") from None
    return replace(options, breaker=plan)


@asynccontextmanager
async def _until_signal() -> AsyncIterator[Any]:
    """A scope cancelled by the first SIGINT or SIGTERM."""
    import trio

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                await anext(signals)
                scope.cancel()

            nursery.start_soon(wait)
            with trio.CancelScope() as scope:
                yield scope
            nursery.cancel_scope.cancel()


async def _wait_reached(through: Target, seconds: float) -> None:
    from ...gateway.run import wait_reached

    await wait_reached(through, seconds)


def _observe(given: _Given, out: str | None) -> int:
    import trio

    from ...gateway.behind import BehindError
    from ...gateway.client.target import TargetError, target
    from ...gateway.observe import observe

    if given.probe is None:
        raise click.ClickException("--observe reads the log of --probe URL")
    api = {"cafile": given.cafile, "insecure": given.insecure}
    try:
        observed = trio.run(observe, target(given.probe.rstrip("/") + "/api", **api))  # type: ignore[arg-type]  # click has checked it
    except (TargetError, BehindError) as error:
        raise click.ClickException(str(error)) from None
    _write(out, observed.shown())
    return 0
