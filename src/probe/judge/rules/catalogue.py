"""The catalogue of rules: `rules.toml`, loaded and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ...wire.errors import Refusal
from ...wire.revisions import LEGACY, MODERN
from ..verdicts import Verdict

Level: TypeAlias = Literal["must", "should", "may", "practice"]
"""The word of the sentence; `practice` where no sentence demands it, and robust engineering does."""

Kind: TypeAlias = Literal["form", "order", "absence", "timing", "survival"]
"""The sign of a breach: a message, the order of two, something owed that did not come, when it came, what followed."""

_Row = TypeVar("_Row")

_WORST: Final = {"FAIL": Verdict.FAIL, "WARN": Verdict.WARN, "measured": Verdict.PASS}
_OF_LEVEL: Final[Mapping[str, Verdict]] = {
    "must": Verdict.FAIL,
    "should": Verdict.WARN,
    "practice": Verdict.WARN,
    "may": Verdict.PASS,
}
_LEVELS: Final = frozenset(_OF_LEVEL)
_KINDS: Final = frozenset({"form", "order", "absence", "timing", "survival"})
_TRANSPORTS: Final = frozenset({"http", "stdio", "websocket"})
_REVISIONS: Final = frozenset({*LEGACY, *MODERN})
_NOT_THE_CLIENT: Final = frozenset({"limit", "server"})
# The name of the file in the table of rules is a word of the language here.
_RENAMED: Final = {"pass": "passes", "fail": "fails"}


class CatalogueError(ValueError):
    """The catalogue contradicts itself; the message names the rule."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the specification: its file below the root of the texts, and its role for the rule.

    `role` is `demands`, or `context` for a sentence without a duty; `word` is the word of obligation.
    """

    doc: str
    text: str
    role: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, as the head of `rules.toml` describes its members."""

    id: str
    title: str
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    level: Level
    worst: str
    kind: Kind
    spec: tuple[Sentence, ...]
    observe: str
    passes: str
    fails: str
    silent: str
    provoke: str
    needs_drill: bool
    false_fail_risk: str
    official_id: str
    bugs: tuple[str, ...]
    level_at: Mapping[str, Level]
    fault: str = ""

    @property
    def group(self) -> str:
        return self.id.partition(".")[0]

    @property
    def is_of_all_revisions(self) -> bool:
        return set(self.revisions) >= _REVISIONS

    def level_of(self, revision: str | None) -> Level:
        """How strongly the rule obliges at a revision; where that is not known, at the one that obliges least."""
        if revision is not None:
            return self.level_at.get(revision, self.level)
        return min((self.level, *self.level_at.values()), key=lambda level: _OF_LEVEL[level])

    def verdict_of(self, revision: str | None) -> Verdict:
        """The verdict on a breach at a revision: that of its level, and never worse than `worst`."""
        return min(_OF_LEVEL[self.level_of(revision)], _WORST[self.worst])


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug of a client or gateway that broke a rule, as its public tracker has it."""

    id: str
    ref: str
    about: str


@dataclass(frozen=True, slots=True)
class Allowances:
    """Numbers that rules share: seconds where the name ends in `_s`, milliseconds in `_ms`, else shares or counts."""

    arrival_s: float
    settle_s: float
    answer_s: float
    person_s: float
    alive_s: float
    retry_tolerance_ms: float
    poll_tolerance: float
    poll_share: float
    repeat_s: float
    survival_tries: int
    end_after_s: float
    token_grace_s: float


@dataclass(frozen=True, slots=True)
class RuleCatalogue:
    """All rules in the order of the file, by id. `digest` is that of the file.

    `misuse` and `refusals` are the rules about each kind of misuse and each refusal of this server; none where a limit
    or the server itself is the cause.
    """

    version: int
    digest: str
    rules: Mapping[str, Rule]
    bugs: Mapping[str, Bug]
    allowances: Allowances
    misuse: Mapping[str, tuple[str, ...]]
    refusals: Mapping[str, tuple[str, ...]]

    @property
    def passive(self) -> Iterable[Rule]:
        return (rule for rule in self.rules.values() if not rule.needs_drill)


@cache
def catalogue() -> RuleCatalogue:
    """The catalogue that this program was shipped with. Raises `CatalogueError`."""
    return load(files(__package__).joinpath("rules.toml").read_bytes())


def load(text: bytes) -> RuleCatalogue:
    """Read a catalogue. Raises `CatalogueError`."""
    raw = tomllib.loads(text.decode())
    bugs = {each["id"]: _row(Bug, each) for each in raw["bug"]}
    rules = {each["id"]: _rule(each) for each in raw["rule"]}
    if len(rules) != len(raw["rule"]):
        raise CatalogueError("two rules have the same id")
    for rule in rules.values():
        _check(rule, bugs)
    if len(rules) != raw["catalogue"]["rules"]:
        raise CatalogueError(f"the head says {raw['catalogue']['rules']} rules, and there are {len(rules)}")
    misuse = {name: _seen_by(f"misuse {name!r}", ids, rules) for name, ids in raw["misuse"].items()}
    refusals = {name: _seen_by(f"refusal {name}", ids, rules) for name, ids in raw["refusals"].items()}
    if different := refusals.keys() ^ Refusal.__members__.keys():
        raise CatalogueError(f"{min(different)} is not both a refusal of this server and one that has rules")
    allowances = _row(Allowances, raw["allowances"])
    return RuleCatalogue(
        raw["catalogue"]["version"], sha256(text).hexdigest(), rules, bugs, allowances, misuse, refusals
    )


def check_complete(catalogue: RuleCatalogue, coded: Collection[str]) -> None:
    """Raise `CatalogueError` unless each passive rule is among those that have code, and each of these is a rule."""
    if missing := {rule.id for rule in catalogue.passive}.difference(coded):
        raise CatalogueError(f"no code for {', '.join(sorted(missing))}")
    if unknown := set(coded) - catalogue.rules.keys():
        raise CatalogueError(f"no rule for the code of {', '.join(sorted(unknown))}")


def _seen_by(what: str, ids: list[str] | str, rules: Mapping[str, Rule]) -> tuple[str, ...]:
    if isinstance(ids, str):
        if ids not in _NOT_THE_CLIENT:
            raise CatalogueError(f"{what} is caused by the unknown {ids!r}")
        return ()
    if unknown := set(ids) - rules.keys():
        raise CatalogueError(f"{what} names the unknown rule {min(unknown)}")
    if not ids:
        raise CatalogueError(f"{what} has no rule")
    return tuple(ids)


def _row(kind: type[_Row], raw: Mapping[str, Any]) -> _Row:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise CatalogueError(f"{raw.get('id', 'allowances')}: {error}") from None


def _rule(raw: Mapping[str, Any]) -> Rule:
    known = {field.name for field in fields(Rule)}
    values = {_RENAMED.get(name, name): value for name, value in raw.items()}
    if unknown := values.keys() - known:
        raise CatalogueError(f"{raw['id']}: unknown member {min(unknown)!r}")
    values["spec"] = [_row(Sentence, sentence) for sentence in raw["spec"]]
    return _row(Rule, {"level_at": {}, **values})


def _check(rule: Rule, bugs: Mapping[str, Bug]) -> None:
    wrong = (
        ({rule.level, *rule.level_at.values()} - _LEVELS, "level"),
        ({rule.worst} - _WORST.keys(), "worst verdict"),
        ({rule.kind} - _KINDS, "kind"),
        (set(rule.revisions) - _REVISIONS, "revision"),
        (rule.level_at.keys() - set(rule.revisions), "revision of a level"),
        (set(rule.transports) - _TRANSPORTS, "transport"),
        (set(rule.bugs) - bugs.keys(), "bug"),
    )
    for names, what in wrong:
        if names:
            raise CatalogueError(f"{rule.id}: unknown {what} {min(names)!r}")
    if not rule.needs_drill and not rule.fault:
        raise CatalogueError(f"{rule.id}: a rule that is applied has a fault")
    if not rule.revisions or not rule.transports:
        raise CatalogueError(f"{rule.id}: a rule has at least one revision and one transport")
    if rule.level == "must" and rule.worst == "FAIL" and not any(each.role == "demands" for each in rule.spec):
        raise CatalogueError(f"{rule.id}: what may fail needs a sentence that demands it")
