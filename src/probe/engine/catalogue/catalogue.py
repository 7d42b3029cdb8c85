"""The catalogue of one server: tools, resources, templates, prompts and skills, each in a fixed order.

Skills are those of the extension `io.modelcontextprotocol/skills` (SEP-2640): directories of files. A file is a
resource, and `resources/read` returns its bytes.
"""

from __future__ import annotations

import base64
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...wire.jsonrpc import Json
from .tool import Ask, Tool

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
        described = {"uri": self.uri, "name": self.name, "mimeType": self.mime_type}
        return {**described, "description": self.description} if self.description else described

    def contents(self, now: float) -> Json:
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
        skill = self._skills.get(uri)
        return None if skill is None else skill.entry

    def file(self, uri: str) -> SkillFile | None:
        return self._files.get(uri)

    def directory(self, uri: str) -> list[Json] | None:
        """The direct children of a directory; None if it is not a directory."""
        children = self._directories.get(uri)
        return None if children is None else list(children.values())


def _directories(files: Iterable[SkillFile], empty: Iterable[str]) -> Mapping[str, dict[str, Json]]:
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


Answers: TypeAlias = Mapping[str, Json]
"""The client's results for the `inputs` of a resource or a prompt, by key."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One readable resource.

    `read` returns its contents without uri, for a time in seconds since the epoch. A resource with `ticks_s` changes at
    every multiple of that many seconds.
    """

    uri: str
    name: str
    title: str
    description: str
    mime_type: str
    read: Callable[[float, Answers], Json]
    ticks_s: float | None = None
    inputs: Mapping[str, Ask] = field(default_factory=dict)

    def describe(self) -> Json:
        return {
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
        }


@dataclass(frozen=True, slots=True)
class Template:
    """A family of resources. `match` returns the contents without uri, None for a uri outside the family."""

    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str
    match: Callable[[str], Json | None]
    completions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def describe(self) -> Json:
        return {
            "uriTemplate": self.uri_template,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
        }


@dataclass(frozen=True, slots=True)
class Argument:
    """One prompt argument and its values for `completion/complete`."""

    name: str
    description: str
    required: bool = True
    completions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    `render` returns the messages for its arguments; every required one is present. A prompt with `inputs` sends the
    client questions first, so only revisions with multi-round-trip requests offer it.
    """

    name: str
    title: str
    description: str
    render: Callable[[Mapping[str, str], Answers], list[Json]]
    arguments: tuple[Argument, ...] = ()
    inputs: Mapping[str, Ask] = field(default_factory=dict)

    def describe(self) -> Json:
        entry: Json = {"name": self.name, "title": self.title, "description": self.description}
        if self.arguments:
            entry["arguments"] = [
                {"name": item.name, "description": item.description, "required": item.required}
                for item in self.arguments
            ]
        return entry


@dataclass(frozen=True, slots=True)
class Toolset:
    """A named group of tools, with its resources, prompts and skills."""

    name: str
    tools: tuple[Tool, ...]
    resources: tuple[Resource, ...] = ()
    templates: tuple[Template, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    skills: tuple[Skill, ...] = ()


HOSTS: Final = "hosts"
"""The toolset of all tool hosts. Its tools are known only while hosts are connected."""

_HINTS: Final = 3
_HOSTED = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,31}__[A-Za-z0-9_.-]{1,90}")


class UnknownSelectionError(ValueError):
    """A selection has a name that does not exist; the message lists the names that do, `brief` the toolsets only."""

    def __init__(self, what: str, toolsets: Sequence[str], tools: Sequence[str]) -> None:
        super().__init__(f"{what}; known are {', '.join([*toolsets, *tools])}")
        self.brief = f"{what}; toolsets are {', '.join(toolsets)}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The offer of one selection; `toolset_of` has the toolset of each tool.

    `hosts`: True if it has the tools of all connected tool hosts; `hosted` are the names of single ones.
    `declared_skills` are for clients that declare the skills extension, if the selection has no skills.
    """

    tools: Mapping[str, Tool]
    toolset_of: Mapping[str, str]
    resources: Mapping[str, Resource]
    templates: tuple[Template, ...]
    prompts: Mapping[str, Prompt]
    skills: SkillSet
    declared_skills: SkillSet
    hosts: bool = False
    hosted: frozenset[str] = frozenset()


def select(toolsets: Sequence[Toolset], selection: str, *, hosted: bool = False) -> Catalogue:
    """The catalogue for a comma-separated list of tool and toolset names, or `all`, in the order of the toolsets.

    With `hosted`, a name such as `demo__export` is accepted before its tool exists. Raises `UnknownSelectionError`.
    """
    names = {name.strip() for name in selection.split(",")} - {""}
    groups = ["all", *(group.name for group in toolsets), HOSTS]
    tools = [tool.name for group in toolsets for tool in group.tools]
    single = frozenset(name for name in names if hosted and _HOSTED.fullmatch(name))
    unknown = sorted(names - {*groups, *tools} - single)
    if unknown or not names:
        hinted = [_hinted([*groups, *tools], name) for name in unknown[:_HINTS]]
        what = f"unknown tools: {', '.join([*hinted, *unknown[_HINTS:]])}"
        raise UnknownSelectionError(what if unknown else "no tools named", groups, tools)
    whole = [group for group in toolsets if names & {"all", group.name}]
    chosen = [(tool, group.name) for group in toolsets for tool in group.tools if group in whole or tool.name in names]
    return Catalogue(
        tools={tool.name: tool for tool, _ in chosen},
        toolset_of={tool.name: group for tool, group in chosen},
        resources={item.uri: item for group in whole for item in group.resources},
        templates=tuple(item for group in whole for item in group.templates),
        prompts={item.name: item for group in whole for item in group.prompts},
        skills=SkillSet(skill for group in whole for skill in group.skills),
        declared_skills=SkillSet(
            skill for group in toolsets if group.name == SKILLS for skill in group.skills if skill.conforms
        ),
        hosts=bool(names & {"all", HOSTS}),
        hosted=single,
    )


def _hinted(known: Sequence[str], name: str) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"{name} (did you mean {near[0]}?)" if near else name
