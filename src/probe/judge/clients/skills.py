"""The entries of skills as a client was given them, by `skills/list` and `skills/get`."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from ...log.bounded import Newest
from ...views.retention import members
from ...views.values import Message
from ..retention import BOUNDS
from ..values import shown
from .series import Series

METHODS: Final = frozenset({"skills/list", "skills/get"})
SKILL_MD: Final = "/SKILL.md"


class SkillEntry(Struct, frozen=True, eq=False):
    """An entry of a skill. `files` is None where the content is dynamic."""

    uri: str
    frontmatter: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]] | None
    seq: int

    @property
    def root(self) -> str:
        return self.uri.removesuffix("SKILL.md")

    def misfit(self, content: bytes) -> str | None:
        """A difference between its SKILL.md and the entry; None where it fits."""
        claimed = (self.files or {}).get(self.uri, {})
        size, digest = claimed.get("size", len(content)), f"sha256:{sha256(content).hexdigest()}"
        if size != len(content):
            return f"{len(content)} bytes, and its entry says {shown(size)}"
        if claimed.get("digest", digest) != digest:
            return "not the digest of its entry"
        written = _frontmatter(content)
        names = () if written is None else sorted(written.keys() | self.frontmatter.keys())
        differing = [name for name in names if written and written.get(name) != self.frontmatter.get(name)]
        return f"another {', '.join(differing)} than its entry" if differing else None


def _frontmatter(content: bytes) -> Mapping[str, Any] | None:
    """The frontmatter of a SKILL.md with JSON values, as this server writes them; None for any other."""
    _, _, rest = content.decode(errors="replace").partition("---\n")
    head, end, _ = rest.partition("\n---\n")
    pairs = [line.partition(": ") for line in head.splitlines()]
    try:
        return {name: json.loads(value) for name, _, value in pairs} if end else None
    except ValueError:
        return None


def _entries(request: Message, answer: Message) -> Iterator[SkillEntry]:
    result = members(answer.result)
    found = [result.get("skill")] if request.method == "skills/get" else result.get("skills")
    for entry in map(members, found if isinstance(found, list) else ()):
        uri, files = entry.get("uri"), entry.get("resources")
        if isinstance(uri, str) and uri.endswith(SKILL_MD) and (isinstance(files, list) or files == "dynamic"):
            listed = None if files == "dynamic" else {str(file.get("uri")): file for file in map(members, files)}
            yield SkillEntry(uri, members(entry.get("frontmatter")), listed, request.seq)


class Skills:
    """Fed with the results that were delivered to one client."""

    def __init__(self) -> None:
        self._by_root: Newest[str, Series[SkillEntry]] = Newest(BOUNDS.places)
        # When the first entry of each was delivered; the newest is not older than the others.
        self._first: list[float] = []

    def deliver(self, request: Message, answer: Message, at: float) -> None:
        for entry in _entries(request, answer):
            known = self._by_root.get(entry.root)
            if known is None:
                known = Series()
                self._first = [*self._first[1 - BOUNDS.places :], at]
            self._by_root.store(entry.root, known)
            known.add(at, entry)

    def holding(self, uri: object, until: float) -> SkillEntry | None:
        """The newest entry before a time of the innermost skill with a file."""
        path = uri if isinstance(uri, str) else ""
        while path:
            path = path.rpartition("/")[0]
            known = self._by_root.get(f"{path}/")
            entry = None if known is None else known.last_before(until)
            if entry is not None:
                return entry
        return None

    def count(self, at: float) -> int:
        """The number of skills delivered by a time."""
        return bisect_right(self._first, at)

    def renewed(self, entry: SkillEntry, since: float) -> float | None:
        known = self._by_root.get(entry.root)
        return None if known is None else next((at for at in reversed(known.times) if at > since), None)
