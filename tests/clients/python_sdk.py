"""What the tests of the official Python SDK 2.3.0 share: where the server is, and who sits at the client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx2
import mcp_types as types
import trio
from mcp.client.streamable_http import streamable_http_client

from ..support.until import until

BOUND_S = 30.0
Json: TypeAlias = dict[str, Any]


@dataclass
class Endpoint:
    """Where the server is, and what it tells about itself."""

    url: str
    http: httpx2.AsyncClient
    events: Callable[[], list[Json]]
    records: Callable[[], list[Json]]

    def transport(self, tools: str = "all") -> AbstractAsyncContextManager[Any]:
        return streamable_http_client(f"{self.url}?tools={tools}", http_client=self.http)

    async def settled_record(self) -> Json:
        """The newest call record, once that call is over."""
        await until(lambda: self.records()[0]["outcome"])
        return self.records()[0]


@dataclass
class Person:
    """Who sits at the client: what is asked is kept, what is to be answered is set beforehand."""

    answer: types.ElicitResult | types.ErrorData = field(default_factory=lambda: types.ElicitResult(action="decline"))
    text: str | None = "old pond"
    asked: list[Any] = field(default_factory=list)
    logged: list[tuple[str, Any]] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    heard: trio.Event = field(default_factory=trio.Event)

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params)
        return self.answer

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> Any:
        self.asked.append(params)
        if self.text is None:
            return types.ErrorData(code=-1, message="User rejected sampling request")
        content = types.TextContent(type="text", text=self.text)
        return types.CreateMessageResult(role="assistant", content=content, model="test", stop_reason="endTurn")

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data))

    async def note(self, message: Any) -> None:
        self.messages.append(message)
        self.heard.set()

    def noted(self, kind: type) -> list[Any]:
        return [message.params for message in self.messages if isinstance(message, kind)]

    def callbacks(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "logging_callback": self.log,
            "message_handler": self.note,
        }


def text(result: types.CallToolResult) -> str:
    """The text of the first block."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text
