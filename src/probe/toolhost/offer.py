"""The offer of a host: its name and its tools, as it sends them to the server."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import trio
from pydantic import ValidationError

from .. import __version__
from ..wire.jsonrpc import Json
from ..wire.toolhost import VERSION, RegisterParams, UpdateParams
from .tool import Tool


class HostOffer:
    """A name, and the tools under it. Raises what `Host` raises."""

    def __init__(self, name: str, version: str | None, tools: Iterable[Tool[..., Any]]) -> None:
        self.name = name
        self.tools = by_name(tools)
        self.changing = trio.Lock()
        """Held while the tools are registered, so that they do not change meanwhile."""
        self._version = version
        self._instance = ""
        self.begin()
        self.registration()

    def begin(self) -> None:
        """Be an instance of its own from now on: processes that are forked from one must not replace each other."""
        # A process that has it may take the name over, so it is as hard to guess as a key.
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
