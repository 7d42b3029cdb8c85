"""A tool of a tool host in the engine: an ordinary `Tool`, with its work at the host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...settings import Settings
from ...wire.jsonrpc import Json
from ...wire.toolhost import DispatchParams, ToolDefinition
from ..catalogue.params import ArgumentsError
from ..catalogue.tool import Tool, ToolContext, ToolResult
from .schemas import Schema, SchemaError


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
        """The params of `tool.dispatch`."""
        idle_ms, ceiling_ms = round(self.idle_s * 1000), round(self.ceiling_s * 1000)
        params = DispatchParams(tool=self.name, arguments=dict(arguments), idle_ms=idle_ms, ceiling_ms=ceiling_ms)
        return params.dump()


RunHosted: TypeAlias = Callable[[HostedTool, ToolContext], Awaitable[ToolResult]]
"""Has the host run a tool."""


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
