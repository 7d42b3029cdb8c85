"""The scripted client on standard streams, each time with a server of its own: the same story and switches."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from probe.judge.catalogue import catalogue
from probe.judge.verdicts import Verdict

from .scripted.breaks import ACTS, ALSO, BEGINNINGS, CROWDED, REVISIONS, STDIO, perform
from .scripted.client import MODERN
from .scripted.story import tell
from .scripted.streams import Scene, judged_alone

RULES = catalogue().rules
PAGE = (Path(__file__).parents[2] / "docs" / "judge.md").read_text()
ALL = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)
SWITCHES = (*BEGINNINGS, *ACTS, *STDIO)
STORY = "story"


def _is_broken(rule: str, revision: str) -> bool:
    """Whether the client can break a rule in a revision, and no other with it."""
    known = RULES[rule]
    if "stdio" not in known.transports or revision not in known.revisions or rule in CROWDED:
        return False
    return revision != MODERN or rule not in REVISIONS


@pytest.mark.parametrize("revision", ALL)
def test_a_good_client_breaks_nothing_and_each_switch_one_rule(revision: str, tmp_path: Path) -> None:
    broken = [rule for rule in SWITCHES if _is_broken(rule, revision)]
    scenes = {STORY: Scene(revision, tell, timed=True)}
    scenes |= {rule: Scene(revision, partial(perform, rule=rule)) for rule in broken}
    found = judged_alone(scenes, tmp_path)
    wrong = {
        name: {each: life.remarks[each] for each in life.faults} or life.verdicts.get(name)
        for name, life in found.items()
        if life.faults.keys() != (set() if name == STORY else {name} | ALSO.get(name, set()))
    }
    assert wrong == {}
    assert found.keys() == scenes.keys()
    assert found[STORY]["stdio.closes-input-first"] is Verdict.PASS


def test_the_documentation_says_how_many_rules_are_broken_so() -> None:
    told = re.search(r"(\d+) of them on standard streams", PAGE)
    assert told
    assert sum(any(_is_broken(rule, revision) for revision in ALL) for rule in SWITCHES) == int(told[1])
