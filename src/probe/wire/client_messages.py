"""The messages of clients as models: the parameters of their requests, and their results of the server's requests.

Their names are those of the official schema, which describes them; a test compares each with `mcp-types`.
`v2025/registry.py` leaves out what the revision of a session does not define; what 2026-07-28 adds stands in
`v2026/registry.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FileUrl
from pydantic.alias_generators import to_camel

_Role: TypeAlias = Literal["user", "assistant"]


LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Integer: TypeAlias = Annotated[int, BeforeValidator(_whole)]
"""As `integer` of JSON Schema, which 5.0 is, too."""


class Shape(BaseModel):
    """A part of a message, with members in camel case; other members are ignored.

    Its validator is built when the first message needs it.
    """

    model_config = ConfigDict(alias_generator=to_camel, defer_build=True)


class RequestParamsMeta(Shape):
    """An application looks for the token in the message: it may be absent, and not null."""

    progress_token: str | int = ""


class RequestParams(Shape):
    meta: RequestParamsMeta | None = Field(alias="_meta", default=None)


class PaginatedRequestParams(RequestParams):
    cursor: str | None = None


class ClientIcon(Shape):
    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Shape):
    name: str
    title: str | None = None
    version: str
    description: str | None = None
    website_url: str | None = None
    icons: list[ClientIcon] | None = None


class EmptyCapability(Shape):
    """An empty object: its presence declares the capability."""


class RootsCapability(Shape):
    list_changed: bool | None = None


class SamplingCapability(Shape):
    context: EmptyCapability | None = None
    tools: EmptyCapability | None = None


class ElicitationCapability(Shape):
    form: EmptyCapability | None = None
    url: EmptyCapability | None = None


class TasksSamplingCapability(Shape):
    create_message: EmptyCapability | None = None


class TasksElicitationCapability(Shape):
    create: EmptyCapability | None = None


class TasksRequestsCapability(Shape):
    sampling: TasksSamplingCapability | None = None
    elicitation: TasksElicitationCapability | None = None


class TasksCapability(Shape):
    list: EmptyCapability | None = None
    cancel: EmptyCapability | None = None
    requests: TasksRequestsCapability | None = None


class ClientCapabilities(Shape):
    """Other members than those of the revisions are ignored."""

    experimental: dict[str, dict[str, Any]] | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    roots: RootsCapability | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    tasks: TasksCapability | None = None


class InitializeRequestParams(RequestParams):
    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class TaskMetadata(Shape):
    """`ttl` is in milliseconds."""

    ttl: _Integer | None = None


class CallToolRequestParams(RequestParams):
    name: str
    arguments: dict[str, Any] | None = None
    task: TaskMetadata | None = None


class ReadResourceRequestParams(RequestParams):
    uri: str


class SubscribeRequestParams(RequestParams):
    uri: str


class UnsubscribeRequestParams(RequestParams):
    uri: str


class GetPromptRequestParams(RequestParams):
    name: str
    arguments: dict[str, str] | None = None


class ResourceTemplateReference(Shape):
    type: Literal["ref/resource"] = "ref/resource"
    uri: str


class PromptReference(Shape):
    type: Literal["ref/prompt"] = "ref/prompt"
    name: str
    title: str | None = None


class CompletionArgument(Shape):
    name: str
    value: str


class CompletionContext(Shape):
    arguments: dict[str, str] | None = None


CompletionReference: TypeAlias = ResourceTemplateReference | PromptReference


class CompleteRequestParams(RequestParams):
    ref: CompletionReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class SetLevelRequestParams(RequestParams):
    level: LoggingLevel


class GetTaskRequestParams(RequestParams):
    task_id: str


class GetTaskPayloadRequestParams(RequestParams):
    task_id: str


class CancelTaskRequestParams(RequestParams):
    task_id: str


class WithMeta(Shape):
    """A value with an optional `_meta`; its keys are not checked."""

    meta: dict[str, Any] | None = Field(alias="_meta", default=None)


class EmptyResult(WithMeta):
    """`ping`."""


class Root(WithMeta):
    uri: FileUrl
    name: str | None = None


class ListRootsResult(WithMeta):
    roots: list[Root]


class ElicitResult(WithMeta):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class ContentAnnotations(Shape):
    audience: list[_Role] | None = None
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    last_modified: str | None = None


class TextContent(WithMeta):
    type: Literal["text"] = "text"
    text: str
    annotations: ContentAnnotations | None = None


class ImageContent(WithMeta):
    type: Literal["image"] = "image"
    data: str
    mime_type: str
    annotations: ContentAnnotations | None = None


class AudioContent(WithMeta):
    type: Literal["audio"] = "audio"
    data: str
    mime_type: str
    annotations: ContentAnnotations | None = None


class ResourceLink(WithMeta):
    type: Literal["resource_link"] = "resource_link"
    name: str
    title: str | None = None
    uri: str
    description: str | None = None
    mime_type: str | None = None
    size: _Integer | None = None
    icons: list[ClientIcon] | None = None
    annotations: ContentAnnotations | None = None


class TextResourceContents(WithMeta):
    uri: str
    mime_type: str | None = None
    text: str


class BlobResourceContents(WithMeta):
    uri: str
    mime_type: str | None = None
    blob: str


_Contents: TypeAlias = TextResourceContents | BlobResourceContents


class EmbeddedResource(WithMeta):
    type: Literal["resource"] = "resource"
    resource: _Contents
    annotations: ContentAnnotations | None = None


_Content: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(WithMeta):
    type: Literal["tool_use"] = "tool_use"
    name: str
    id: str
    input: dict[str, Any]


class ToolResultContent(WithMeta):
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
