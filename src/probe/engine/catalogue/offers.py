"""The offer of one selection to clients of one revision: all answers without a session and without waiting.

Results have the form of 2025-11-25, and the codec of each era adapts them. A method raises `McpError`: -32601 if the
selection has nothing of the kind, such as no prompts, and -32602 for an unknown name or uri.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...wire.client_messages import CompleteRequestParams, PromptReference
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip
from ...wire.revisions import LEGACY
from ...wire.v2026.headers import HeaderParam
from ...wire.v2026.meta import SKILLS_EXTENSION
from ..host_tools.hosted import HostedTools
from .catalogue import HOSTS, Answers, Catalogue, Prompt, Resource, SkillSet
from .tool import Ask, ListKind, Tool

_MAX_COMPLETIONS = 100
"""2025-11-25 and 2026-07-28 server/utilities/completion: "Maximum 100 items per response"."""
# An entry of a skill is a whole manifest. With this bound a small set of skills has a second page too.
_MOST_SKILLS = 5


def cursor(kind: str, after: int) -> str:
    """An opaque cursor for the position after which the next page of a `kind` of list begins."""
    return base64.urlsafe_b64encode(f"{kind}:{after}".encode()).decode().rstrip("=")


def position(kind: str, given: str | None) -> int:
    """The position of a cursor; 0 without one. Raises `McpError` -32602 for one that this list never gave."""
    if given is None:
        return 0
    try:
        padded = given + "=" * (-len(given) % 4)
        _, _, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode().rpartition(":")
        after = int(number)
    except (binascii.Error, ValueError):
        after = -1
    if after < 1 or cursor(kind, after) != given:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: params.cursor is not a cursor of this {kind} list")
    return after


@dataclass(frozen=True, slots=True)
class Offer:
    """A catalogue for one revision, with the tools of the tool hosts that are connected at each moment.

    `skills_declared`: the client declares the skills extension.
    """

    catalogue: Catalogue
    selection: str
    revision: str
    page_size: int
    hosted: HostedTools
    skills_declared: bool = False

    @property
    def legacy(self) -> bool:
        """True for a revision with sessions and requests of the server, and without multi-round-trip requests."""
        return self.revision in LEGACY

    @property
    def announced(self) -> frozenset[ListKind]:
        on_demand = frozenset(kind for tool in self._tools() for kind in tool.announces)
        return on_demand | {"tools"} if self.has_hosts else on_demand

    @property
    def has_hosts(self) -> bool:
        return self.hosted.enabled and (self.catalogue.hosts or bool(self.catalogue.hosted))

    @property
    def skills_by_declaration(self) -> bool:
        """True if this client has skills that another client with the same URL lacks."""
        return self.skills_declared and not self.catalogue.skills

    def declaring_skills(self) -> Offer:
        return replace(self, skills_declared=True)

    def extensions(self) -> Json:
        return {SKILLS_EXTENSION: {"directoryRead": True}} if self._skills else {}

    def capabilities(self) -> Json:
        catalogue, announced = self.catalogue, self.announced
        declared: Json = {"logging": {}}
        if catalogue.tools or self.has_hosts:
            declared["tools"] = _changing("tools" in announced)
        if self._resources() or catalogue.templates or self._skills:
            declared["resources"] = {"subscribe": True, **_changing("resources" in announced)}
        if self._prompts():
            declared["prompts"] = _changing("prompts" in announced)
        if self._prompts() or any(template.completions for template in catalogue.templates):
            declared["completions"] = {}
        return declared

    def find(self, name: str) -> Tool | None:
        return self.catalogue.tools.get(name) or self._hosted().get(name)

    def toolset(self, name: str) -> str:
        return HOSTS if name in self._hosted() else self.catalogue.toolset_of.get(name, "")

    def tool(self, name: str) -> Tool:
        tool = self.find(name)
        if tool is None:
            raise McpError(Code.INVALID_PARAMS, f"Unknown tool: {clip(name)}")
        return tool

    def header_params(self, name: str) -> Sequence[HeaderParam]:
        tool = self.find(name)
        return () if tool is None else tool.header_params

    def list_tools(self, after: str | None) -> Json:
        return self._page("tools", "tools", [tool.describe() for tool in self._tools()], after)

    def list_resources(self, after: str | None) -> Json:
        self.require("resources")
        # The list is the same for all clients of a URL, so files of declared skills are not in it.
        items = [*(item.describe() for item in self._resources()), *self.catalogue.skills.resources]
        return self._page("resources", "resources", items, after)

    def list_templates(self, after: str | None) -> Json:
        self.require("resources")
        items = [template.describe() for template in self.catalogue.templates]
        return self._page("templates", "resourceTemplates", items, after)

    def list_prompts(self, after: str | None) -> Json:
        self.require("prompts")
        return self._page("prompts", "prompts", [prompt.describe() for prompt in self._prompts()], after)

    def resource(self, uri: str) -> Resource | None:
        return next((item for item in self._resources() if item.uri == uri), None)

    def read(self, uri: str, now: float, answers: Answers) -> Json:
        self.require("resources")
        return {"contents": [{"uri": uri, **self._contents(uri, now, answers)}]}

    def has_resource(self, uri: str) -> bool:
        return any(found is not None for found in (self.resource(uri), self._templated(uri), self._skills.file(uri)))

    def check_resource(self, uri: str) -> None:
        self.require("resources")
        if not self.has_resource(uri):
            raise self._not_found(uri)

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Prompt:
        self.require("prompts")
        prompt = next((item for item in self._prompts() if item.name == name), None)
        if prompt is None:
            raise McpError(Code.INVALID_PARAMS, f"Unknown prompt: {clip(name)}")
        missing = [item.name for item in prompt.arguments if item.required and item.name not in arguments]
        if missing:
            raise McpError(Code.INVALID_PARAMS, f"Missing arguments of prompt {name}: {', '.join(missing)}")
        return prompt

    def get_prompt(self, name: str, arguments: Mapping[str, str], answers: Answers) -> Json:
        prompt = self.prompt(name, arguments)
        return {"description": prompt.description, "messages": prompt.render(arguments, answers)}

    def list_skills(self, after: str | None) -> Json:
        self._require_skills()
        return self._page("skills", "skills", self._skills.entries, after, most=_MOST_SKILLS)

    def get_skill(self, uri: str) -> Json:
        self._require_skills()
        entry = self._skills.entry(uri)
        if entry is None:
            raise McpError(Code.INVALID_PARAMS, f"No skill is served at {clip(uri)}", {"uri": uri})
        return {"skill": entry}

    def read_directory(self, uri: str, after: str | None) -> Json:
        self._require_skills()
        children = self._skills.directory(uri)
        if children is None:
            what = "is no directory resource" if self.has_resource(uri) else "does not exist"
            raise McpError(Code.INVALID_PARAMS, f"{clip(uri)} {what}", {"uri": uri})
        return self._page(f"directory {uri}", "resources", children, after, most=_MOST_SKILLS)

    def complete(self, params: CompleteRequestParams) -> Json:
        self.require("completions")
        fitting = [value for value in self._completions(params) if value.startswith(params.argument.value)]
        shown = fitting[:_MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(fitting), "hasMore": len(shown) < len(fitting)}}

    def require(self, capability: str) -> None:
        if capability not in self.capabilities():
            why = f"Method not found: the selection {self.selection!r} offers no {capability}"
            raise McpError(Code.METHOD_NOT_FOUND, why)

    def _require_skills(self) -> None:
        if not self._skills:
            why = f"Method not found: neither the selection {self.selection!r} nor this request asks for skills"
            raise McpError(Code.METHOD_NOT_FOUND, why)

    @property
    def _skills(self) -> SkillSet:
        return self.catalogue.declared_skills if self.skills_by_declaration else self.catalogue.skills

    def _tools(self) -> list[Tool]:
        tools = [*self.catalogue.tools.values(), *self._hosted().values()]
        return [tool for tool in tools if tool.offered_since <= self.revision and tool.is_defined(self.revision)]

    def _hosted(self) -> Mapping[str, Tool]:
        tools, catalogue = self.hosted.tools, self.catalogue
        if catalogue.hosts:
            return tools
        return {name: tools[name] for name in tools if name in catalogue.hosted} if catalogue.hosted else {}

    def _asks(self, inputs: Mapping[str, Ask]) -> bool:
        return not inputs or not self.legacy

    def _resources(self) -> list[Resource]:
        return [item for item in self.catalogue.resources.values() if self._asks(item.inputs)]

    def _prompts(self) -> list[Prompt]:
        return [item for item in self.catalogue.prompts.values() if self._asks(item.inputs)]

    def _page(self, kind: str, member: str, items: Sequence[Json], after: str | None, most: int | None = None) -> Json:
        start, size = position(kind, after), min(self.page_size, most or self.page_size)
        if start >= len(items) and start:
            raise McpError(Code.INVALID_PARAMS, f"Invalid params: params.cursor is beyond the end of this {kind} list")
        page: Json = {member: list(items[start : start + size])}
        return page if start + size >= len(items) else {**page, "nextCursor": cursor(kind, start + size)}

    def _contents(self, uri: str, now: float, answers: Answers) -> Json:
        resource = self.resource(uri)
        if resource is not None:
            return {"mimeType": resource.mime_type, **resource.read(now, answers)}
        file = self._skills.file(uri)
        if file is not None:
            return file.contents(now)
        contents = self._templated(uri)
        if contents is None:
            raise self._not_found(uri)
        return contents

    def _templated(self, uri: str) -> Json | None:
        for template in self.catalogue.templates:
            contents = template.match(uri)
            if contents is not None:
                return {"mimeType": template.mime_type, **contents}
        return None

    def _not_found(self, uri: str) -> McpError:
        # 2026-07-28 server/resources, Error Handling: -32602 in place of the -32002 of earlier revisions.
        code = Code.RESOURCE_NOT_FOUND if self.legacy else Code.INVALID_PARAMS
        return McpError(code, "Resource not found", {"uri": uri})

    def _completions(self, params: CompleteRequestParams) -> Sequence[str]:
        ref, name = params.ref, params.argument.name
        offered: Mapping[str, Sequence[str]] | None
        if isinstance(ref, PromptReference):
            prompt = next((item for item in self._prompts() if item.name == ref.name), None)
            what = f"prompt {clip(ref.name)}"
            offered = None if prompt is None else {item.name: item.completions for item in prompt.arguments}
        else:
            what, templates = f"resource template {clip(ref.uri)}", self.catalogue.templates
            offered = next((item.completions for item in templates if item.uri_template == ref.uri), None)
        if offered is None or name not in offered:
            missing = f"Unknown {what}" if offered is None else f"The {what} has no argument {clip(name)}"
            raise McpError(Code.INVALID_PARAMS, missing)
        return offered[name]


def _changing(announced: bool) -> Json:
    return {"listChanged": True} if announced else {}


SIMPLE: Mapping[str, Callable[[Offer, Any], Json]] = {
    "tools/list": lambda offer, params: offer.list_tools(params.cursor),
    "resources/list": lambda offer, params: offer.list_resources(params.cursor),
    "resources/templates/list": lambda offer, params: offer.list_templates(params.cursor),
    "prompts/list": lambda offer, params: offer.list_prompts(params.cursor),
    "completion/complete": lambda offer, params: offer.complete(params),
    "skills/list": lambda offer, params: offer.list_skills(params.cursor),
    "skills/get": lambda offer, params: offer.get_skill(params.uri),
    "resources/directory/read": lambda offer, params: offer.read_directory(params.uri, params.cursor),
}
"""The methods of both eras that need only checked parameters and the offer."""
