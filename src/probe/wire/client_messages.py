"""The messages of clients as models: the parameters of their requests, and their results of the server's requests.

The legacy revisions have one set of models. `v2025/registry.py` leaves out what the revision of a session does not
define; what 2026-07-28 adds stands in `v2026/registry.py`. The tests compare each model with the one of the official
`mcp-types`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, FileUrl
from pydantic.alias_generators import to_camel

_Role: TypeAlias = Literal["user", "assistant"]


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


class WithMeta(Shape):
    """A value with an optional `_meta`; its keys are not checked."""

    meta: dict[str, Any] | None = Field(alias="_meta", default=None)


class EmptyResult(WithMeta):
    """`ping`."""


class Root(WithMeta):
    """A directory or file that the client offers to the server."""

    uri: FileUrl
    name: str | None = None


class ListRootsResult(WithMeta):
    """`roots/list`."""

    roots: list[Root]


class ElicitResult(WithMeta):
    """`elicitation/create`."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class ContentAnnotations(Shape):
    """The audience and the priority of a block of content."""

    audience: list[_Role] | None = None
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    last_modified: str | None = None


class TextContent(WithMeta):
    """Text."""

    type: Literal["text"] = "text"
    text: str
    annotations: ContentAnnotations | None = None


class ImageContent(WithMeta):
    """A picture, in base64."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str
    annotations: ContentAnnotations | None = None


class AudioContent(WithMeta):
    """Sound, in base64."""

    type: Literal["audio"] = "audio"
    data: str
    mime_type: str
    annotations: ContentAnnotations | None = None


class ResourceLink(WithMeta):
    """A resource by its address."""

    type: Literal["resource_link"] = "resource_link"
    name: str
    title: str | None = None
    uri: str
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[ClientIcon] | None = None
    annotations: ContentAnnotations | None = None


class TextResourceContents(WithMeta):
    """The text of a resource."""

    uri: str
    mime_type: str | None = None
    text: str


class BlobResourceContents(WithMeta):
    """The bytes of a resource, in base64."""

    uri: str
    mime_type: str | None = None
    blob: str


_Contents: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(WithMeta):
    """A resource with its contents."""

    type: Literal["resource"] = "resource"
    resource: _Contents
    annotations: ContentAnnotations | None = None


_Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(WithMeta):
    """The model's wish to call a tool."""

    type: Literal["tool_use"] = "tool_use"
    name: str
    id: str
    input: dict[str, Any]


class ToolResultContent(WithMeta):
    """The result of a tool, as a block of content for the model."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: list[_Content] = Field(default=[])
    structured_content: Any = None
    is_error: bool | None = None


_SampledContent: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


class CreateMessageResult(WithMeta):
    """`sampling/createMessage`, with what 2025-11-25 allows: several blocks, and those of tools."""

    role: _Role
    content: _SampledContent | list[_SampledContent]
    model: str
    stop_reason: str | None = None


_UNIONS = (_Content, _Contents, _SampledContent, CompletionReference)

BRANCHES = frozenset(branch.__name__ for union in _UNIONS for branch in get_args(union))
"""The names of models of which a member is one; the validator puts them into the place of a fault."""
