"""Arguments and environment become `Settings`; whatever is wrong with them is one line on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import click

from . import __version__
from .settings import Described, Limits, SettingError, Settings, build, described

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
        click.echo(f"error: {' '.join(error.format_message().split())}", err=True)
        return _REFUSED
    except click.Abort:
        return _INTERRUPTED
    return int(result or 0)


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def _commands() -> None:
    """Serve a diagnostic Model Context Protocol server."""


def _every_setting() -> Iterable[Described]:
    return chain(described(Settings), described(Limits))


def _parameter_type(spec: Described) -> click.ParamType | type:
    if spec.type is int:
        low, high = (None if bound is None else int(bound) for bound in (spec.low, spec.high))
        return click.IntRange(low, high)
    if spec.type is float:
        return click.FloatRange(spec.low, spec.high)
    return spec.type


def _option(spec: Described) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        spec.flag,
        spec.name,
        type=_parameter_type(spec),
        default=spec.default,
        envvar=spec.variable,
        show_default=True,
        show_envvar=True,
        help=f"{spec.unit}: {spec.reason}.",
    )


def _with_every_setting(command: Callable[..., int]) -> Callable[..., int]:
    # the decorator nearest to the function comes first in --help
    for spec in reversed([*_every_setting()]):
        command = _option(spec)(command)
    return command


@_commands.command()
@_with_every_setting
def serve(**values: Any) -> int:
    """Serve MCP over HTTP until Ctrl-C or SIGTERM."""
    # a second of imports that `--version` and `settings` do not need
    from . import app

    try:
        return app.main(build(values))
    except (SettingError, app.StartError) as error:
        raise click.ClickException(str(error)) from None


def _bounds(spec: Described) -> str:
    if spec.low is None:
        return ""
    return f"at least {spec.low:g}" if spec.high is None else f"{spec.low:g} to {spec.high:g}"


def _row(spec: Described) -> tuple[str, ...]:
    return spec.flag, spec.variable, str(spec.default), spec.unit, _bounds(spec), spec.reason


@_commands.command()
def settings() -> None:
    """Print every setting: flag, variable, default, unit, bounds, reason."""
    rows = [("flag", "variable", "default", "unit", "bounds", "reason"), *map(_row, _every_setting())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())
