"""The messages between this server and tool hosts: docs/tool-hosts.md.

Both ends read and write by these models, so that they cannot disagree about what is valid. Unknown members are ignored:
a later minor version may add some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from .jsonrpc import Json, clip

SUBPROTOCOL: Final = "mcp-probe.toolhost.v1"
VERSION: Final = "1.1"
"""The version of both ends of this package: the number of the subprotocol, and the minor version."""
MAX_DEADLINE_MS: Final = 3_600_000
LONGEST_ERROR: Final = 2000
"""Characters of the message of an error, or of a report, that go on to the client."""
_LONGEST_TEXT: Final = 10_000
# A light and a dark icon in a few sizes. Each tools/list repeats them.
_MOST_ICONS: Final = 8
_LONGEST_ICON: Final = 16_384
_MOST_SIZES: Final = 16

# RFC 3986, without user information: clients that list the tools would read the password.
_HTTPS: Final = (
    r"https://(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    r"(?:[/?](?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_DATA: Final = (
    r"data:image/[A-Za-z0-9.+-]+(?:;[A-Za-z0-9.+-]+=[A-Za-z0-9.+-]+)*;base64,"
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"
)
_ICON_SOURCE: Final = f"^(?:{_HTTPS}|{_DATA})$"

HostName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,31}$")]
# With the longest host name and the separator it is within the 128 characters of 2025-11-25 server/tools, Tool Names.
ToolName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,90}$")]
ErrorCode: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
Milliseconds: TypeAlias = Annotated[int, Field(ge=100, le=MAX_DEADLINE_MS)]
Cause: TypeAlias = Literal["notification", "disconnect", "tasks_cancel", "deadline", "ttl", "session_end", "shutdown"]
_Text: TypeAlias = Annotated[str, StringConstraints(max_length=_LONGEST_TEXT)]
_Label: TypeAlias = Annotated[str, StringConstraints(max_length=200)]
_Number: TypeAlias = int | Annotated[float, Field(allow_inf_nan=False)]


def _check_icon_source(source: str) -> str:
    """2025-11-25 basic/index, `icons`: "Ensure that the icon URI is either a HTTPS or `data:` URI"."""
    if re.fullmatch(_ICON_SOURCE, source) is None:
        why = "Should be an https: URI without a user, or a data: URI with an image in Base64"
        raise PydanticCustomError("icon_source", why)
    return source


_IconSource: TypeAlias = Annotated[
    str,
    StringConstraints(max_length=_LONGEST_ICON),
    AfterValidator(_check_icon_source),
    # for the JSON Schema; a message of pydantic about a pattern is no sentence
    Field(json_schema_extra={"pattern": _ICON_SOURCE}),
]
_IconSize: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(?:any|[1-9][0-9]{0,4}x[1-9][0-9]{0,4})$")]
_ImageType: TypeAlias = Annotated[str, StringConstraints(pattern=r"^image/[A-Za-z0-9.+-]{1,100}$")]
# `JsonValue` would call a function of Python for each value in it.
_OfMessage: TypeAlias = dict[str, Any]
_Version: TypeAlias = Annotated[str, StringConstraints(pattern=r"^1\.(?:0|[1-9][0-9]{0,3})$")]


class HostCode(IntEnum):
    """JSON-RPC error codes of this protocol, beside JSON-RPC's own; all outside the range that it reserves."""

    TOOL_FAILED = 1
    CANCELLED = 2
    NAME_TAKEN = 10
    LIMIT = 11
    NOT_NOW = 12


