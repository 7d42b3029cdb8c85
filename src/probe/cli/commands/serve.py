"""`mcp-probe serve`."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...settings import build
from ..starting import loading
from .options import MORE, first_given, refusals, warn_of_misspelt, with_settings

# The options without an effect where there are no rooms, and where there are only rooms.
_OF_ROOMS = frozenset({"room_idle_s", "max_rooms", "rooms_per_hour", "room_share"})
_BESIDE_ROOMS = frozenset({"watch", "toolhost_secret", "forward_secret", "audit_db"})


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
    _check(context, values["rooms"])
    if watch:
        from ...telemetry.terminal.screen import Screen

        screen = Screen(sys.stdout)
    warn_of_misspelt(context, values["log_format"])
    with refusals():
        with loading():
            from .. import app
        return app.main(build(values), open_pages=open_pages, screen=screen)


def _check(context: click.Context, rooms: str) -> None:
    """Raise `click.UsageError` for an option without an effect beside the others."""
    if rooms == "off" and (flag := first_given(context, _OF_ROOMS)):
        raise click.UsageError(f"{flag} is about rooms, and without --rooms there are none")
    if rooms == "only" and (flag := first_given(context, _BESIDE_ROOMS)):
        raise click.UsageError(f"{flag} is about a server beside the rooms, and --rooms only serves none")
