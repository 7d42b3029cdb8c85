"""The work of `mcp-probe judge`: it judges, prints, writes files, and finds an exit status."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from ..core.clients import LABEL_RULE, is_client_label
from ..core.escaping import shown
from ..core.exceptions import first
from ..judge.outcome import (
    CLEAN,
    FOUND,
    MINIMUM,
    NO_REQUEST,
    NOTHING_SAID,
    Demands,
    ExitStatus,
    Expectation,
    ExpectationError,
    compare,
    compare_values,
    load,
    outcome,
    outcome_of_comparison,
)
from ..judge.report import Judgement
from ..judge.reports.as_json import as_json
from ..judge.reports.card import badge
from ..judge.reports.junit import junit
from ..judge.reports.terminal import comparison, terminal
from ..judge.rules.all import FUNCTIONS
from ..judge.rules.catalogue import catalogue
from ..judge.runs.client import ClientStartError
from ..judge.runs.judged import Judged
from ..judge.runs.remote_room import RoomError
from ..judge.runs.run import Running, Wanted, judge_client, judge_in_room, judge_stdio, new_judge
from ..judge.runs.saved import judge_files
from ..log.ndjson import NdjsonError
from ..settings import Settings
from ..settings.description import did_you_mean
from .starting import tune_garbage_collection

_NONE: Final = "none"
_STANDARD_OUTPUT: Final = Path("-")
# The usual mistake if a client has not sent any message.
_NO_URL: Final = "did it get the URL? It is the last argument of the command, or stands in place of {url}"
_NO_SERVER: Final = "did it start the server? Its command line is the end of the command; {config} is a file with it"
_KILLED: Final = (
    "the server was killed, by its client most likely, and its log lacks the last moment: a client closes the input of "
    "its server, and waits for the end"
)
# Wider lines are hard to read, even on a wider terminal.
_WIDEST: Final = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The options of the command, by their names there."""

    client: tuple[str, ...]
    logs: tuple[Path, ...]
    against: Path | None
    stdio: bool
    room: str | None
    seconds: float | None
    label: str
    save: Path | None
    expect: Path | None
    require: tuple[str, ...]
    strict: bool
    must_exit_0: bool
    json: Path | None
    junit: Path | None
    html: Path | None
    badge: Path | None
    verbose: bool


@dataclass(frozen=True, slots=True)
class Servers:
    """Runs servers: `run` runs trio for the owner of one, and raises `StartError` for errors at the start."""

    run: Callable[[Callable[[], Awaitable[Judged]]], Judged]
    running: Running


@contextmanager
def failures() -> Iterator[None]:
    """Turns an error of the judge itself, such as an unreadable log, into click's: one line and status 2."""
    error: BaseException | None = None
    try:
        yield
    except* (ClientStartError, NdjsonError, ExpectationError, RoomError, OSError) as group:
        error = first(group)
    if isinstance(error, BrokenPipeError):
        raise error  # click ends the program without a message
    if isinstance(error, OSError) and error.filename is not None:
        raise click.ClickException(f"{error.filename}: {error.strerror}")
    if error is not None:
        raise click.ClickException(str(error))


def run(options: JudgeOptions, settings: Settings, arguments: Sequence[str], servers: Servers) -> int:
    """Judge; returns the exit status. `arguments` are the settings as options of `mcp-probe stdio`.

    Raises `click.UsageError`, the errors of `failures`, and `StartError`.
    """
    _check(options)
    demands = _demands(options)
    _check_outputs(options)
    if options.against is not None:
        return _compare(options, options.against, demands)
    judged = _judge(options, settings, arguments, servers)
    result = outcome(judged.report, demands, datetime.now(UTC).date())
    if line := _failed_to_start(judged):
        _say(line)
    if options.json != _STANDARD_OUTPUT:
        for line in terminal(judged.report, judged.lookup, verbose=options.verbose, width=_width()):
            click.echo(_coloured(line))
    _write(options, judged)
    if options.json != _STANDARD_OUTPUT and (line := _where_next(options, judged.report)):
        click.echo(line)
    return _tell(options, judged, result)


