"""`@tool`: a typed function becomes a tool that a host offers, and stays a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pydantic import ValidationError

from ..wire.jsonrpc import Json
from ..wire.toolhost import ToolDefinition
from .context import ToolContext
from .schemas import Arguments, Output, hints_of

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Tool(Generic[_P, _R]):
    """One tool of a host, made by `@tool`. Calling it calls the handler, with no server and no checks."""

    def __init__(
        self, handler: Callable[_P, _R], definition: ToolDefinition, arguments: Arguments, output: Output
    ) -> None:
        self.definition = definition
        """The tool as `host.register` announces it."""
        self.handler = handler
        self.waits = inspect.iscoroutinefunction(handler)
        """Whether the handler is `async`; else it runs in a thread."""
        self._arguments = arguments
        self._output = output
        self.__doc__ = handler.__doc__

    @property
    def name(self) -> str:
        """The host's own name for it."""
        return self.definition.name

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the handler."""
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        """The name, for error messages."""
        return f"<Tool {self.name}>"

    def bind(self, sent: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """A call of the handler with these JSON arguments. Raises `MismatchError`."""
        arguments = self._arguments.read(sent)
        if self._arguments.context is not None:
            arguments[self._arguments.context] = context
        handler: Callable[..., Any] = self.handler
        return lambda: handler(**arguments)

    def dump(self, value: Any) -> Json:
        """Make the value that the handler returned the result of a dispatch. Raises `MismatchError`."""
        return self._output.dump(value)


@overload
def tool(handler: Callable[_P, _R], /) -> Tool[_P, _R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] | None = None,
    idle_s: float | None = None,
    ceiling_s: float | None = None,
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    handler: Callable[_P, _R] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    annotations: Mapping[str, Any] | None = None,
    icons: Sequence[Mapping[str, Any]] | None = None,
    idle_s: float | None = None,
    ceiling_s: float | None = None,
) -> Tool[_P, _R] | Callable[[Callable[_P, _R]], Tool[_P, _R]]:
    """Make a tool of a typed function: `@tool`, or `@tool(title="…", idle_s=60)`.

    Its parameters are the arguments, their annotations (`Annotated[int, Field(ge=1)]` for bounds and descriptions) the
    input schema; a parameter annotated `ToolContext | None` is given the context and is no argument. The return
    annotation is the output schema for a pydantic model, a dataclass or a TypedDict; `dict[str, …]` has none, and `str`
    is text. The docstring is the description. `async def` runs in trio, `def` in a thread.

    `annotations` are MCP's hints (`{"readOnlyHint": True}`). `icons` are MCP's, too: at most 8, each with `src`, and
    with `mimeType`, `sizes` and `theme` where they are known (docs/tool-hosts.md has the bounds). `idle_s` and
    `ceiling_s` (seconds, 0.1 to 3600) replace the server's deadlines for this tool. Raises `TypeError` for a signature
    that cannot be a tool, `ValueError` for an option out of its bounds.
    """

    def make(handler: Callable[_P, _R]) -> Tool[_P, _R]:
        arguments, output = _signature(handler)
        options = {
            "name": handler.__name__ if name is None else name,
            "title": title,
            "description": inspect.getdoc(handler) or "",
            "input_schema": arguments.schema,
            "output_schema": output.schema,
            "annotations": None if annotations is None else dict(annotations),
            "icons": None if icons is None else [dict(icon) for icon in icons],
            "idle_ms": _milliseconds(idle_s),
            "ceiling_ms": _milliseconds(ceiling_s),
        }
        return Tool(handler, _definition(options), arguments, output)

    return make if handler is None else make(handler)


def _signature(handler: Callable[..., Any]) -> tuple[Arguments, Output]:
    if not inspect.isfunction(handler) or inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise TypeError(f"a tool is made of a function with `def` or `async def`, not of {handler!r}")
    try:
        hints = hints_of(handler)
        return Arguments(handler, hints), Output(hints)
    except TypeError as error:
        raise TypeError(f"{handler.__qualname__} cannot be a tool: {error}") from None


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _definition(options: Mapping[str, Any]) -> ToolDefinition:
    try:
        return ToolDefinition.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"the tool {options['name']!r} cannot be announced: {where}: {first['msg']}") from None
