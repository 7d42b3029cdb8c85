"""`mcp-probe judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ...core.clients import LABEL_RULE
from ...settings import build
from ..starting import loading
from .options import every_setting, first_given, refusals, with_settings

_PATH: Any = click.Path(path_type=Path)
_FILE: Any = click.Path(path_type=Path, exists=True, dir_okay=False)
# Default settings of a run with a client: a free port, pings, a log large enough for rules, and no second judge.
_OWN = {
    "port": 0,
    "ping_interval_s": 5.0,
    "event_log_events": 200_000,
    "event_log_bytes": 256 * 1024 * 1024,
    "judge": False,
}
# The options that need a client.
_ABOUT_CLIENT = frozenset({"stdio", "room", "seconds", "label", "save", "must_exit_0"})


@click.command(
    "judge", short_help="Run a client and say what it does wrong.", context_settings={"allow_interspersed_args": False}
)
@click.argument("client", nargs=-1)
@click.option("--log", "logs", type=_FILE, multiple=True, help="A saved log (NDJSON) to judge in place of a client.")
@click.option("--against", type=_FILE, help="With --log: another saved log, to compare with.")
@click.option("--stdio", is_flag=True, help="The client starts the server: its command line is appended, not the URL.")
@click.option("--room", metavar="URL", help="Use a room of the probe at this URL in place of a server of its own.")
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(min=0, max=86_400, min_open=True),
    help="Seconds after which the client is ended.",
)
@click.option("--label", default="client", show_default=True, help=f"The client's name in the report: {LABEL_RULE}.")
@click.option("--save", type=_PATH, help="Write the event log to this file; with --stdio, to this folder.")
@click.option("--expect", type=_FILE, help="Findings that are expected, with their reasons (TOML).")
@click.option(
    "--require",
    multiple=True,
    metavar="RULE",
    help="Must be observed, else the status is 2: a rule (ping.answered), a group (ping.*), message, list, call, "
    "or none. Without it message, list and call must.",
)
@click.option("--strict", is_flag=True, help="A warning makes the status 1, too.")
@click.option("--client-must-exit-0", "must_exit_0", is_flag=True, help="Another status of the client makes a 0 a 1.")
@click.option("--json", type=_PATH, help="Write the report as JSON; - is standard output.")
@click.option("--junit", type=_PATH, help="Write the report as JUnit XML.")
@click.option("--html", type=_PATH, help="Write the report as one HTML page.")
@click.option("--badge", type=_PATH, help="Write a badge (SVG).")
@click.option("--verbose", is_flag=True, help="Also list what passed, and everything that was not observed.")
@with_settings(shown=("tools",))
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Run CLIENT with a server's URL as its last argument, and say what it does wrong.

    \b
    mcp-probe judge -- python my_client.py
    mcp-probe judge --stdio -- node my_client.js
    mcp-probe judge --room https://probe.example -- python my_client.py
    mcp-probe judge --log events.ndjson

    {url}, {config} (the path of a JSON file with mcpServers) and {prompt} (a text for a client with a model) in its
    arguments are replaced. The status is 0 without a failure, 1 with one, and 2 where nothing can be said.
    """  # noqa: D301 - click knows a paragraph that it must not wrap by \b
    # imports of a second, unused by `--version` and `settings`
    with loading():
        from .. import app, judging

    specs = {spec.name: spec for spec in every_setting()}
    settings = {name: given.pop(name) for name in specs}
    chosen = {name for name in specs if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    about_server = {*specs, *(f"no_{name}" for name in specs)}
    if given["room"] is not None and (flag := first_given(context, about_server, by_variable=True)):
        raise click.UsageError(f"{flag} is a setting of a server, and --room uses one that runs")
    if given["logs"] and (flag := first_given(context, about_server | _ABOUT_CLIENT)):
        raise click.UsageError(f"{flag} is about a client or its server, and --log has none")
    settings |= {name: value for name, value in _OWN.items() if name not in chosen}
    changed = sorted(chosen | (_OWN.keys() - {"port"}))
    arguments = [word for name in changed for word in (specs[name].flag, str(settings[name]))]
    with refusals(), judging.failures():
        servers = judging.Servers(app.run, app.running)
        return judging.run(judging.JudgeOptions(**given), build(settings), arguments, servers)
