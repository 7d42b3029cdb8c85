"""A tool: a handler with the schemas of its arguments and result, made from its annotations."""

from __future__ import annotations

import dataclasses
import inspect
import json
import secrets
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, get_args, get_origin, overload

import trio
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError, to_json

from .. import __version__
from ..wire.jsonrpc import Json
from ..wire.toolhost import VERSION, RegisterParams, ToolDefinition, UpdateParams
from .context import ToolContext

_NOT_NAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)

_MAPPINGS = (dict, Mapping)
_T = typing.TypeVar("_T")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class MismatchError(ValueError):
    """A value does not fit its annotation; the message names where and why in one sentence."""


class _Plain(GenerateJsonSchema):
    """Makes no titles: they only repeat a name, and every tools/list would carry them."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Arguments:
    """The arguments of one handler. Raises `TypeError` for an unsupported signature."""

    def __init__(self, handler: Callable[..., Any], hints: Mapping[str, Any]) -> None:
        self.context: str | None = None
        """The name of the parameter for the context."""
        self._names: list[str] = []
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(handler).parameters.values():
            annotation = _annotation(parameter, hints)
            if _is_context(annotation):
                self._take_context(parameter.name)
                continue
            # pydantic refuses some names, such as `schema` or `_x`.
            fields[f"p{len(self._names)}"] = (annotation, _field(parameter))
            self._names.append(parameter.name)
        self._model = _understood(lambda: _model(fields))
        self.schema: Json = _understood(lambda: _input_schema(self._model))
        _check_defaults(handler, hints, set(self._names))

    def read(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """JSON values as the handler's parameters, defaults filled in. Raises `MismatchError`."""
        try:
            values = self._model.model_validate(sent)
        except ValidationError as error:
            raise MismatchError(_first(error)) from None
        return {name: getattr(values, f"p{index}") for index, name in enumerate(self._names)}

    def _take_context(self, name: str) -> None:
        if self.context is not None:
            raise TypeError(f"{self.context} and {name} are both a ToolContext; a handler has one")
        self.context = name


class Output:
    """The result type of one handler. Raises `TypeError` for an annotation that is neither text nor a JSON object."""

    def __init__(self, hints: Mapping[str, Any]) -> None:
        if "return" not in hints:
            raise TypeError("the return type has no annotation")
        annotation = hints["return"]
        kind = _kind(annotation)
        self._text = kind is str
        self._adapter: TypeAdapter[Any] = _understood(lambda: TypeAdapter(annotation))
        self.schema: Json | None = None
        """None for text and for a `dict`."""
        if not self._text and kind not in _MAPPINGS:
            self.schema = _understood(lambda: _output_schema(self._adapter))

    def dump(self, value: Any) -> Json:
        """Raises `MismatchError`."""
        try:
            # Lenient, a number would become text.
            valid = self._adapter.validate_python(value, strict=True if self._text else None)
            # Dataclasses are made without validation; this checks them as they are written.
            dumped = self._adapter.dump_python(valid, mode="json", by_alias=True, warnings="error")
        except ValidationError as error:
            raise MismatchError(_first(error)) from None
        except PydanticSerializationError as error:
            raise MismatchError(" ".join(str(error).split())) from None
        if _has_no_number(dumped):
            raise MismatchError("NaN and infinity are no JSON")
        return {"text": dumped} if self._text else {"output": dumped}


def _has_no_number(value: Any) -> bool:
    """Raises `ValueError` for text with half of a surrogate pair."""
    written = to_json(value, inf_nan_mode="constants")
    if b"NaN" not in written and b"Infinity" not in written:
        return False
    try:
        # The words may be text; this is the slow way to know.
        json.dumps(value, allow_nan=False)
    except ValueError:
        return True
    return False


