"""The connected tool hosts by name, and their tools: each is a `Tool` with its work at the host.

jsonschema-rs checks the JSON Schemas of a host, and values against them: its patterns cannot backtrack, so a host's
pattern and a client's argument cannot block the server.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias

import jsonschema_rs
import trio

from ...settings import Settings
from ...settings.server import Limits
from ...wire.jsonrpc import Json, clip, encode
from ...wire.toolhost import DispatchParams, ToolDefinition
from ...wire.v2026.headers import has_invalid_annotations
from ..calls.context import ToolContext
from ..catalogue.tool import ArgumentsError, Tool, ToolResult, shown

# The first change is announced at once; further ones at most ten times a second, such as from an unstable host.
_QUIET_S = 0.1


class NameTakenError(Exception):
    """The name is registered by another process."""


class _Host(NamedTuple):
    instance: str
    connection: str
    replace: Callable[[], None]
    tools: Mapping[str, Tool]


class HostedTools:
    """The registered hosts of one engine, and their tools by full name, `host__tool`, in order of registration.

    `enabled`: True if hosts may connect. `serve` calls `announce` when the list has changed.
    """

    def __init__(self, announce: Callable[[], None], *, enabled: bool) -> None:
        self.enabled = enabled
        self.tools: Mapping[str, Tool] = {}
        self._announce = announce
        self._hosts: dict[str, _Host] = {}
        self._changed = trio.Event()

    def register(
        self, name: str, instance: str, connection: str, replace: Callable[[], None], tools: Mapping[str, Tool]
    ) -> str | None:
        """Register the host on a connection with this label. Returns the label of the one that it replaces, or None.

        `replace` ends the connection when a newer one of the same process takes over: one with the same `instance`.
        Raises `NameTakenError` if another process has the name.
        """
        older = self._hosts.get(name)
        if older is not None and not hmac.compare_digest(older.instance.encode(), instance.encode()):
            raise NameTakenError
        self._hosts[name] = _Host(instance, connection, replace, tools)
        self._rebuild()
        if older is None:
            return None
        older.replace()
        return older.connection

    def update(self, name: str, tools: Mapping[str, Tool]) -> None:
        self._hosts[name] = self._hosts[name]._replace(tools=tools)
        self._rebuild()

    def release(self, name: str, connection: str) -> None:
        """A connection is over: free its name and remove its tools, unless a newer connection has them."""
        host = self._hosts.get(name)
        if host is not None and host.connection == connection:
            del self._hosts[name]
            self._rebuild()

    def _rebuild(self) -> None:
        self.tools = {name: tool for host in sorted(self._hosts) for name, tool in self._hosts[host].tools.items()}
        self._changed.set()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        shown_last: list[object] = []
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            shown: list[object] = [tool.describe() for tool in self.tools.values()]
            if shown != shown_last:
                shown_last = shown
                self._announce()
                await trio.sleep(_QUIET_S)


_LONGEST_WHY = 300
_MOST_NAMES = 5
# Stands for a value in the library's messages, which would quote it whole.
_VALUE = "the value"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaError(ValueError):
    """A schema cannot be used; the message has the reason. `limit` is the exceeded setting."""

    def __init__(self, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class Schema:
    """One schema for checks of values. Raises `SchemaError` if it cannot be used."""

    def __init__(self, schema: Json, limits: Limits) -> None:
        _check_shape(schema, limits)
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                schema, pattern_options=jsonschema_rs.RegexOptions(), retriever=_refuse, mask=_VALUE
            )
        except jsonschema_rs.ValidationError as error:
            where = ".".join(str(part) for part in error.instance_path)
            why = f"{clip(where)}: {_first_line(error)}" if where else _first_line(error)
            raise SchemaError(f"no usable JSON Schema 2020-12: {why}") from None
        except (jsonschema_rs.ReferencingError, ValueError) as error:
            raise SchemaError(f"no usable JSON Schema 2020-12: {_first_line(error)}") from None

    def fault(self, value: Any) -> str | None:
        error = next(self._validator.iter_errors(value), None)
        if error is None:
            return None
        where = ".".join(str(part) for part in error.instance_path)
        rule = _in_our_words(error.kind)
        if rule is not None:
            return f"{clip(where)}: {rule}" if where else rule
        why = clip(error.message, _LONGEST_WHY)
        return f"{clip(where)}: {why}, got {shown(error.instance)}" if where else why


def _in_our_words(kind: Any) -> str | None:
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{clip(kind.property)} is required"
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        names = ", ".join(shown(name) for name in kind.unexpected[:_MOST_NAMES])
        return f"unknown parameter {names}"
    return None


def _check_shape(schema: Json, limits: Limits) -> None:
    if schema.get("type") != "object":
        raise SchemaError('its "type" must be "object"')
    size = len(encode(schema))
    if size > limits.max_host_schema_bytes:
        most = limits.max_host_schema_bytes
        why = f"it has {size} bytes, at most {most} are allowed (max_host_schema_bytes)"
        raise SchemaError(why, "max_host_schema_bytes")
    if _depth(schema) > limits.max_host_schema_depth:
        why = f"it is deeper than {limits.max_host_schema_depth} levels (max_host_schema_depth)"
        raise SchemaError(why, "max_host_schema_depth")
    if str(schema.get("$schema", _DIALECT)).rstrip("#") != _DIALECT:
        raise SchemaError(f'its "$schema" must be {_DIALECT}, or left out')
    if has_invalid_annotations(schema):
        raise SchemaError("an x-mcp-header is no token, stands twice, or is not on a string, integer or boolean")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while containers := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {clip(uri)}, and nothing is fetched")


def _first_line(error: Exception) -> str:
    return clip(str(error).partition("\n")[0], _LONGEST_WHY)


class ToolsError(ValueError):
    """A host's tools cannot be taken; the message has the tool and the reason. `limit` is the exceeded setting."""

    def __init__(self, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class HostedTool:
    """The tool at its host: its name there, its deadlines in seconds, and the schema of its output."""

    name: str
    idle_s: float
    ceiling_s: float
    output: Schema | None

    def request(self, arguments: Mapping[str, Any]) -> Json:
        idle_ms, ceiling_ms = round(self.idle_s * 1000), round(self.ceiling_s * 1000)
        params = DispatchParams(tool=self.name, arguments=dict(arguments), idle_ms=idle_ms, ceiling_ms=ceiling_ms)
        return params.dump()


RunHosted: TypeAlias = Callable[[HostedTool, ToolContext], Awaitable[ToolResult]]


def build(
    host: str, definitions: Sequence[ToolDefinition], settings: Settings, dispatch: RunHosted
) -> Mapping[str, Tool]:
    """The tools of a host by their full names. Raises `ToolsError`."""
    most = settings.limits.max_host_tools
    if len(definitions) > most:
        why = f"{len(definitions)} tools, at most {most} are allowed (max_host_tools)"
        raise ToolsError(why, "max_host_tools")
    tools: dict[str, Tool] = {}
    for definition in definitions:
        tool = _tool(host, definition, settings, dispatch)
        if tool.name in tools:
            raise ToolsError(f"the tool {definition.name} stands twice")
        tools[tool.name] = tool
    return tools


def _tool(host: str, definition: ToolDefinition, settings: Settings, dispatch: RunHosted) -> Tool:
    arguments = _schema(definition, "inputSchema", definition.input_schema, settings)
    shape = definition.output_schema
    hosted = HostedTool(
        definition.name,
        _seconds(definition.idle_ms, settings.idle_deadline_s),
        _seconds(definition.ceiling_ms, settings.ceiling_deadline_s),
        None if shape is None else _schema(definition, "outputSchema", shape, settings),
    )

    def check(sent: Mapping[str, Any]) -> None:
        fault = arguments.fault(sent)
        if fault is not None:
            raise ArgumentsError(fault)

    async def run(context: ToolContext) -> ToolResult:
        return await dispatch(hosted, context)

    return Tool(
        name=f"{host}__{definition.name}",
        title=definition.title or definition.name,
        description=definition.description,
        run=run,
        input_schema=definition.input_schema,
        output_schema=definition.output_schema,
        annotations=None if definition.annotations is None else definition.annotations.dump(),
        icons=tuple(icon.dump() for icon in definition.icons or ()),
        idle_s=hosted.idle_s,
        ceiling_s=hosted.ceiling_s,
        check=check,
        host=host,
    )


def _seconds(chosen_ms: int | None, default_s: float) -> float:
    return default_s if chosen_ms is None else chosen_ms / 1000


def _schema(definition: ToolDefinition, member: str, schema: Json, settings: Settings) -> Schema:
    try:
        return Schema(schema, settings.limits)
    except SchemaError as error:
        raise ToolsError(f"the {member} of {definition.name}: {error}", error.limit) from None