class InvalidMessageError(ValueError):
    """Parameters or a result are not what this protocol defines; the message is one sentence for the other side."""


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def dump(self) -> Json:
        """Leaves out what was not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Annotations(_Model):
    """Hints about a tool (2025-11-25 schema, `ToolAnnotations`)."""

    title: _Label | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Icon(_Model):
    """A picture of a tool (2025-11-25 schema, `Icon`), within bounds of this protocol."""

    src: _IconSource
    mime_type: _ImageType | None = None
    sizes: Annotated[list[_IconSize], Field(max_length=_MOST_SIZES)] | None = None
    theme: Literal["light", "dark"] | None = None


class ToolDefinition(_Model):
    """One tool of a host. The server checks the schemas. `icons` are of version 1.1."""

    name: ToolName
    title: _Label | None = None
    description: _Text = ""
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    annotations: Annotations | None = None
    icons: Annotated[list[Icon], Field(max_length=_MOST_ICONS)] | None = None
    idle_ms: Milliseconds | None = None
    ceiling_ms: Milliseconds | None = None


class RegisterParams(_Model):
    """`host.register`: the host, and all its tools. `protocol` is the host's version; version 1.0 leaves it out."""

    protocol: _Version | None = None
    name: HostName
    instance: Annotated[str, StringConstraints(min_length=16, max_length=128)]
    version: _Label | None = None
    library: _Label | None = None
    tools: list[ToolDefinition]


class UpdateParams(_Model):
    """`host.update`: all the tools, in place of those before."""

    tools: list[ToolDefinition]


class HostLimits(_Model):
    """The limits of a host: dispatches that run at a time, bytes of a message, tools."""

    dispatches: int
    message_bytes: int
    tools: int


class RegisterResult(_Model):
    """The answer to `host.register` and `host.update`: the names by which MCP clients know the tools.

    `protocol` is the server's version; one of 1.0 says none.
    """

    protocol: _Version | None = None
    host: str
    tools: list[str]
    limits: HostLimits


class DispatchParams(_Model):
    """`tool.dispatch`: run a tool. The request's id names the dispatch."""

    tool: str
    arguments: _OfMessage
    idle_ms: int
    ceiling_ms: int


class DispatchResult(_Model):
    """The result of a dispatch: exactly one of the two."""

    output: _OfMessage | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> DispatchResult:
        if (self.output is None) == (self.text is None):
            raise ValueError('a result has either "output" or "text"')
        return self


class ProgressParams(_Model):
    """`tool.progress`: how far a dispatch is."""

    dispatch: str
    progress: _Number
    total: _Number | None = None
    message: str | None = None


class CancelParams(_Model):
    """`tool.cancel`: stop a dispatch; `cause` names the reason, such as `notification`."""

    dispatch: str
    cause: Cause
    reason: str | None = None


class FailureData(_Model):
    """The `data` of error 1: what went wrong in a word, whether to try again, and how far the work got."""

    code: ErrorCode
    retryable: bool = False
    retry_after_ms: Annotated[int, Field(ge=0, le=86_400_000)] | None = None
    progress: _Number | None = None
    total: _Number | None = None


MESSAGES: Final[Mapping[str, tuple[type[_Model], type[_Model] | None]]] = {
    "host.register": (RegisterParams, RegisterResult),
    "host.update": (UpdateParams, RegisterResult),
    "tool.dispatch": (DispatchParams, DispatchResult),
    "tool.progress": (ProgressParams, None),
    "tool.cancel": (CancelParams, None),
}
"""The params and the result of each method; `ping` has neither."""


_M = TypeVar("_M", bound=_Model)


def read_params(model: type[_M], params: Mapping[str, Any] | None) -> _M:
    """Params by their model. Raises `InvalidMessageError`."""
    return _read(model, params or {}, "params")


def read_result(result: Mapping[str, Any]) -> DispatchResult:
    """The result of a dispatch. Raises `InvalidMessageError`."""
    return _read(DispatchResult, result, "result")


def read_failure(data: Any) -> FailureData:
    """The `data` of error 1. Raises `InvalidMessageError`."""
    return _read(FailureData, data, "data")


def _read(model: type[_M], value: Any, name: str) -> _M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = clip(".".join(str(part) for part in (name, *first["loc"]))) + _of_tool(value, first["loc"])
        # Before the message of a check of ours pydantic names a Python class.
        raise InvalidMessageError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def _of_tool(value: Any, where: tuple[int | str, ...]) -> str:
    """The author of a tool knows it by name; only the library has counted its place."""
    match where:
        case ("tools", int(place), *_):
            tool = value["tools"][place]
            name = tool.get("name") if isinstance(tool, dict) else None
            return f" of the tool {clip(name)}" if isinstance(name, str) else ""
    return ""
