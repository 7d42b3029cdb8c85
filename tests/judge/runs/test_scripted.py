"""The scripted client against a real server: it breaks no rule, and with a switch exactly the one that it is told to.

Where a rule needs time, the client marks the place in the log (`GET /pause/SECONDS`), and the clock of the log is put
forward there, before it is judged.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import structs

from probe.cli.program import main
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.log import ndjson
from probe.log.event_log import Entry, Gap
from probe.log.events import HttpRequest

from ...support.process import served
from ...support.rows import each
from ..logs import Judged, judged, recorded
from .scripted.breaks import ACTS, ALSO, BEGINNINGS, PIPES, REVISIONS, SHORT, STDIO, WATCHED, perform
from .scripted.client import MODERN, Client
from .scripted.patience import SCENES, show
from .scripted.story import tell
from .scripted.wire import Http, WebSocket

ALL = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)
STORIES = [f"{kind}-{revision}" for kind in ("http", "websocket") for revision in ALL]
RULES = {id: rule for id, rule in catalogue().rules.items() if not rule.needs_drill}
PAGE = (Path(__file__).parents[3] / "docs" / "judge.md").read_text()
# These ask for what the server has not declared.
SELECTIONS = {
    "lifecycle.capabilities-respected": "streaming",
    "skills.declared": "features,chatty",
    "skills.directory-declared": "features,chatty",
}
_PAUSE = "/pause/"
_SHORT_TIMES = ("--keep-alive-s", "0.3", "--ws-ping-s", "1", "--session-idle-s", "2", "--stream-retention-s", "1")


def _client(url: str, label: str, revision: str, *, websocket: bool) -> Client:
    tools = SELECTIONS.get(label, "all")
    wire = (WebSocket if websocket else Http)(f"{url}?tools={tools}&client={label}")
    client = Client(wire, revision)
    client.label = label
    return client


def _story(url: str, name: str) -> None:
    kind, _, revision = name.partition("-")
    tell(_client(url, name, revision, websocket=kind == "websocket"))


def _break(url: str, rule: str) -> None:
    revision = REVISIONS.get(rule) or max(RULES[rule].revisions)
    websocket = rule in PIPES or "http" not in RULES[rule].transports
    perform(_client(url, rule, revision, websocket=websocket), rule)


def _show(url: str, name: str) -> None:
    scene = SCENES[name]
    show(_client(url, name, scene.revision, websocket=scene.websocket), name)


def _play(url: str, *, short: bool) -> None:
    """The switches and scenes of one of the two servers, one after the other, as each may put the clock forward."""
    for rule in (*BEGINNINGS, *ACTS):
        if (rule in SHORT) is short:
            _break(url, rule)
    for name, scene in SCENES.items():
        if scene.short is short:
            _show(url, name)


def _put_forward(items: Iterable[Entry | Gap]) -> Iterator[Entry | Gap]:
    """The items of a log, whose clock goes on at the marks of the client."""
    passed = 0.0
    for item in items:
        if isinstance(item, Entry):
            if isinstance(item.fact, HttpRequest) and item.fact.path.startswith(_PAUSE):
                passed += float(item.fact.path.removeprefix(_PAUSE))
            yield structs.replace(item, mono=item.mono + passed)
        else:
            yield item


@pytest.fixture(scope="module")
def found() -> Mapping[str, Judged]:
    """The verdicts on every story, every scene and every switch, by label.

    They take half a minute. So each table that reads them is one test: as tests of their own its rows would be spread
    over the processes of pytest-xdist, and each process would play all of it again.
    """
    large = ("--tools", "all", "--event-log-events", "200000", "--event-log-bytes", "268435456")
    with served(*large) as url, served(*large, *_SHORT_TIMES) as short:
        stories = [threading.Thread(target=_story, args=(url, name)) for name in STORIES]
        waits = threading.Thread(target=_play, args=(short,), kwargs={"short": True})
        for thread in (*stories, waits):
            thread.start()
        for story in stories:
            story.join()
        _play(url, short=False)
        waits.join()
        return {label: life for each in (url, short) for label, life in _judged(each).items()}


def _judged(url: str) -> Mapping[str, Judged]:
    with urllib.request.urlopen(url.replace("/mcp", "/api/events.ndjson")) as log:
        reader = ndjson.LogReader(log.read().splitlines(keepends=True))
    return judged(recorded(_put_forward(reader)), settings=reader.header.settings)


@each("name", STORIES)
def test_a_good_client_breaks_nothing(found: Mapping[str, Judged], name: str) -> None:
    assert found[name].faults == {}, found[name].remarks
    assert found[name].verdicts["tools.listed-name"] is Verdict.PASS


@each("name", SCENES)
def test_what_time_shows_breaks_nothing(found: Mapping[str, Judged], name: str) -> None:
    assert found[name].faults == {}, found[name].remarks


def test_every_rule_passes_but_those_that_the_documentation_names(found: Mapping[str, Judged]) -> None:
    passed = {rule for name in (*STORIES, *SCENES) for rule in RULES if found[name].verdicts[rule] is Verdict.PASS}
    alone = {id for id, rule in RULES.items() if rule.transports == ("stdio",)}
    assert RULES.keys() - passed - alone == _named("Never PASS")


def test_every_rule_is_broken_but_those_that_the_documentation_names() -> None:
    assert RULES.keys() - {*BEGINNINGS, *ACTS, *STDIO, *WATCHED} == _named("Never FAIL or WARN")


def _named(heading: str) -> set[str]:
    """The rules in the first column of a table of the page, whose first heading this is."""
    _, _, table = PAGE.partition(f"| {heading} |")
    assert table
    rows = table.partition("\n\n")[0].splitlines()[2:]
    return {rule for row in rows for rule in re.findall(r"`([^`]+)`", row.split("|")[1])}


@each("rule", [*BEGINNINGS, *ACTS])
def test_a_switch_breaks_one_rule(found: Mapping[str, Judged], rule: str) -> None:
    faults = found[rule].faults
    assert faults.keys() == {rule} | ALSO.get(rule, set()), {each: found[rule].remarks[each] for each in faults}


@pytest.mark.parametrize("rule", [None, *(rule for rule in STDIO if RULES[rule].transports == ("stdio",))])
def test_standard_streams(rule: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    faults = _run(rule, tmp_path, "--stdio")
    assert faults == ({rule} if rule else set()), capfd.readouterr().out


@pytest.mark.parametrize("rule", WATCHED)
def test_a_client_that_the_judge_starts(rule: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(rule, tmp_path, "--websocket") == {rule}, capfd.readouterr().out


def _run(rule: str | None, folder: Path, transport: str) -> set[str]:
    """The rules that fail or warn where the judge runs the client as a program."""
    report = folder / "report.json"
    client = [sys.executable, "-m", "tests.judge.runs.scripted", *(["--break", rule] if rule else []), transport]
    stdio = ["--stdio"] if transport == "--stdio" else []
    status = main(["judge", *stdio, "--tools", "all", "--require", "none", "--json", str(report), "--", *client])
    assert status in ((0, 1) if rule else (0,))
    [subject] = json.loads(report.read_text())["subjects"]
    return {each["rule"] for each in subject["verdicts"] if each["verdict"] in ("FAIL", "WARN")}