def hints_of(handler: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a handler, evaluated. Raises `TypeError` where they cannot be."""
    try:
        return typing.get_type_hints(handler, include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation cannot be read: {error}; it must be a name of the module") from None


def _annotation(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    if parameter.kind in _NOT_NAMED:
        raise TypeError(f"{parameter} cannot be an argument: arguments are passed by name, one for each parameter")
    if parameter.name not in hints:
        raise TypeError(f"the parameter {parameter.name} has no annotation, so there is no schema for it")
    return hints[parameter.name]


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) in {typing.Union, types.UnionType}:
        return set(get_args(annotation)) == {ToolContext, type(None)}
    return annotation is ToolContext


def _field(parameter: inspect.Parameter) -> Any:
    if isinstance(parameter.default, FieldInfo):
        raise TypeError(
            f"the default of {parameter.name} is a Field(), which a direct call would pass on; "
            f"write Annotated[…, Field(…)] and a plain default"
        )
    default = ... if parameter.default is parameter.empty else parameter.default
    name = parameter.name
    return Field(default, alias=name, validation_alias=name, serialization_alias=name)


def _model(fields: dict[str, Any]) -> type[BaseModel]:
    return create_model("Arguments", __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)


def _input_schema(model: type[BaseModel]) -> Json:
    schema = model.model_json_schema(schema_generator=_Plain)
    schema.pop("title", None)
    return {"type": "object", **schema}


def _output_schema(adapter: TypeAdapter[Any]) -> Json:
    schema = adapter.json_schema(mode="serialization", schema_generator=_Plain)
    # The schema of a recursive type is a reference to its definition.
    reference = str(schema.get("$ref", ""))
    target = schema["$defs"][reference.removeprefix("#/$defs/")] if reference else schema
    if target.get("type") != "object":
        raise TypeError("a result is a JSON object or text; this type is written as something else")
    return {"type": "object", **schema}


def _kind(annotation: Any) -> Any:
    """The class of a return annotation. Raises `TypeError` if it cannot be a result."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    kind = get_origin(annotation) or annotation
    if kind in _MAPPINGS and get_args(annotation)[:1] in {(), (str,)}:
        return kind
    # Before Python 3.12 pydantic wants the TypedDict of typing_extensions.
    named = isinstance(kind, type) and (issubclass(kind, BaseModel) or hasattr(kind, "__total__"))
    if kind is str or named or dataclasses.is_dataclass(kind):
        return kind
    shown = inspect.formatannotation(annotation)
    raise TypeError(
        f"a handler returns str, dict[str, …], a pydantic model, a dataclass or a TypedDict, so that the result is "
        f"text or a JSON object; not {shown}"
    )


def _check_defaults(handler: Callable[..., Any], hints: Mapping[str, Any], names: set[str]) -> None:
    for name, parameter in inspect.signature(handler).parameters.items():
        if name not in names or parameter.default is parameter.empty:
            continue
        try:
            TypeAdapter(hints[name]).validate_python(parameter.default)
        except ValidationError as error:
            raise TypeError(f"the default of {name} does not fit its annotation: {_first(error)}") from None


def _understood(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except (PydanticUserError, PydanticSchemaGenerationError, SchemaError) as error:
        raise TypeError(f"an annotation has no JSON schema: {str(error).splitlines()[0]}") from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


class Tool(Generic[_P, _R]):
    """One tool of a host, made by `@tool`. Calling it calls the handler, with no server and no checks."""

    def __init__(
        self, handler: Callable[_P, _R], definition: ToolDefinition, arguments: Arguments, output: Output
    ) -> None:
        self.definition = definition
        """The tool as `host.register` announces it."""
        self.handler = handler
        self.waits = inspect.iscoroutinefunction(handler)
        """True if the handler is `async`; else it runs in a thread."""
        self._arguments = arguments
        self._output = output
        self.__doc__ = handler.__doc__

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def bind(self, sent: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Raises `MismatchError`."""
        arguments = self._arguments.read(sent)
        if self._arguments.context is not None:
            arguments[self._arguments.context] = context
        handler: Callable[..., Any] = self.handler
        return lambda: handler(**arguments)

    def dump(self, value: Any) -> Json:
        """Raises `MismatchError`."""
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


class HostOffer:
    """A name, and the tools under it. Raises what `Host` raises."""

    def __init__(self, name: str, version: str | None, tools: Iterable[Tool[..., Any]]) -> None:
        self.name = name
        self.tools = by_name(tools)
        self.changing = trio.Lock()
        """Held during a registration, so the tools do not change meanwhile."""
        self._version = version
        self._instance = ""
        self.begin()
        self.registration()

    def begin(self) -> None:
        """Forked processes must not replace each other."""
        # A process with this id may take over the name, so it is as hard to guess as a key.
        self._instance = secrets.token_urlsafe(32)

    def registration(self) -> Json:
        """The params of `host.register`. Raises `ValueError` where the name or the version cannot be one."""
        try:
            return RegisterParams(
                protocol=VERSION,
                name=self.name,
                instance=self._instance,
                version=self._version,
                library=f"mcp-probe/{__version__}",
                tools=[tool.definition for tool in self.tools.values()],
            ).dump()
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise ValueError(f"the {first['loc'][0]} of the tool host {self.name!r}: {first['msg']}") from None


def update(tools: Iterable[Tool[..., Any]]) -> Json:
    """The params of `host.update`."""
    return UpdateParams(tools=[tool.definition for tool in tools]).dump()


def by_name(tools: Iterable[Tool[..., Any]]) -> dict[str, Tool[..., Any]]:
    """Raises `TypeError` for what is no tool, `ValueError` for two of the same name."""
    found: dict[str, Tool[..., Any]] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            raise TypeError(f"{tool!r} is no tool; decorate the function with @tool")
        if tool.name in found:
            raise ValueError(f"two tools have the name {tool.name!r}")
        found[tool.name] = tool
    return found
