"""The definition of a tool."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, encode
from ...wire.revisions import V2025_03_26, V2025_11_25
from ...wire.v2026.headers import HeaderParam, header_params
from .params import Param, input_schema, read_arguments

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

    `run` is a coroutine function of the context. For a tool that never waits, and so cannot be cancelled, it is a plain
    function of the arguments. A call is refused without the client capabilities in `requires`. `since` and `until` are
    the first and the last revision with the feature that it shows, `until` only if there is a last one. `idle_s` and
    `ceiling_s` replace the server's dispatch deadlines; if they are functions of the arguments, the bounds of the
    parameters bound them. `asks_client` makes both longer by the time-out of a request to the client. `check` checks
    arguments together, or those of a tool with its own `input_schema`, and raises `ArgumentsError`. `inputs` are
    questions before the work, and so before a task; they need multi-round-trip requests. `host` is the tool host with
    the work. `steps` returns the number of steps for a call's checked arguments, None for an open number. Each of
    `icons` is an `Icon` of 2025-11-25. `announces` are the lists whose changes the tool announces. The description is
    for models. `exercises` (the tool's part of the protocol) and `shows` (the signs of a good client) are for people,
    in Markdown.

    `waits`: `run` is a coroutine function, so the call can be cancelled and is answered by a stream. `schema` is the
    schema of the arguments; `header_params` are the arguments that modern requests repeat in headers. Raises
    `ValueError` for `params` with headers that make clients reject the tool.
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
        object.__setattr__(self, "schema", self.input_schema or input_schema(self.params))
        object.__setattr__(self, "header_params", tuple(header_params(self.schema).values()))

    @property
    def offered_since(self) -> str:
        """The first revision with calls of it: a tool that only runs as a task needs a revision with tasks."""
        return max(self.since, V2025_11_25) if self.task_support == "required" else self.since

    def read_arguments(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for `run`. Raises `ArgumentsError`."""
        arguments = dict(sent) if self.input_schema is not None else read_arguments(self.params, sent)
        if self.check is not None:
            self.check(arguments)
        return arguments

    def is_defined(self, revision: str) -> bool:
        """True if a revision has the feature that the tool shows."""
        return self.since <= revision and (self.until is None or revision <= self.until)

    def check_revision(self, revision: str) -> None:
        """Raise `McpError` -32602 if a revision does not have the feature that the tool shows."""
        if not self.is_defined(revision):
            needs = f"revision {self.since}" if revision < self.since else f"a revision up to {self.until}"
            raise McpError(Code.INVALID_PARAMS, f"Tool {self.name} needs {needs}; this request speaks {revision}")

    def describe(self) -> Json:
        """The entry in `tools/list`, in the shape of 2025-11-25."""
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
