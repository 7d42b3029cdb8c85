"""The catalogue of one server: tools, resources, templates and prompts, each in a fixed order."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...wire.jsonrpc import Json
from .skills import SKILLS, Skill, SkillSet
from .tool import Ask, Tool

Answers: TypeAlias = Mapping[str, Json]
"""The client's results for the `inputs` of a resource or a prompt, by key; empty without `inputs`."""


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
        """The entry in `resources/list`."""
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
        """The entry in `resources/templates/list`."""
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
        """The entry in `prompts/list`."""
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

# Each hint costs a comparison with every name, and a URL has room for thousands of names.
_HINTS: Final = 3
_HOSTED = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,31}__[A-Za-z0-9_.-]{1,90}")


class UnknownSelectionError(ValueError):
    """A selection has a name that does not exist; the message lists the names that do.

    `brief` is for a line on a terminal: it lists the toolsets only.
    """

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

    With `hosted`, tool hosts may connect, and a name such as `demo__export` is accepted before its tool exists. Raises
    `UnknownSelectionError`.
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
