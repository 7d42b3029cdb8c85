"""The definition of a tool. It may use its `ToolContext`, and nothing of sessions, streams or transports."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from ...log.context import Recorder
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, encode
from ...wire.revisions import V2025_03_26, V2025_11_25
from ...wire.v2026.header_params import HeaderParam, header_params
from .params import Param, input_schema, read_arguments

ToolResult: TypeAlias = Json
"""A `CallToolResult` in its 2025-11-25 shape."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
"""A list whose change can be announced."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to the client: `elicitation/create`, `sampling/createMessage` or `roots/list`, with its params.

    `progress` asks for progress notifications about it, which a client can send until 2025-11-25.
    """

    method: str
    params: Json
    progress: bool = False


class ToolFailureError(Exception):
    """The tool failed in a way the model should read: a result with `isError: true`."""


class WorkCancelledError(Exception):
    """The work gave up because the person said so: a task ends `cancelled`, a call in a tool error."""


class ClientRequestError(Exception):
    """A request to the client brought no result: it refused, could not, or did not answer in time."""


class InputRequiredError(Exception):
    """The work cannot go on in this request: `result` asks the client to send it again with the answers."""

    def __init__(self, result: Json) -> None:
        super().__init__("input is required")
        self.result = result


class ToolContext(Protocol):
    """Everything a running tool can do.

    Async methods are checkpoints and end with `trio.Cancelled` on cancellation; the others never wait.

    Where the revision has multi-round-trip requests, a call that asks its client ends there, and the client sends it
    again with the answers: the tool then runs from its beginning, and each question that has its answer returns at
    once. So what precedes a question in a tool that is no task must bear being done twice. `key` names a question in
    what the client sees, and must be new within the run; a question without one is given one.
    """

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Checked arguments, defaults filled in."""

    @property
    def answers(self) -> Mapping[str, Json]:
        """The client's results for the tool's `inputs`, by key."""

    @property
    def resumed(self) -> bool:
        """Whether the client sent back the state that an earlier round of this call had given it."""

    def declares(self, method: str) -> bool:
        """Whether the client declared that it answers a request of this method."""

    @property
    def recorder(self) -> Recorder:
        """The recorder of this call in the event log."""

    @property
    def ended_by(self) -> tuple[str, str | None] | None:
        """The cause (a `core.call.Cause`) and the reason of the work's cancellation; None while there is none."""

    @property
    def notified(self) -> bool:
        """Whether the client sent a progress token, so that progress reaches it."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass. Consecutive sleeps do not drift: each ends at the sum of them."""

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Step `progress` of `total` is done. Never waits, never raises; must increase.

        Returns whether it is a valid report: one in time, of finite numbers, and more than the one before.
        """

    def set_status(self, message: str) -> None:
        """The task's `statusMessage`; nothing outside a task."""

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """A `notifications/message`, if the client's level lets it through."""

    async def elicit(self, message: str, schema: Json, key: str | None = None) -> Json:
        """Ask the person by a form: an `ElicitResult`. Raises `ClientRequestError`."""

    async def elicit_url(self, message: str, key: str | None = None) -> Json:
        """Ask the person to open and confirm a page of this server: an `ElicitResult`.

        After `accept` it returns once the page has been confirmed. Raises `ClientRequestError`, also when it was not
        confirmed within the time that a person is given.
        """

    async def sample(self, params: Json, key: str | None = None, *, progress: bool = False) -> Json:
        """Ask the client's model: a `CreateMessageResult`. Raises `ClientRequestError`.

        `progress` asks for progress notifications about it as well; they stand in the event log.
        """

    async def list_roots(self, key: str | None = None) -> Json:
        """Ask for the client's roots: a `ListRootsResult`. Raises `ClientRequestError`."""

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Ask several things, together where the revision can; the results by key. Raises `ClientRequestError`."""

    async def ping(self) -> None:
        """Ask the client whether it is there. Raises `ClientRequestError`."""

    def announce(self, changed: ListKind) -> None:
        """Tell that a list has changed: to this client's session, or to every subscription that asked for it."""

    def stop_comments(self) -> None:
        """Send no keep-alive comments on the response of this call, where it has a stream of its own."""

    def hang_up(self) -> None:
        """Close the connection of the response without ending its stream, so that the client must resume it."""


Seconds: TypeAlias = float | Callable[[Mapping[str, Any]], float | None]
"""A number of seconds, or how the checked arguments of a call say it: None for the server's own."""

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]
Run: TypeAlias = Callable[[ToolContext], Awaitable[ToolResult]] | Callable[[Mapping[str, Any]], ToolResult]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, complete: schema, documentation and catalogue derive from this value.

    `run` is a coroutine function of the context, or, for a tool that never waits and so cannot be cancelled, a plain
    function of the arguments. `requires` names client capabilities without which a call is refused, `since` and `until`
    the first and the last revision that define what the tool does, where one is known to be the last. `idle_s` and
    `ceiling_s` replace the server's dispatch deadlines; `asks_client` makes both longer by what a request to the client
    may take. Where the arguments say them, the bounds of the parameters are what the tool may ask for. `check` judges
    arguments together, or those of an `input_schema` of its own, and raises `ArgumentsError`. `inputs` are asked before
    the work begins, and so before there is a task; only multi-round-trip requests can. `host` is the tool host that
    does the work. `steps` tells, of a tool that counts steps, how many a call has by its checked arguments, None for an
    open number. `icons` are each an `Icon` of 2025-11-25. `announces` names the lists whose change the tool announces.
    The description is for models; `exercises` tells people what of the protocol the tool is about, and `shows` what a
    good client shows of it, both in Markdown.

    `waits`: `run` is a coroutine function, so that its call can be cancelled and is answered by a stream. `schema` is
    that of the arguments, and `header_params` are those of them that modern requests repeat in headers. Raises
    `ValueError` for `params` whose headers would make clients reject the tool.
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
        """Compute what each call asks for."""
        object.__setattr__(self, "waits", inspect.iscoroutinefunction(self.run))
        object.__setattr__(self, "schema", self.input_schema or input_schema(self.params))
        object.__setattr__(self, "header_params", tuple(header_params(self.schema).values()))

    @property
    def offered_since(self) -> str:
        """The first revision in which it can be called: a tool that only runs as a task needs one that has tasks."""
        return max(self.since, V2025_11_25) if self.task_support == "required" else self.since

    def read_arguments(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments `run` sees. Raises `ArgumentsError`."""
        arguments = dict(sent) if self.input_schema is not None else read_arguments(self.params, sent)
        if self.check is not None:
            self.check(arguments)
        return arguments

    def is_defined(self, revision: str) -> bool:
        """Whether a revision defines what the tool does."""
        return self.since <= revision and (self.until is None or revision <= self.until)

    def check_revision(self, revision: str) -> None:
        """Raise `McpError` -32602 where a revision does not define what the tool does."""
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
    """A result of content blocks alone."""
    return {"content": list(blocks)}


def structured(value: Json) -> ToolResult:
    """A structured result with the same JSON as text beside it, as 2025-11-25 server/tools asks for."""
    return {"content": [text(encode(value).decode())], "structuredContent": value}


def failure(message: str) -> ToolResult:
    """A tool error that a model can read."""
    return {"content": [text(message)], "isError": True}
