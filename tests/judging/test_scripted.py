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
from dataclasses import replace
from pathlib import Path

import pytest

from probe.cli import main
from probe.judge.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.observe import ndjson
from probe.observe.events import HttpRequest
from probe.observe.log import Entry, Gap

from ..judge.logs import Judged, judged, recorded
from ..support.process import served
from .scripted.breaks import ACTS, ALSO, BEGINNINGS, PIPES, REVISIONS, STDIO, perform
from .scripted.client import MODERN, Client
from .scripted.story import tell
from .scripted.wire import Http, WebSocket

ALL = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)
STORIES = [f"{kind}-{revision}" for kind in ("http", "websocket") for revision in ALL]
RULES = {id: rule for id, rule in catalogue().rules.items() if not rule.needs_drill}
PAGE = (Path(__file__).parents[2] / "docs" / "judge.md").read_text()
_PAUSE = "/pause/"


def _client(url: str, label: str, revision: str, *, websocket: bool) -> Client:
    tools = "streaming" if label == "lifecycle.capabilities-respected" else "all"
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


def _put_forward(lines: Iterable[bytes]) -> Iterator[Entry | Gap]:
    """The items of a log, whose clock goes on at the marks of the client."""
    passed = 0.0
    for item in ndjson.LogReader(lines):
        if isinstance(item, Entry):
            if isinstance(item.fact, HttpRequest) and item.fact.path.startswith(_PAUSE):
                passed += float(item.fact.path.removeprefix(_PAUSE))
            yield replace(item, mono=item.mono + passed)
        else:
            yield item


@pytest.fixture(scope="module")
def found() -> Mapping[str, Judged]:
    """The verdicts on every story and every switch, by label."""
    with served("--tools", "all", "--event-log-events", "200000", "--event-log-bytes", "268435456") as url:
        stories = [threading.Thread(target=_story, args=(url, name)) for name in STORIES]
        for story in stories:
            story.start()
        for story in stories:
            story.join()
        for rule in (*BEGINNINGS, *ACTS):
            _break(url, rule)
        with urllib.request.urlopen(url.replace("/mcp", "/api/events.ndjson")) as log:
            return judged(recorded(_put_forward(log.read().splitlines(keepends=True))))


@pytest.mark.parametrize("name", STORIES)
def test_a_good_client_breaks_nothing(found: Mapping[str, Judged], name: str) -> None:
    assert found[name].faults == {}, found[name].remarks
    assert found[name].verdicts["tools.listed-name"] is Verdict.PASS


def test_most_rules_pass(found: Mapping[str, Judged]) -> None:
    passed = {rule for name in STORIES for rule in RULES if found[name].verdicts.get(rule) is Verdict.PASS}
    told = re.search(r"WebSocket (\d+) of the (\d+) rules that need no drill pass", PAGE)
    assert told
    # One more may pass on a slow machine, where the server has time for a comment.
    assert len(passed) >= int(told[1]), sorted(RULES.keys() - passed)
    assert len(RULES) == int(told[2])


def test_the_documentation_says_how_many_rules_can_be_broken() -> None:
    told = re.search(r"(\d+) rules fail or warn that way", PAGE)
    assert told
    assert len({*BEGINNINGS, *ACTS, *STDIO}) == int(told[1])


@pytest.mark.parametrize("rule", [*BEGINNINGS, *ACTS])
def test_a_switch_breaks_one_rule(found: Mapping[str, Judged], rule: str) -> None:
    faults = found[rule].faults
    assert faults.keys() == {rule} | ALSO.get(rule, set()), {each: found[rule].remarks[each] for each in faults}


@pytest.mark.parametrize("rule", [None, *STDIO])
def test_standard_streams(rule: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    client = [sys.executable, "-m", "tests.judging.scripted", *(["--break", rule] if rule else []), "--stdio"]
    status = main(["judge", "--stdio", "--tools", "all", "--require", "none", "--json", str(report), "--", *client])
    [subject] = json.loads(report.read_text())["subjects"]
    faults = {each["rule"] for each in subject["verdicts"] if each["verdict"] in ("FAIL", "WARN")}
    assert faults == ({rule} if rule else set()), capfd.readouterr().out
    assert status in ((0, 1) if rule else (0,))
