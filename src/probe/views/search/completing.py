"""Completions of the word at a place in a filter line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, get_args

from .words import DIRECTIONS, GROUPS, KIND_HEADS, OUTCOMES, PROBLEMS, Key

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
_CHOICES: Final[Known] = {
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
    fitting = [each for each in known.get(name, _CHOICES.get(name, ())) if any(begun in part.lower() for part in each)]
    return [
        Completion(at - len(begun), end, f"{quoted(value)} ", f"{sign}{key}:{value}", note)
        for value, note in fitting[:_MOST]
    ]