def _check(options: JudgeOptions) -> None:
    """Raise `click.UsageError` for wrong options, or options that contradict each other."""
    if bool(options.client) == bool(options.logs):
        raise click.UsageError("give the command of a client behind --, or saved logs with --log")
    if options.stdio and options.room is not None:
        raise click.UsageError("--stdio starts a server, and --room is about one that runs")
    if options.against is not None and not options.logs:
        raise click.UsageError("--against compares with the logs of --log")
    if options.against is not None and any((options.expect, options.json, options.junit, options.html, options.badge)):
        raise click.UsageError(
            "--against prints a comparison: --expect, --json, --junit, --html and --badge have no part"
        )
    if options.verbose and options.json == _STANDARD_OUTPUT:
        raise click.UsageError("--verbose is about the report as text, and --json - prints JSON in its place")
    if options.seconds is not None and math.isnan(options.seconds):
        raise click.UsageError("--for must be a number of seconds")
    if not is_client_label(options.label):
        raise click.UsageError(f"label must be {LABEL_RULE}")
    _check_required(options.require)


def _check_required(require: Sequence[str]) -> None:
    known = [*MINIMUM, _NONE, *FUNCTIONS, *(f"{rule.partition('.')[0]}.*" for rule in FUNCTIONS)]
    for wanted in require:
        if wanted not in known:
            raise click.UsageError(f"--require: there is no rule {wanted!r}{did_you_mean(wanted, known)}")
        if wanted != _NONE and _NONE in require:
            raise click.UsageError(f"--require none demands nothing, so --require {wanted} has no effect")


def _check_outputs(options: JudgeOptions) -> None:
    """Raise `OSError` if an output file cannot be written, before the client runs in vain."""
    for path in (options.json, options.junit, options.html, options.badge, None if options.stdio else options.save):
        if path is not None and path != _STANDARD_OUTPUT:
            was_there = path.exists()
            with path.open("ab"):
                pass
            # An empty file would look like a report.
            if not was_there:
                path.unlink()


def _demands(options: JudgeOptions) -> Demands:
    require = options.require or MINIMUM
    return Demands(options.strict, _expected(options.expect), () if _NONE in require else require, options.stdio)


def _expected(path: Path | None) -> Sequence[Expectation]:
    if path is None:
        return ()
    try:
        return load(path.read_bytes(), catalogue())
    except ExpectationError as error:
        raise ExpectationError(f"{path}: {error}") from None


def _judge(options: JudgeOptions, settings: Settings, arguments: Sequence[str], servers: Servers) -> Judged:
    if options.logs:
        return _judge_files(options.logs)
    wanted = Wanted(options.client, options.label, options.seconds, options.stdio, options.save)
    if options.stdio:
        return servers.run(partial(judge_stdio, wanted, arguments, lambda files: judge_files(new_judge(), files), _say))
    if options.room is not None:
        return servers.run(
            partial(judge_in_room, options.room, wanted, lambda files: judge_files(new_judge(), files), _say)
        )
    return servers.run(partial(judge_client, servers.running, settings, wanted, _say))


