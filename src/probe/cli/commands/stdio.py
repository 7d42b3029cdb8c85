"""`mcp-probe stdio`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ...core.clients import LABEL_RULE, is_client_label
from ...settings import ENV_PREFIX, build
from ..starting import loading
from .options import MORE, refusals, warn_of_misspelt, whole_number, with_settings

# what the help shows: the others are about HTTP
_SHOWN = ("tools", "audit_db", "log_level")


def _checked_label(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not is_client_label(name):
        raise click.ClickException(f"client ({ENV_PREFIX}CLIENT) must be {LABEL_RULE}")
    return name


def _explain_on_terminal() -> None:
    """Explain the command on a terminal: the server waits for a client, and the user would wait for output."""
    if sys.stdin is not None and sys.stdin.isatty():
        hint = "A client starts this command and speaks to it here; Ctrl-C ends it. For the dashboard: mcp-probe serve"
        click.echo(hint, err=True)


@click.command("stdio", epilog=MORE)
@click.option(
    "--dashboard",
    type=whole_number(0, 65535),
    metavar="PORT",
    help="Serve the dashboard on this port; 0 picks a free one and prints it.",
)
@click.option(
    "--client",
    metavar="NAME",
    envvar=f"{ENV_PREFIX}CLIENT",
    callback=_checked_label,
    help="A name for the client, for its entries in the event log.",
)
@click.option(
    "--log-to",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the event log in this folder (NDJSON).",
)
@click.option(
    "--forward",
    metavar="URL",
    help="Forward the event log to the server there, which has the same --forward-secret.",
)
@with_settings(shown=_SHOWN)
@click.pass_context
def command(
    context: click.Context,
    /,
    dashboard: int | None,
    client: str | None,
    log_to: Path | None,
    forward: str | None,
    **values: Any,
) -> int:
    """Serve one client on standard input and output."""
    _explain_on_terminal()
    warn_of_misspelt(context, values["log_format"])
    with refusals():
        with loading():
            from .. import app
        return app.stdio(build(values), app.StdioOptions(dashboard, client, log_to, forward))
