"""`mcp-probe tail`."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

_LAST: Final = 100
# More than a log keeps by default, since a match may be anywhere in it.
_WHOLE_LOG: Final = 1_000_000


def complete_line(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    """Completions for the shell: whole filter lines with a completed last word."""
    from ...views.search.words import complete

    return [f"{begun[: each.start]}{each.insert.rstrip()}" for each in complete(begun, len(begun), {})]


@click.command("tail")
@click.argument("url", default="http://127.0.0.1:8000")
@click.option(
    "--client",
    metavar="NAME",
    help="Only this client: its label in the log (s1, m1), the name it gives itself, or the one in ?client=.",
)
@click.option(
    "--filter",
    "line",
    metavar="LINE",
    default="",
    shell_complete=complete_line,
    help="Only exchanges that pass this filter line, as on the dashboard: 'tool:progress -outcome:completed'.",
)
@click.option("--findings", is_flag=True, help="Only what a client did wrong: violations and refusals.")
@click.option(
    "--last",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Begin with N entries of the log: {_LAST}, or with one of the options above all of them.",
)
def command(url: str, client: str | None, line: str, last: int | None, *, findings: bool) -> int:
    """Show each exchange of a running server.

    A line says who asked what, and how it went. URL is the address of the server, http://127.0.0.1:8000 without one.
    Ctrl-C ends it.
    """
    from ...core.escaping import shown
    from ...log.query import QueryError
    from ...telemetry.terminal.exchanges import Exchanges
    from ...telemetry.terminal.feed_reader import FeedError, Missing, follow
    from ...telemetry.terminal.screen import Screen, missing
    from ...views.fold import Views
    from ...views.search.words import read

    try:
        words = read(line)
    except QueryError as error:
        raise click.BadParameter(f"{error}{error.hint}", param_hint="--filter") from None
    if last is None:
        last = _WHOLE_LOG if client or line or findings else _LAST
    screen, views = Screen(sys.stdout), Views()
    exchanges = Exchanges(lambda: views, client=client, findings=findings, words=words)
    try:
        for item in follow(url, last, lambda why: click.echo(f"{shown(why)}; trying again", err=True)):
            if isinstance(item, Missing):
                # Another run begins with 1 again.
                views = Views() if item.first is None else views
                views.missed()
                screen.show(missing(time.time(), item.first, item.last))
            else:
                views.take(item)
                for each in exchanges.take(item):
                    screen.show(each)
    except FeedError as error:
        raise click.ClickException(str(error)) from None
    except (KeyboardInterrupt, BrokenPipeError):
        # The reader has closed, such as `head`.
        sys.stdout = None
    return 0
