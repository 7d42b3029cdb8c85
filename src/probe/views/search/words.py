r"""The words of a filter line, and the completions of the word at a place in it.

    text  "two words"     anywhere in an entry, upper and lower case alike; in quotes, `\"` is a quote, `\\` a backslash
    key:value             one of the values of the key, with commas between them; `*` stands for any text
    -word                 not that

A repeated key has all its values. For example: `client:m1 tool:progress -kind:dispatch status:>=400 "step 3"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from ...log import events
from ...log.query import QueryError
from ...wire.jsonrpc import clip
from ..meaning import Group, Problem
from . import call_filter
from .call_filter import RUNNING

Key: TypeAlias = Literal[
    "client",
    "tool",
    "method",
    "outcome",
    "status",
    "kind",
    "group",
    "direction",
    "problem",
    "call",
    "task",
    "stream",
    "exchange",
    "connection",
    "text",
]
KEYS: Final = get_args(Key)

PROBLEMS: Final = (*get_args(Problem), "any")
OUTCOMES: Final = (RUNNING, *(outcome for outcome in call_filter.OUTCOMES if outcome != "lost"))
DIRECTIONS: Final = ("in", "out")
GROUPS: Final = get_args(Group)
KIND_HEADS: Final = tuple(sorted({kind.kind.split(".", 1)[0] for kind in get_args(events.Event)}))
"""The beginnings of kinds, up to the first dot."""

# The cost of a line for each entry of the log grows with its values.
_MOST_VALUES: Final = 50

_STATUS = re.compile(r"(<=|>=|<|>)?(\d{3})")
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "": lambda mine, asked: mine == asked,
    "<": lambda mine, asked: mine < asked,
    ">": lambda mine, asked: mine > asked,
    "<=": lambda mine, asked: mine <= asked,
    ">=": lambda mine, asked: mine >= asked,
}


@dataclass(frozen=True, slots=True)
class Word:
    """The condition of a key: one of the `values`, or none of them where it is `negated`. Values are in lower case."""

    key: Key
    values: tuple[str, ...]
    negated: bool = False


def read(line: str) -> tuple[Word, ...]:
    """The words of a line, each key once and once more negated; each text is a word of its own. Raises `QueryError`."""
    found: dict[tuple[Key, bool, int], list[str]] = {}
    for place, (negated, key, values) in enumerate(_tokens(line)):
        known = _checked(key, values)
        found.setdefault((known, negated, place if known == "text" and not negated else 0), []).extend(values)
    if sum(map(len, found.values())) > _MOST_VALUES:
        raise QueryError(f"a filter has at most {_MOST_VALUES} values")
    return tuple(
        Word(key, tuple(dict.fromkeys(value.lower() for value in values)), negated)
        for (key, negated, _), values in found.items()
    )


def _tokens(line: str) -> Iterator[tuple[bool, str, list[str]]]:
    """Each word: True if negated, its key, and its values as written."""
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        negated = line[at] == "-" and at + 1 < len(line) and not line[at + 1].isspace()
        at += negated
        begins = re.compile(r"[A-Za-z_]+:").match(line, at)
        key = "text" if begins is None else begins[0][:-1].lower()
        at = at if begins is None else begins.end()
        values: list[str] = []
        while True:
            value, at = _value(line, at, commas=begins is not None)
            values.append(value)
            if begins is None or at >= len(line) or line[at] != ",":
                break
            at += 1
        yield negated, key, values


def _value(line: str, at: int, *, commas: bool) -> tuple[str, int]:
    """The value at a place, in quotes or up to a space (or a comma), and its end."""
    if at < len(line) and line[at] == '"':
        value = ""
        at += 1
        while at < len(line) and line[at] != '"':
            at += line[at] == "\\" and at + 1 < len(line) and line[at + 1] in '"\\'
            value += line[at]
            at += 1
        if at >= len(line):
            raise QueryError(f'a quotation that begins with "{clip(value)} has no end')
        return value, at + 1
    begin = at
    while at < len(line) and not line[at].isspace() and not (commas and line[at] == ","):
        at += 1
    return line[begin:at], at


def _checked(key: str, values: list[str]) -> Key:
    if key not in KEYS:
        what = f'known are {", ".join(KEYS)}; a text with a colon stands in quotes: "{clip(key)}:{clip(values[0])}"'
        raise QueryError(f"{clip(key)}: is no word of the filter; {what}", KEYS, key)
    for value in values:
        if not value:
            raise QueryError(f"{key}: has no value")
        _check_value(cast("Key", key), value)
    return cast("Key", key)


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "group": GROUPS,
    "direction": DIRECTIONS,
    "problem": PROBLEMS,
    "outcome": OUTCOMES,
}


def _check_value(key: Key, value: str) -> None:
    choices = _CHOICES.get(key)
    if choices is not None and "*" not in value and value.lower() not in choices:
        raise QueryError(f"{key}:{clip(value)} is not known; {key} is one of {', '.join(choices)}", choices, value)
    if key == "status" and _STATUS.fullmatch(value) is None:
        raise QueryError(f"status:{clip(value)} is no status; it would be 404, >=400 or <300")
    head = value.lower().split(".", 1)[0]
    if key == "kind" and "*" not in value and head not in KIND_HEADS:
        raise QueryError(f"kind:{clip(value)} is not known; kinds begin with {', '.join(KIND_HEADS)}", KIND_HEADS, head)


def matcher(word: Word) -> Callable[[str], bool]:
    """Tests a name, or a number as text, against the values of a word; for a `kind`, a value may be its beginning."""
    if word.key == "status":
        return _status(word.values)
    if word.key == "text":
        return lambda mine: any(value in mine for value in word.values)
    exact = frozenset(value for value in word.values if "*" not in value)
    patterns = [value.split("*") for value in word.values if "*" in value]
    heads = tuple(f"{value}." for value in exact) if word.key == "kind" else ()

    def matches(mine: str) -> bool:
        name = mine.lower()
        return name in exact or name.startswith(heads) or any(_fits(name, parts) for parts in patterns)

    return matches


def _fits(name: str, parts: Sequence[str]) -> bool:
    """True if a name has these parts in their order, the first at its beginning and the last at its end."""
    first, *middle, last = parts
    if not name.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return name.endswith(last) and len(name) - len(last) >= at


def _status(values: tuple[str, ...]) -> Callable[[str], bool]:
    asked = [(found[1] or "", int(found[2])) for found in map(_STATUS.fullmatch, values) if found is not None]
    return lambda mine: any(_COMPARE[sign](int(mine), number) for sign, number in asked)


Known: TypeAlias = Mapping[Key, Sequence[tuple[str, str]]]
"""Values of a key, such as names of tools, each with a note, possibly empty."""

_NOTES: Final[Mapping[Key, str]] = {
    "client": "a session, a modern client, its name or its label",
    "tool": "the name of a tool",
    "method": "the method of a message",
    "outcome": "how a call ended",
    "status": "the HTTP status: 404, >=400",
    "kind": "the kind of an entry, or how it begins",
    "group": "what an entry is about",
    "direction": "in to the server, or out from it",
    "problem": "the cause of a problem",
    "call": "a call",
    "task": "a task",
    "stream": "a stream",
    "exchange": "a request over HTTP, or a message on a pipe",
    "connection": "a connection",
}
_PROBLEM_NOTES: Final = (
    "a mistake of the client",
    "an error that a tool gave",
    "a message that reached no client",
    "a limit or a failure of the server",
    "of tool hosts, and errors that clients answer",
    "any of these",
)
_COMPLETIONS: Final[Known] = {
    "outcome": [(value, "") for value in OUTCOMES],
    "direction": [(value, "") for value in DIRECTIONS],
    "kind": [(value, "") for value in KIND_HEADS],
    "group": [(value, "") for value in GROUPS],
    "status": [(">=400", "refused"), ("200", ""), ("202", "accepted")],
    "problem": list(zip(PROBLEMS, _PROBLEM_NOTES, strict=True)),
}
_MOST: Final = 12
_REST: Final = re.compile(r"[^\s,]*")
_KEYED: Final = re.compile(r"(-?)([A-Za-z]+):(.*)", re.DOTALL)
# A value that matches needs quotes: a space, a quote or a comma in it, `-` before it, `key:` before it, or empty.
_QUOTED: Final = re.compile(r'[\s",]|^-|^\w+:|^$')


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion: `insert` replaces the text between two places; a list shows `label` and `note`."""

    start: int
    end: int
    insert: str
    label: str
    note: str


