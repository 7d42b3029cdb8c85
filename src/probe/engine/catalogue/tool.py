"""The definition of a tool and of its parameters. Each parameter has its schema and checks its values.

An input outside its bounds gets one sentence with the parameter, the bounds and the input; it is never changed
silently. Clients of 2026-07-28 repeat a parameter with a `header` in `Mcp-Param-{header}` (streamable-http, Custom
Headers).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip, encode
from ...wire.revisions import V2025_03_26, V2025_11_25
from ...wire.v2026.headers import HeaderParam, header_params


class ArgumentsError(ValueError):
    """The arguments of a tool call are invalid; the message is the one sentence for the client."""


def shown(value: Any) -> str:
    """A client's value inside an error message: its JSON, shortened."""
    return clip(encode(value).decode())


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within bounds; 5.0 counts as 5, as in JSON Schema."""

    name: str
    low: int
    high: int
    default: int
    description: str
    required: bool = False
    header: str | None = None

    def schema(self) -> Json:
        return {
            "type": "integer",
            "minimum": self.low,
            "maximum": self.high,
            "default": self.default,
            "description": self.description,
            **_mirrored(self.header),
        }

    def read(self, value: Any) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if not whole or isinstance(value, bool) or not self.low <= value <= self.high:
            raise ArgumentsError(f"{self.name} must be an integer from {self.low} to {self.high}, got {shown(value)}")
        return int(value)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a closed set of strings."""

    name: str
    options: tuple[str, ...]
    default: str
    description: str
    required: bool = False
    header: str | None = None

    def schema(self) -> Json:
        return {
            "type": "string",
            "enum": list(self.options),
            "default": self.default,
            "description": self.description,
            **_mirrored(self.header),
        }

    def read(self, value: Any) -> str:
        if value not in self.options:
            raise ArgumentsError(f"{self.name} must be one of {', '.join(self.options)}, got {shown(value)}")
        return str(value)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    name: str
    default: bool
    description: str
    required: bool = False
    header: str | None = None

    def schema(self) -> Json:
        described = {"default": self.default, "description": self.description}
        return {"type": "boolean", **described, **_mirrored(self.header)}

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ArgumentsError(f"{self.name} must be true or false, got {shown(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """Free text, for fixtures of the official suite."""

    name: str
    description: str
    max_length: int = 1000
    default: str = ""
    required: bool = True
    header: str | None = None

    def schema(self) -> Json:
        described = {"maxLength": self.max_length, "description": self.description}
        return {"type": "string", **described, **_mirrored(self.header)}

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > self.max_length:
            raise ArgumentsError(
                f"{self.name} must be a string of at most {self.max_length} characters, got {shown(value)}"
            )
        return value


Param: TypeAlias = Integer | Choice | Boolean | Text
"""One parameter of a tool.

A call must have a `required` one; otherwise `default` is used. `header` is the header that repeats it, without
`Mcp-Param-`: a token, different from all others of its tool.
"""


def _mirrored(header: str | None) -> Json:
    return {} if header is None else {"x-mcp-header": header}


def input_schema(params: Sequence[Param]) -> Json:
    """The JSON Schema of a tool's arguments. Raises `ValueError` for headers that make clients reject the tool."""
    schema: Json = {"type": "object", "properties": {param.name: param.schema() for param in params}}
    # Read as the checks of requests read it, so that each offered header is one they see.
    if len(header_params(schema)) < sum(param.header is not None for param in params):
        raise ValueError("each header must be an RFC 9110 token that differs from the others in more than its case")
    required = [param.name for param in params if param.required]
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def read_arguments(params: Sequence[Param], sent: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for the tool, with defaults filled in. Raises `ArgumentsError` for the first invalid one."""
    known = {param.name for param in params}
    for name in sent:
        if name not in known:
            takes = f"it takes {', '.join(param.name for param in params)}" if params else "it takes none"
            raise ArgumentsError(f"unknown parameter {shown(name)}: {takes}")
    arguments: dict[str, Any] = {}
    for param in params:
        if param.name in sent:
            arguments[param.name] = param.read(sent[param.name])
        elif param.required:
            raise ArgumentsError(f"{param.name} is required")
        else:
            arguments[param.name] = param.default
    return arguments


ToolResult: TypeAlias = Json
"""A `CallToolResult` in the form of 2025-11-25."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
"""A list with changes that can be announced."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to the client: `elicitation/create`, `sampling/createMessage` or `roots/list`, with its params.

    `progress` requests progress notifications about it; clients can send these until 2025-11-25.
    """

    method: str
    params: Json
    progress: bool = False


class ToolFailureError(Exception):
    """The tool failed, and the model should read why: a result with `isError: true`."""


class WorkCancelledError(Exception):
    """The person stopped the work: a task ends `cancelled`, a call with a tool error."""


class ClientRequestError(Exception):
    """A request to the client has no result: the client refused, could not, or did not answer in time."""


class InputRequiredError(Exception):
    """The work cannot go on in this request: `result` has the questions, and the client repeats it with answers."""

    def __init__(self, result: Json) -> None:
        super().__init__("input is required")
        self.result = result


Seconds: TypeAlias = float | Callable[[Mapping[str, Any]], float | None]
"""A number of seconds, or a function of a call's checked arguments; None for the server's default."""

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
Run: TypeAlias = Callable[[Any], Awaitable[ToolResult]] | Callable[[Mapping[str, Any]], ToolResult]
"""The work of a tool: a coroutine function of its `ToolContext`, or a function of its arguments that never waits."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, complete: schema, documentation and catalogue derive from this value.

    A call is refused without the client capabilities in `requires`. `since` and `until` are the first and the last
    revision with the feature that it shows. `idle_s` and `ceiling_s` replace the server's dispatch deadlines;
    `asks_client` makes both longer by the time-out of a request to the client. `check` checks arguments together, or
    those of a tool with its own `input_schema`, and raises `ArgumentsError`. `inputs` are questions before the work,
    and so before a task; they need multi-round-trip requests. `host` is the tool host with the work. `steps` returns
    the number of steps for a call's checked arguments, None for an open number. Each of `icons` is an `Icon` of
    2025-11-25. `announces` are the lists whose changes the tool announces. The description is for models. `exercises`
    (the tool's part of the protocol) and `shows` (the signs of a good client) are for people, in Markdown.

    `waits`: the call can be cancelled and is answered by a stream. `schema` is the schema of the arguments;
    `header_params` are those that modern requests repeat in headers. Raises `ValueError` for headers that make clients
    reject the tool.
    """

    name: str
    title: str
    description: str
    run: Run
    params: tuple[Param, ...] = ()
    output_schema: Json | None = None
    annotations: Json | None = None
    icons: tuple[Json, ...] = ()
    task_support: TaskSupport = "forbidden"
    requires: tuple[str, ...] = ()
    idle_s: Seconds | None = None
    ceiling_s: Seconds | None = None
    asks_client: bool = False
    since: str = V2025_03_26
    until: str | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    input_schema: Json | None = None
    inputs: Mapping[str, Ask] = field(default_factory=dict)
    host: str | None = None
    steps: Callable[[Mapping[str, Any]], float | None] | None = None
    announces: tuple[ListKind, ...] = ()
    exercises: str = ""
    shows: str = ""
    waits: bool = field(init=False, repr=False, compare=False)
    schema: Json = field(init=False, repr=False, compare=False)
    header_params: tuple[HeaderParam, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "waits", inspect.iscoroutinefunction(self.run))
        assert self.waits or self.task_support == "forbidden", f"{self.name} never waits, so it is no task"
        object.__setattr__(self, "schema", self.input_schema or input_schema(self.params))
        object.__setattr__(self, "header_params", tuple(header_params(self.schema).values()))

    @property
    def offered_since(self) -> str:
        """The first revision with calls of it: a tool that only runs as a task needs a revision with tasks."""
        return max(self.since, V2025_11_25) if self.task_support == "required" else self.since

    def run_waiting(self, context: Any) -> Awaitable[ToolResult]:
        """Run a tool that `waits` with its `ToolContext`."""
        return cast("Awaitable[ToolResult]", self.run(context))

    def run_at_once(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Run a tool that never waits, and so cannot be cancelled."""
        return cast("ToolResult", self.run(arguments))

    def read_arguments(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(sent) if self.input_schema is not None else read_arguments(self.params, sent)
        if self.check is not None:
            self.check(arguments)
        return arguments

    def is_defined(self, revision: str) -> bool:
        return self.since <= revision and (self.until is None or revision <= self.until)

    def check_revision(self, revision: str) -> None:
        """Raise `McpError` -32602 if a revision does not have the feature that the tool shows."""
        if not self.is_defined(revision):
            needs = f"revision {self.since}" if revision < self.since else f"a revision up to {self.until}"
            raise McpError(Code.INVALID_PARAMS, f"Tool {self.name} needs {needs}; this request speaks {revision}")

    def describe(self) -> Json:
        entry: Json = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema,
        }
        if self.output_schema is not None:
            entry["outputSchema"] = self.output_schema
        if self.annotations is not None:
            entry["annotations"] = self.annotations
        if self.icons:
            entry["icons"] = [*self.icons]
        if self.task_support != "forbidden":
            entry["execution"] = {"taskSupport": self.task_support}
        return entry


def text(value: str) -> Json:
    """A text content block."""
    return {"type": "text", "text": value}


def content(blocks: Sequence[Json]) -> ToolResult:
    """A result of content blocks only."""
    return {"content": list(blocks)}


def structured(value: Json) -> ToolResult:
    """A structured result, and the same JSON as text, as in 2025-11-25 server/tools."""
    return {"content": [text(encode(value).decode())], "structuredContent": value}


def failure(message: str) -> ToolResult:
    """A tool error for the model."""
    return {"content": [text(message)], "isError": True}
