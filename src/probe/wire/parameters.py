"""The parameters of a client's requests: those of the legacy revisions together, and what 2026-07-28 has in common.

`v2025/registry.py` leaves out what the revision of a session does not define; what 2026-07-28 adds stands in
`v2026/registry.py`. The tests compare each model with the one of the official `mcp-types`. That package in its place
takes a fifth of the server's start, because it makes a model of every message of every revision, in both directions.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Shape(BaseModel):
    """A part of a message, with members in camel case; other members are ignored.

    Its validator is built when the first message needs it.
    """

    model_config = ConfigDict(alias_generator=to_camel, defer_build=True)


class RequestParamsMeta(Shape):
    """`_meta`. A user of the token looks for it in the message: it may be absent, and not null."""

    progress_token: str | int = ""


class RequestParams(Shape):
    """The parameters of every request."""

    meta: RequestParamsMeta | None = Field(alias="_meta", default=None)


class PaginatedRequestParams(RequestParams):
    """The methods for lists, such as `tools/list`."""

    cursor: str | None = None


class ClientIcon(Shape):
    """A picture of the client, for people."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Shape):
    """The program of the client."""

    name: str
    title: str | None = None
    version: str
    description: str | None = None
    website_url: str | None = None
    icons: list[ClientIcon] | None = None


class EmptyCapability(Shape):
    """An empty object: its presence declares the capability."""


class RootsCapability(Shape):
    """`capabilities.roots`."""

    list_changed: bool | None = None


class SamplingCapability(Shape):
    """`capabilities.sampling`."""

    context: EmptyCapability | None = None
    tools: EmptyCapability | None = None


class ElicitationCapability(Shape):
    """`capabilities.elicitation`."""

    form: EmptyCapability | None = None
    url: EmptyCapability | None = None


class TasksSamplingCapability(Shape):
    """`capabilities.tasks.requests.sampling`."""

    create_message: EmptyCapability | None = None


class TasksElicitationCapability(Shape):
    """`capabilities.tasks.requests.elicitation`."""

    create: EmptyCapability | None = None


class TasksRequestsCapability(Shape):
    """`capabilities.tasks.requests`."""

    sampling: TasksSamplingCapability | None = None
    elicitation: TasksElicitationCapability | None = None


class TasksCapability(Shape):
    """`capabilities.tasks`."""

    list: EmptyCapability | None = None
    cancel: EmptyCapability | None = None
    requests: TasksRequestsCapability | None = None


class ClientCapabilities(Shape):
    """The capabilities of a client; others than those of the revisions are ignored."""

    experimental: dict[str, dict[str, Any]] | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    roots: RootsCapability | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    tasks: TasksCapability | None = None


class InitializeRequestParams(RequestParams):
    """`initialize`."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class TaskMetadata(Shape):
    """The `task` member of a call that asks for a task; `ttl` in milliseconds."""

    ttl: int | None = None


class CallToolRequestParams(RequestParams):
    """`tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None
    task: TaskMetadata | None = None


class ReadResourceRequestParams(RequestParams):
    """`resources/read`."""

    uri: str


class SubscribeRequestParams(RequestParams):
    """`resources/subscribe`."""

    uri: str


class UnsubscribeRequestParams(RequestParams):
    """`resources/unsubscribe`."""

    uri: str


class GetPromptRequestParams(RequestParams):
    """`prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


class ResourceTemplateReference(Shape):
    """The resource template with the variable to complete."""

    type: Literal["ref/resource"] = "ref/resource"
    uri: str


class PromptReference(Shape):
    """The prompt with the argument to complete."""

    type: Literal["ref/prompt"] = "ref/prompt"
    name: str
    title: str | None = None


class CompletionArgument(Shape):
    """The argument to complete, with the first part of its value."""

    name: str
    value: str


class CompletionContext(Shape):
    """The values of the other variables."""

    arguments: dict[str, str] | None = None


CompletionReference: TypeAlias = ResourceTemplateReference | PromptReference


class CompleteRequestParams(RequestParams):
    """`completion/complete`."""

    ref: CompletionReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class SetLevelRequestParams(RequestParams):
    """`logging/setLevel`."""

    level: LoggingLevel


class GetTaskRequestParams(RequestParams):
    """`tasks/get`."""

    task_id: str


class GetTaskPayloadRequestParams(RequestParams):
    """`tasks/result`."""

    task_id: str


class CancelTaskRequestParams(RequestParams):
    """`tasks/cancel`."""

    task_id: str
