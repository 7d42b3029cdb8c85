"""`mcp-probe gateway`: its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from .options import first_given

_FORMATS = ("table", "json", "junit", "markdown", "html")
# The options that have an effect without a run.
_WITH_SAVED = frozenset({"saved", "only", "skip", "allow", "strict", "form", "verbose", "out"})
_WITH_OBSERVE = frozenset({"observe", "probe", "cafile", "insecure", "out"})


@click.command("gateway", short_help="Say how a gateway or proxy changes the protocol.")
@click.option("--listen", type=click.IntRange(1, 65535), metavar="PORT", help="Start a probe on this port for the run.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address on which --listen and --breaker listen."
)
@click.option("--probe", metavar="URL", help="A probe that runs: http://127.0.0.1:8000. Its API is read.")
@click.option("--through", metavar="URL", help="The same endpoint through the gateway, with its path: …/mcp.")
@click.option("--direct", metavar="URL", help="Another direct way to the endpoint; without it /mcp of the probe.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME: VALUE", help="Sent to the gateway alone, and in no report."
)
@click.option("--cafile", metavar="FILE", help="Certificates to trust beside those of this machine.")
@click.option("--insecure", is_flag=True, help="Do not check the gateway's certificate.")
@click.option(
    "--h2",
    type=click.Choice(["auto", "always", "never"]),
    default="never",
    show_default=True,
    help="HTTP/2 to the gateway: where TLS agrees on it, or always.",
)
@click.option("--ws", metavar="URL", help="The WebSocket endpoint through the gateway; without it /ws beside /mcp.")
@click.option(
    "--breaker",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Listen here too; point the gateway at this port, and connections to the probe are broken on purpose.",
)
@click.option(
    "--profile",
    type=click.Choice(["quick", "full", "idle"]),
    default="full",
    show_default=True,
    help="quick: under a minute. full: two minutes, silence of 70 s. idle: silence of 310 s.",
)
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only these checks, or those that begin so: close, limit.body."
)
@click.option("--skip", multiple=True, metavar="NAME", help="Not these checks.")
@click.option("--allow", metavar="FILE", help='Accepted deviations, one a line: "stream.late" = "degraded".')
@click.option("--strict", is_flag=True, help="Exit with 1 also where something is degraded.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="table",
    show_default=True,
    help="How findings are written.",
)
@click.option("--verbose", is_flag=True, help="Also list in the table what is the same.")
@click.option("--out", metavar="FILE", help="Write them to this file; without it to standard output.")
@click.option("--save", metavar="FILE", help="Keep the whole run, so that --from can judge it again.")
@click.option("--from", "saved", metavar="FILE", help="Judge a run that was saved, and send nothing.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=120.0,
    show_default=True,
    help="Seconds until the gateway has to answer.",
)
@click.option(
    "--limit",
    type=click.FloatRange(1, 7200),
    metavar="SECONDS",
    help="The run ends after this time, and is judged as far as it came. quick: 180, full: 600, idle: 900.",
)
@click.option("--prefix", default="", metavar="TEXT", help="The gateway puts this before the name of each tool: demo_.")
@click.option("--names", metavar="FILE", help='What it calls tools, as JSON: {"progress": "do_progress"}.')
@click.option(
    "--seed",
    type=click.IntRange(0, 0xFFFFFF),
    metavar="NUMBER",
    help="The marks in arguments are made of this number, so that two runs send the same bytes.",
)
@click.option("--observe", is_flag=True, help="Only read the log of --probe, and say what is likely.")
@click.pass_context
def command(context: click.Context, /, *, observe: bool, **given: Any) -> int:
    """Compare the protocol through a gateway with the protocol without it, and say how to mend what differs.

    Exit: 0 nothing is broken, 1 something is, 2 it cannot be checked, 3 nothing is broken, but something is unclear or
    was not done.
    """
    _check(context, given, observe=observe)
    # Imports of half a second, unused by other commands.
    from ..gateway_check import CheckArguments, check, observed

    return (observed if observe else check)(CheckArguments(**given))


def _check(context: click.Context, given: Mapping[str, Any], *, observe: bool) -> None:
    """Raise `click.UsageError` for an option without an effect beside the others."""
    names = {str(option.name) for option in context.command.params}
    if observe and (flag := first_given(context, names - _WITH_OBSERVE)):
        raise click.UsageError(f"{flag} is about a run, and --observe only reads the log of --probe")
    if given["saved"] is not None and (flag := first_given(context, names - _WITH_SAVED)):
        raise click.UsageError(f"{flag} is about a run, and --from judges one that was saved")
    if given["listen"] is None and given["breaker"] is None and first_given(context, {"host"}):
        raise click.UsageError("--host is the address of --listen and of --breaker: give one of them")
    if given["insecure"] and given["cafile"] is not None:
        raise click.UsageError("--insecure checks no certificate, so --cafile has no effect")
    if given["verbose"] and given["form"] != "table":
        raise click.UsageError(f"--verbose is about the table, and --format {given['form']} writes none")
