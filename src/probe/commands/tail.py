"""`mcp-probe tail`."""

from __future__ import annotations

import sys
import time

import click


@click.command("tail")
@click.argument("url", default="http://127.0.0.1:8000")
@click.option(
    "--client",
    metavar="NAME",
    help="Only this client: its label in the log (s1, m1), the name it gives itself, or the one in ?client=.",
)
@click.option("--findings", is_flag=True, help="Only what a client did wrong: violations and refusals.")
@click.option(
    "--last", default=100, show_default=True, type=click.IntRange(min=0), metavar="N", help="Begin with N entries."
)
def command(url: str, client: str | None, last: int, *, findings: bool) -> int:
    """Show each exchange of a running server.

    A line says who asked what, and how it went. URL is the address of the server, http://127.0.0.1:8000 without one.
    Ctrl-C ends it.
    """
    from ..terminal.exchanges import Exchanges
    from ..terminal.feed_reader import FeedError, Missing, follow
    from ..terminal.screen import Screen
    from ..terminal.watch import missing

    screen, exchanges = Screen(sys.stdout), Exchanges(client=client, findings=findings)
    try:
        for item in follow(url, last, lambda why: click.echo(f"{why}; trying again", err=True)):
            if isinstance(item, Missing):
                screen.show(missing(time.time(), item.first, item.last))
            else:
                for line in exchanges.take(item):
                    screen.show(line)
    except FeedError as error:
        raise click.ClickException(str(error)) from None
    except (KeyboardInterrupt, BrokenPipeError):
        # The reader of the lines has seen enough.
        sys.stdout = None
    return 0
