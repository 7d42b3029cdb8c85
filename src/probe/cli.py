"""Arguments and environment become `Settings`; whatever is wrong with them is one line on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import click

from . import __version__
from .checks import SettingError
from .settings import Described, Limits, Settings, build, described

# what shells and service managers know as "wrong usage", also for a port in use: restarting will not help
_REFUSED = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `mcp-probe` with these arguments (those of the process without them); returns the exit code.

    0 for a server that was told to stop, 2 after one `error: …` line for everything that kept it from starting.
    """
    try:
        result = _commands.main(arguments, prog_name="mcp-probe", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"error: {_one_line(error)}", err=True)
        return _REFUSED
    except click.Abort:
        return _INTERRUPTED
    return int(result or 0)


def _one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message.removesuffix('.')}; see {error.ctx.command_path} --help"
    return message


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def _commands() -> None:
    """Serve a diagnostic Model Context Protocol server."""


def _every_setting() -> Iterable[Described]:
    return chain(described(Settings), described(Limits))


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _whole_number(low: int | None, high: int | None) -> click.ParamType[Any]:
    # click calls this "integer range", and the other "float range", which reads badly in "'x' is not a valid …"
    whole = click.IntRange(low, high)
    whole.name = "integer"
    return whole


def _parameter_type(spec: Described) -> click.ParamType[Any] | type:
    if spec.type is int:
        return _whole_number(_whole(spec.low), _whole(spec.high))
    if spec.type is float:
        number = click.FloatRange(spec.low, spec.high)
        number.name = "number"
        return number
    return spec.type


def _option(spec: Described) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    # `--metrics` alone is `--metrics true`.
    alone: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if spec.type is bool else {}
    return click.option(
        spec.flag,
        spec.name,
        type=_parameter_type(spec),
        default=spec.default,
        envvar=spec.variable,
        show_default=True,
        show_envvar=True,
        **alone,
        help=f"{spec.unit}: {spec.reason}.",
    )


def _with_every_setting(command: Callable[..., int]) -> Callable[..., int]:
    # the decorator nearest to the function comes first in --help
    for spec in reversed([*_every_setting()]):
        command = _option(spec)(command)
    return command


@contextmanager
def _refusals() -> Iterator[None]:
    """What keeps a server from starting becomes click's kind of error."""
    from . import app

    try:
        yield
    except (SettingError, app.StartError) as error:
        raise click.ClickException(str(error)) from None


@_commands.command()
@_with_every_setting
def serve(**values: Any) -> int:
    """Serve MCP over HTTP until Ctrl-C, SIGTERM or SIGHUP."""
    # a second of imports that `--version` and `settings` do not need
    from . import app

    with _refusals():
        return app.main(build(values))


@_commands.command()
@click.option(
    "--dashboard",
    type=_whole_number(0, 65535),
    metavar="PORT",
    help="TCP port on the host: pages that show what happens; 0 picks a free one and prints it. Without it, no pages.",
)
@_with_every_setting
def stdio(dashboard: int | None, **values: Any) -> int:
    """Serve MCP to one client on standard input and output, until it closes them."""
    from . import app

    with _refusals():
        return app.stdio(build(values), dashboard)


def _secret(command: Callable[..., int]) -> Callable[..., int]:
    """The server's own setting, so that one variable in a shell serves both; here it has no default."""
    spec = next(spec for spec in described(Settings) if spec.name == "toolhost_secret")
    option = click.option(
        spec.flag, "secret", required=True, envvar=spec.variable, show_envvar=True, help="As the server has it."
    )
    return option(command)


@_commands.command("toolhost-demo")
@click.option(
    "--url",
    default="ws://127.0.0.1:8000/toolhost",
    show_default=True,
    help="Where the server is: its tool host endpoint, ws:// or wss://.",
)
@click.option("--name", default="demo", show_default=True, help="The name of the host, with which its tools begin.")
@_secret
def toolhost_demo(url: str, name: str, secret: str) -> int:
    """Offer demo tools through a running server, until Ctrl-C or SIGTERM."""
    from .toolhost import HostRefusedError, demo

    try:
        demo.main(url, name, secret)
    except (HostRefusedError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    return 0


def _text(value: Any) -> str:
    # bounds are floats also for whole numbers; :g alone would print a mebibyte as 1.04858e+06
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def _bounds(spec: Described) -> str:
    if spec.low is None:
        return ""
    low = _text(spec.low)
    return f"at least {low}" if spec.high is None else f"{low} to {_text(spec.high)}"


def _row(spec: Described) -> tuple[str, ...]:
    return spec.flag, spec.variable, _text(spec.default), spec.unit, _bounds(spec), spec.reason


@_commands.command()
def settings() -> None:
    """Print every setting: flag, variable, default, unit, bounds, reason."""
    rows = [("flag", "variable", "default", "unit", "bounds", "reason"), *map(_row, _every_setting())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())