def _judge_files(files: Sequence[Path]) -> Judged:
    # Python's own thresholds cost a tenth of the time: the collector looks at all that is kept, again and again.
    tune_garbage_collection()
    size = sum(path.stat().st_size for path in files)
    with click.progressbar(
        length=size, label="mcp-probe: reading", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as read:
        return judge_files(new_judge(), files, read.update)


def _say(line: str) -> None:
    click.echo(f"mcp-probe: {shown(line)}", err=True)


def _compare(options: JudgeOptions, other: Path, demands: Demands) -> int:
    here, there = _judge_files(options.logs).report, _judge_files([other]).report
    found = compare(here, there)
    for line in comparison(found, compare_values(here, there), verbose=options.verbose):
        click.echo(line)
    result = outcome_of_comparison(here, there, found, demands)
    for reason in result.reasons:
        _say(reason)
    return result.status


def _write(options: JudgeOptions, judged: Judged) -> None:
    report, lookup = judged.report, judged.lookup
    forms: tuple[tuple[Path | None, Callable[[], bytes]], ...] = (
        (options.json, lambda: json.dumps(as_json(report), indent=2, ensure_ascii=False).encode() + b"\n"),
        (options.junit, lambda: junit(report, lookup, strict=options.strict)),
        (options.html, lambda: _page(judged)),
        (options.badge, lambda: badge(report).encode()),
    )
    for path, form in forms:
        if path == _STANDARD_OUTPUT:
            sys.stdout.buffer.write(form())
            sys.stdout.buffer.flush()
        elif path is not None:
            path.write_bytes(form())


def _where_next(options: JudgeOptions, report: Judgement) -> str | None:
    """The address of the page that was written, else the command that shows the log on the dashboard.

    None where neither is kept: the server or the room of the run has ended with its pages.
    """
    if options.html is not None and options.html != _STANDARD_OUTPUT:
        return f"The report: {options.html.absolute().as_uri()}"
    logs = options.logs
    if options.save is not None:
        logs = tuple(options.save / f"{log.run}.ndjson" for log in report.logs) if options.stdio else (options.save,)
    if not logs:
        return None
    which = f", one of {len(logs)} logs" if len(logs) > 1 else ""
    return f"On the dashboard{which}: mcp-probe open {shlex.quote(str(logs[0]))}"


def _page(judged: Judged) -> bytes:
    # jinja2 takes a thirtieth of the imports, and only --html needs it.
    from ..judge.reports.card import card

    return card(judged.report, judged.lookup).encode()


def _failed_to_start(judged: Judged) -> str | None:
    """The line about a client that ended before its first request, else None. That is no mistake in the protocol."""
    ended = judged.ended
    if ended is None or ended.timed_out or ended.told or (ended.status, ended.signal) == (0, None) or _has_sent(judged):
        return None
    how = ended.signal or f"status {ended.status}"
    return f"your client ended with {how} before it sent a request (what it wrote is above)"


def _has_sent(judged: Judged) -> bool:
    return any(subject.requests or subject.exchanges for subject in judged.report.subjects)


def _tell(options: JudgeOptions, judged: Judged, result: ExitStatus) -> int:
    status, reasons = result.status, list(result.reasons)
    ended = judged.ended
    if ended is not None and (ended.status, ended.timed_out) != (0, False):
        why = "its time was over" if ended.timed_out else ended.signal or f"status {ended.status}"
        how = f"the client ended: {why}"
        if options.must_exit_0 and status == CLEAN:
            status = FOUND
        elif ended.signal is not None and not (ended.timed_out or ended.told) and status == CLEAN:
            status, reasons = NOTHING_SAID, ["a client that a signal has ended may have had more to do"]
        reasons.insert(0, how)
    if _failed_to_start(judged):
        # The first line is enough. Hints such as a missing URL would mislead.
        return status
    killed = [log.run for log in judged.report.logs if log.cut_off] if options.stdio else []
    if killed:
        # What the client sent may be among the entries that were not written.
        reasons = [reason for reason in reasons if reason != NO_REQUEST]
        reasons += [f"{_KILLED} (run {run})" for run in killed]
    elif options.client and not _has_sent(judged):
        reasons.append(_NO_SERVER if options.stdio else _NO_URL)
    for reason in dict.fromkeys(reasons):
        _say(reason)
    return status


def _width() -> int:
    return min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)


def _coloured(line: str) -> str:
    word, space, rest = line.partition(" ")
    colour = {"FAIL": "red", "WARN": "yellow", "INCONCLUSIVE": "blue", "PASS": "green"}.get(word)
    return line if colour is None else click.style(word, fg=colour, bold=True) + space + rest
