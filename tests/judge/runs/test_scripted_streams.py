"""The scripted client on standard streams, each time with a server of its own: the same story and switches."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict

from .scripted.breaks import ACTS, ALSO, BEGINNINGS, CROWDED, ONE, REVISIONS, STDIO, perform
from .scripted.client import MODERN
from .scripted.story import probe, tell
from .scripted.streams import ENTRY_S, Scene, judged_alone

RULES = catalogue().rules
PAGE = (Path(__file__).parents[3] / "docs" / "judge.md").read_text()
ALL = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)
SWITCHES = (*BEGINNINGS, *ACTS, *STDIO)
STORY, PROBES = "story", "probes"


_QUICK_S = {"polite.call-rate": 0.0002}


def _is_broken(rule: str, revision: str) -> bool:
    """Whether the client can break a rule in a revision, and no other with it."""
    known = RULES[rule]
    if revision != ONE.get(rule, revision):
        return False
    if "stdio" not in known.transports or revision not in known.revisions or rule in CROWDED:
        return False
    return revision != MODERN or rule not in REVISIONS


@pytest.mark.parametrize("revision", ALL)
def test_a_good_client_breaks_nothing_and_each_switch_one_rule(revision: str, tmp_path: Path) -> None:
    broken = [rule for rule in SWITCHES if _is_broken(rule, revision)]
    good = {STORY: Scene(revision, tell, timed=True)}
    if revision == MODERN:
        good[PROBES] = Scene(revision, probe)
    scenes = good | {
        rule: Scene(revision, partial(perform, rule=rule), entry_s=_QUICK_S.get(rule, ENTRY_S)) for rule in broken
    }
    found = judged_alone(scenes, tmp_path)
    wrong = {
        name: {each: life.remarks[each] for each in life.faults} or life.verdicts.get(name)
        for name, life in found.items()
        if life.faults.keys() != (set() if name in good else {name} | ALSO.get(name, set()))
    }
    assert wrong == {}
    assert found.keys() == scenes.keys()
    alone = {id for id, rule in RULES.items() if rule.transports == ("stdio",) and not rule.needs_drill}
    missing = {id for id in alone if all(found[name][id] is not Verdict.PASS for name in good)}
    assert missing == {id for id in alone if revision not in RULES[id].revisions}


def test_the_documentation_says_how_many_rules_are_broken_so() -> None:
    told = re.search(r"(\d+) of them on standard streams", PAGE)
    assert told
    assert sum(any(_is_broken(rule, revision) for revision in ALL) for rule in SWITCHES) == int(told[1])
