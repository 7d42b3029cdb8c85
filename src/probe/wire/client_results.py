"""A client's results of what the server asks, as the revisions define them; both eras ask the same.

The tests compare each model with that of the official `mcp-types`; `parameters.py` says why the models are here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, FileUrl

from .parameters import ClientIcon, CompletionReference, Shape

_Role: TypeAlias = Literal["user", "assistant"]


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
