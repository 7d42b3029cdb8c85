"""Tool parameters: bounded numbers and closed choices. Each has its schema and checks its values.

An input outside its bounds gets one sentence with the parameter, the bounds and the input; it is never changed
silently.

Clients of 2026-07-28 repeat a parameter with a `header` in `Mcp-Param-{header}` (streamable-http, Custom Headers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...wire.jsonrpc import Json, clip, encode
from ...wire.v2026.headers import header_params


class ArgumentsError(ValueError):
    """The arguments of a tool call are invalid; the message is the one sentence for the client."""


class Param(Protocol):
    """One parameter of a tool."""

    @property
    def name(self) -> str:
        """The name on the wire."""

    @property
    def required(self) -> bool:
        """True if a call must have it; otherwise `default` is used."""

    @property
    def default(self) -> Any:
        """The value for a call without it."""

    @property
    def header(self) -> str | None:
        """The header that repeats it, without `Mcp-Param-`: a token, different from all others of its tool; or None."""

    def schema(self) -> Json:
        """Its JSON Schema."""

    def read(self, value: Any) -> Any:
        """The value for the tool. Raises `ArgumentsError`."""


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
        """Its JSON Schema."""
        return {
            "type": "integer",
            "minimum": self.low,
            "maximum": self.high,
            "default": self.default,
            "description": self.description,
            **_mirrored(self.header),
        }

    def read(self, value: Any) -> int:
        """The number. Raises `ArgumentsError`."""
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
        """Its JSON Schema."""
        return {
            "type": "string",
            "enum": list(self.options),
            "default": self.default,
            "description": self.description,
            **_mirrored(self.header),
        }

    def read(self, value: Any) -> str:
        """The option. Raises `ArgumentsError`."""
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
        """Its JSON Schema."""
        described = {"default": self.default, "description": self.description}
        return {"type": "boolean", **described, **_mirrored(self.header)}

    def read(self, value: Any) -> bool:
        """The value. Raises `ArgumentsError`."""
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
        """Its JSON Schema."""
        described = {"maxLength": self.max_length, "description": self.description}
        return {"type": "string", **described, **_mirrored(self.header)}

    def read(self, value: Any) -> str:
        """The text. Raises `ArgumentsError`."""
        if not isinstance(value, str) or len(value) > self.max_length:
            raise ArgumentsError(
                f"{self.name} must be a string of at most {self.max_length} characters, got {shown(value)}"
            )
        return value


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
    return {param.name: _read(param, sent) for param in params}


def _read(param: Param, sent: Mapping[str, Any]) -> Any:
    if param.name in sent:
        return param.read(sent[param.name])
    if param.required:
        raise ArgumentsError(f"{param.name} is required")
    return param.default
