"""`mcp-probe serve`."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...settings import build
from ..starting import loading
from .options import MORE, refusals, warn_of_misspelt, with_settings


@click.command("serve", epilog=MORE)
@click.option("--open", "open_pages", is_flag=True, help="Open the dashboard in a browser.")
@click.option("--watch", is_flag=True, help="Show a line for each exchange on standard output.")
@with_settings()
@click.pass_context
def command(context: click.Context, /, *, open_pages: bool, watch: bool, **values: Any) -> int:
    """Serve MCP over HTTP, with the dashboard.

    Ctrl-C, SIGTERM or SIGHUP ends it: running work may finish, a second one ends it at once.
    """
    screen = None
    if watch and values["rooms"] == "only":
        raise click.UsageError("--watch shows the exchanges of /mcp, and --rooms only serves none there")
    if watch:
        from ...telemetry.terminal.screen import Screen

        screen = Screen(sys.stdout)
    warn_of_misspelt(context, values["log_format"])
    with refusals():
        with loading():
            from .. import app
        return app.main(build(values), open_pages=open_pages, screen=screen)
