"""The program `mcp-probe`: its commands, and one line on stderr for wrong arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Final

import click

from .. import __version__
from ..core.escaping import shown

# "Wrong usage" for shells and service managers. Also for a port in use, since a restart will not help.
_REFUSED = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `mcp-probe` with these arguments (those of the process without them); returns the exit code.

    0 for a server ended by a signal, 2 after one `error: …` line about an error at the start, 1 if the reader of
    standard output has closed (`| head`). `help COMMAND` is `COMMAND --help`. From here on, characters outside the
    encoding of standard output are escaped.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # Names of clients, and the program's own "→", must not end it on cp1252 or Latin-1.
        sys.stdout.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        result = _commands.main(words, prog_name="mcp-probe", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"error: {_one_line(error)}", err=True)
        return _REFUSED
    except click.Abort:
        return _INTERRUPTED
    return int(result or 0)


def _one_line(error: click.ClickException) -> str:
    message = shown(" ".join(error.format_message().split()))
    if isinstance(error, click.UsageError) and error.ctx is not None:
        end = " See" if message.endswith("?") else "; see"
        return f"{message.removesuffix('.')}{end} {error.ctx.command_path} --help"
    return message


class _Commands(Mapping[str, click.Command]):
    """The commands by their names. A lookup imports the module of the command."""

    # In the order of the help.
    _MODULES: Final = {
        "serve": "serve",
        "judge": "judge",
        "gateway": "gateway",
        "stdio": "stdio",
        "tail": "tail",
        "export": "export",
        "open": "open_file",
        "toolhost-demo": "toolhost_demo",
        "doctor": "doctor",
        "settings": "settings",
    }

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = import_module(f"{__package__}.commands.{self._MODULES[name]}").command
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._MODULES)

    def __len__(self) -> int:
        return len(self._MODULES)


class _InThisOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands]


COMMANDS: Final = _Commands()
"""The commands of `mcp-probe` by their names."""


@click.group(
    cls=_InThisOrder,
    commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def _commands(context: click.Context) -> None:
    """A diagnostic Model Context Protocol server: point a client at it and see what happens on the wire.

    Begin with: mcp-probe serve --open
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
