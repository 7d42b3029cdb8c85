"""Settings as options of a command, and errors at the start as click's errors."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from typing import Any

import click
from click.core import ParameterSource

from ...settings import ENV_PREFIX, Described, Limits, Settings, described
from ...settings.description import SettingError
from ..starting import StartError

# the least similarity, from 0 to 1, of a misspelt name: enough for two swapped letters
_LIKE = 0.75


def every_setting() -> Iterable[Described]:
    """All settings of a server with an option, its limits last."""
    return (spec for spec in chain(described(Settings), described(Limits)) if not spec.fixed)


def whole_number(low: int | None, high: int | None) -> click.ParamType[Any]:
    """An integer within bounds; None is no bound."""
    # click's names, "integer range" and "float range", read badly in "'x' is not a valid …"
    whole = click.IntRange(low, high)
    whole.name = "integer"
    return whole


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _parameter_type(spec: Described) -> click.ParamType[Any] | type:
    if spec.type is int:
        return whole_number(_whole(spec.low), _whole(spec.high))
    if spec.type is float:
        number = click.FloatRange(spec.low, spec.high)
        number.name = "number"
        return number
    return spec.type


class _Setting(click.Option):
    """An option without its variable in the help, as the flag implies it. Messages about a wrong value have it."""

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        extra = super().get_help_extra(ctx)
        extra.pop("envvars", None)
        return extra


def _option(spec: Described, *, hidden: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    # `--metrics` alone is `--metrics true`.
    alone: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if spec.type is bool else {}
    return click.option(
        spec.flag,
        spec.name,
        cls=_Setting,
        type=_parameter_type(spec),
        default=spec.default,
        envvar=spec.variable,
        show_default=spec.default != "",
        show_envvar=True,
        hidden=hidden,
        **alone,
        help=spec.help,
    )


def _turns_off(spec: Described, *, hidden: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--no-judge` for a setting that is on by default; it wins over `--judge` and its variable."""
    name = f"no_{spec.name}"

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*arguments: Any, **values: Any) -> Any:
            if values.pop(name):
                values[spec.name] = False
            return function(*arguments, **values)

        option = click.option(f"--no-{spec.flag.removeprefix('--')}", name, is_flag=True, hidden=hidden, help=spec.help)
        return option(command)

    return decorate


def with_settings(*, shown: Collection[str] | None = None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: each setting is an option, passed to the function as a keyword argument of its name.

    `--help` shows only settings with a line for it, and of them only `shown`, if that is given.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        # the decorator nearest to the function comes first in --help
        for spec in reversed([*every_setting()]):
            hidden = not spec.help or (shown is not None and spec.name not in shown)
            is_on = spec.type is bool and spec.default
            if is_on:
                function = _turns_off(spec, hidden=hidden)(function)
            function = _option(spec, hidden=hidden or is_on)(function)
        return function

    return decorate


def first_given(context: click.Context, names: Collection[str], *, by_variable: bool = False) -> str | None:
    """The flag of the first of these options that stands on the command line, in the order of the help; else None.

    `by_variable` also finds an option whose variable is set.
    """
    sources = {ParameterSource.COMMANDLINE, *([ParameterSource.ENVIRONMENT] if by_variable else ())}
    for option in context.command.params:
        name = str(option.name)
        if name in names and context.get_parameter_source(name) in sources:
            return option.opts[0]
    return None


MORE = """\b
These are the usual settings. `mcp-probe settings` lists all of them, and
`mcp-probe settings WORD` those about a word. Each is a flag and a variable:
--max-sessions is MCP_PROBE_MAX_SESSIONS.
"""
"""The end of a help text."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turns an error at the start of a server into click's kind of error.

    If the message begins with a setting, its flag replaces it: `--toolhost-secret must be at least …`.
    """
    try:
        yield
    except (SettingError, StartError) as error:
        name, space, rest = str(error).partition(" ")
        flags = {spec.name: spec.flag for spec in every_setting()}
        raise click.ClickException(f"{flags.get(name, name)}{space}{rest}") from None


def warn_of_misspelt(context: click.Context, log_format: str) -> None:
    """Warn on standard error, in the form of `log_format`, of variables not read by any command but similar to one.

    Other variables give no warning: Kubernetes sets MCP_PROBE_SERVICE_HOST and more for a service called mcp-probe.
    """
    own = _read_by([context.command])
    others = [name for name in _ours(os.environ) if name not in own]
    # The other commands are loaded only if one of them may read such a variable.
    group = context.find_root().command
    known = _read_by(group.commands.values()) if others and isinstance(group, click.Group) else own
    for name in others:
        if name not in known and (near := difflib.get_close_matches(name, known, 1, _LIKE)):
            _warn(f"{ENV_PREFIX}{name} is no setting; did you mean {ENV_PREFIX}{near[0]}?", log_format)


def _ours(variables: Iterable[str]) -> list[str]:
    return [variable.removeprefix(ENV_PREFIX) for variable in variables if variable.startswith(ENV_PREFIX)]


def _read_by(commands: Iterable[click.Command]) -> set[str]:
    read = [str(option.envvar) for command in commands for option in command.params if option.envvar]
    return set(_ours(read))


def _warn(text: str, log_format: str) -> None:
    from ...core.escaping import json_line
    from ...engine.clock import iso

    members = {"time": iso(time.time()), "level": "warning", "event": "settings", "message": text}
    click.echo(json_line(members) if log_format == "json" else f"warning: {text}", err=True)
