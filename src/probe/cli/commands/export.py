"""`mcp-probe export`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click


@click.command("export")
@click.argument("url", default="http://127.0.0.1:8000")
@click.option("--client", metavar="NAME", help="Only this client: its label in the log (s1, m1), or that in ?client=.")
@click.option("--call", metavar="ID", help="Only this call.")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write, session.mcpprobe without it; FILE.har has the HTTP requests, FILE.html is a page to read.",
)
def command(url: str, client: str | None, call: str | None, path: Path | None) -> int:
    """Save a session of a running server as a file.

    The file has the log, the calls and the verdicts; secrets are hidden in it as they are in the log. URL is the
    address of the server, http://127.0.0.1:8000 without one. `mcp-probe open FILE` shows it.
    """
    from ...web.exports.archive import SUFFIX
    from ...web.exports.download import DownloadError, download, overview
    from ...web.exports.extract import Extract

    if client is not None and call is not None:
        raise click.UsageError("--client and --call exclude each other")
    path = path or Path(f"session{SUFFIX}")
    if path.suffix not in (SUFFIX, ".har", ".html"):
        raise click.UsageError(f"FILE must end with {SUFFIX}, .har or .html")
    try:
        extract = Extract(client, call)
        contains = overview(url, extract)
        download(url, path.suffix, extract, path)
    except DownloadError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{path}: {_said(contains)}")
    return 0


def _said(contains: Mapping[str, Any]) -> str:
    from ...core.escaping import cut, shown

    parts = [_counted(contains["entries"], "entry", "entries"), _counted(contains["calls"], "call", "calls")]
    parts.append(f"{_at(contains['first_at'])} to {_at(contains['last_at'])}")
    if contains["gaps"]:
        parts.append("earlier entries are gone")
    # A client chooses the names of what it sends.
    hidden = ", ".join(f"{shown(cut(name))} ({count})" for name, count in contains["hidden"].items())
    return f"{', '.join(parts)}; hidden: {hidden or 'nothing'}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
