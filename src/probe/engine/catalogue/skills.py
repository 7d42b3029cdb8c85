"""The skills of the skills extension (`io.modelcontextprotocol/skills`, SEP-2640): directories of files.

A file is a resource, and `resources/read` returns its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...wire.jsonrpc import Json

SKILLS: Final = "skills"
"""The toolset of skills for a client that declares the extension and has no skills in its URL."""

DIRECTORY: Final = "inode/directory"
"""The type of a directory resource."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill. `read` returns its bytes for a time in seconds since the epoch."""

    uri: str
    name: str
    mime_type: str
    read: Callable[[float], bytes]
    description: str = ""

    def describe(self) -> Json:
        """The entry in `resources/list` and in the listing of its directory."""
        described = {"uri": self.uri, "name": self.name, "mimeType": self.mime_type}
        return {**described, "description": self.description} if self.description else described

    def contents(self, now: float) -> Json:
        """The contents for `resources/read`, without uri."""
        content = self.read(now)
        if self.mime_type.startswith("text/"):
            return {"mimeType": self.mime_type, "text": content.decode()}
        return {"mimeType": self.mime_type, "blob": base64.b64encode(content).decode()}


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: its entry, and its files with those of nested skills.

    A skill that is not `listed` can be read, and is absent from the lists of skills and resources. A skill that does
    not `conform` has an entry that differs from its files on purpose; only a selection with its name offers it.
    """

    entry: Json
    files: tuple[SkillFile, ...]
    empty_directories: tuple[str, ...] = ()
    listed: bool = True
    conforms: bool = True

    @property
    def uri(self) -> str:
        """The URI of its `SKILL.md`."""
        uri: str = self.entry["uri"]
        return uri


class SkillSet:
    """The skills of one selection, in their order."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = {skill.uri: skill for skill in skills}
        listed = [skill for skill in self._skills.values() if skill.listed]
        self.entries = [skill.entry for skill in listed]
        """The entries of `skills/list`."""
        self.resources = list({file.uri: file.describe() for skill in listed for file in skill.files}.values())
        """The files of skills in `resources/list`."""
        self._files = {file.uri: file for skill in self._skills.values() for file in skill.files}
        empty = (uri for skill in self._skills.values() for uri in skill.empty_directories)
        self._directories = _directories(self._files.values(), empty)

    def __bool__(self) -> bool:
        return bool(self._skills)

    def entry(self, uri: str) -> Json | None:
        """The entry of a skill, listed or not; None for an unknown one."""
        skill = self._skills.get(uri)
        return None if skill is None else skill.entry

    def file(self, uri: str) -> SkillFile | None:
        """The file with this URI, of any skill, listed or not; None for an unknown one."""
        return self._files.get(uri)

    def directory(self, uri: str) -> list[Json] | None:
        """The direct children of a directory; None if it is not a directory."""
        children = self._directories.get(uri)
        return None if children is None else list(children.values())


def _directories(files: Iterable[SkillFile], empty: Iterable[str]) -> Mapping[str, dict[str, Json]]:
    """The children of each directory by their URIs, up to the first segment of a skill's path."""
    directories: dict[str, dict[str, Json]] = {}

    def place(uri: str, described: Json) -> None:
        parent, _, _ = uri.rpartition("/")
        if parent.endswith("/"):  # `uri` is the first segment, which nothing contains
            return
        if parent not in directories:
            directories[parent] = {}
            place(parent, _described_directory(parent))
        directories[parent][uri] = described

    for file in files:
        place(file.uri, file.describe())
    for uri in empty:
        directories.setdefault(uri, {})
        place(uri, _described_directory(uri))
    return directories


def _described_directory(uri: str) -> Json:
    return {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": DIRECTORY}
