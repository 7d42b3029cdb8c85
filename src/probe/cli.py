"""The program `mcp-probe`: its commands, and one line on stderr for whatever is wrong with its arguments."""

from __future__ import annotations

from collections.abc import Sequence

import click

from . import __version__
from .commands import doctor, export, gateway, judge, open_file, serve, settings, stdio, tail, toolhost_demo

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


class _InThisOrder(click.Group):
    """Its help lists the commands as they were added, the first one first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands]


@click.group(cls=_InThisOrder, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def _commands(context: click.Context) -> None:
    """A diagnostic Model Context Protocol server: point a client at it and see what happens on the wire.

    Begin with: mcp-probe serve --open
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (
    serve.command,
    judge.command,
    gateway.command,
    stdio.command,
    tail.command,
    export.command,
    open_file.command,
    toolhost_demo.command,
    doctor.command,
    settings.command,
):
    _commands.add_command(_command)