def quoted(value: str) -> str:
    """A value as written in a line."""
    if _QUOTED.search(value) is None:
        return value
    escaped = re.sub(r'(["\\])', r"\\\1", value)
    return f'"{escaped}"'


def complete(line: str, at: int, known: Known) -> list[Completion]:
    """The completions at a place: keys, or values of a key. A word in quotes has none."""
    begin = len(line[:at]) - len(line[:at].rsplit(" ", maxsplit=1)[-1])
    rest = _REST.match(line, at)
    end = at if rest is None else rest.end()
    typed = line[begin:at]
    if '"' in typed:
        return []
    keyed = _KEYED.fullmatch(typed)
    if keyed is None:
        sign = "-" if typed.startswith("-") else ""
        begun = typed.removeprefix("-").lower()
        words = [(f"{sign}{key}:", note) for key, note in _NOTES.items() if key.startswith(begun)]
        return [Completion(begin, end, word, word, note) for word, note in words]
    sign, key, values = keyed.groups()
    begun = values.rpartition(",")[2].lower()
    if key.lower() not in get_args(Key):
        return []
    name = cast("Key", key.lower())
    fitting = [
        each for each in known.get(name, _COMPLETIONS.get(name, ())) if any(begun in part.lower() for part in each)
    ]
    return [
        Completion(at - len(begun), end, f"{quoted(value)} ", f"{sign}{key}:{value}", note)
        for value, note in fitting[:_MOST]
    ]
