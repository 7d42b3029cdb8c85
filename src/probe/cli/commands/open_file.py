"""`mcp-probe open`."""

from __future__ import annotations

from pathlib import Path

import click

from ..starting import loading
from .options import refusals, whole_number


@click.command("open")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--open", "open_pages", is_flag=True, help="Open the dashboard in a browser.")
@click.option(
    "--port", type=whole_number(0, 65535), default=0, help="The port of the dashboard; a free port without it."
)
def command(path: Path, port: int, *, open_pages: bool) -> int:
    """Show a saved session in the dashboard.

    FILE is a session file (.mcpprobe) or an event log as lines of JSON (NDJSON). The pages are served to this machine
    only, and nothing speaks MCP. Ctrl-C ends it.
    """
    from ...web.exports.archive import OpeningError, open_file

    with refusals():
        try:
            opened = open_file(path)
        except OpeningError as error:
            raise click.ClickException(str(error)) from None
        with loading():
            from .. import app
        return app.show(opened, port=port, open_pages=open_pages)
