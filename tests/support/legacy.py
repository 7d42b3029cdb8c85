"""A legacy client in memory. Every message it gets from the server is checked against the schema of its revision."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from .http import Answer, Event, exchange
from .schemas import schema

HEADERS = {
    "host": "127.0.0.1:8000",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
Respond = Callable[[dict[str, Any]], dict[str, Any] | None]
"""The client's result for a request of the server; None: it never answers."""
ALL_CAPABILITIES: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}


class RpcError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data = error.get("data")


class Legacy:
    """One session. `notes` collects every message from the server except the awaited responses, in order of arrival."""

    def __init__(self, app: Any, target: str) -> None:
        self.app = app
        self.target = target
        self.revision = "2025-11-25"
        self.headers = dict(HEADERS)
        self.notes: list[dict[str, Any]] = []
        self.ids = count(1)
        self.methods: dict[Any, tuple[str, bool]] = {}

    async def initialize(
        self, revision: str = "2025-11-25", capabilities: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The handshake; returns the result."""
        params = {
            "protocolVersion": revision,
            "capabilities": ALL_CAPABILITIES if capabilities is None else capabilities,
            "clientInfo": {"name": "test-client", "version": "1.2.3"},
        }
        self.revision = revision
        request = self.request("initialize", params)
        async with self.post(request) as answer:
            assert answer.status == 200, await answer.body()
            result = self.result(await answer.json())
            self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        self.revision = result["protocolVersion"]
        self.headers["mcp-protocol-version"] = self.revision
        await self.notify("notifications/initialized")
        return result

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        id: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A request message with a fresh id unless one is given; `meta` is its `_meta`."""
        if meta:
            params = {**(params or {}), "_meta": meta}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self.ids) if id is None else id, "method": method}
        if params is not None:
            message["params"] = params
        self.methods[message["id"]] = (method, "task" in (params or {}) and method == "tools/call")
        return message

    @asynccontextmanager
    async def post(self, message: Any, headers: dict[str, str] | None = None) -> AsyncIterator[Answer]:
        """POST any JSON value."""
        sent = {**self.headers, **(headers or {})}
        async with exchange(self.app, "POST", self.target, sent, json.dumps(message).encode()) as answer:
            yield answer

    @asynccontextmanager
    async def get(self, last_event_id: str | None = None) -> AsyncIterator[Answer]:
        """Open the standalone stream, or resume another."""
        headers = {**self.headers, "accept": "text/event-stream"}
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        async with exchange(self.app, "GET", self.target, headers) as answer:
            yield answer

    async def delete(self) -> int:
        """End the session; returns the status."""
        async with exchange(self.app, "DELETE", self.target, self.headers) as answer:
            return answer.status

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification; it must be accepted."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        async with self.post(message if params is None else {**message, "params": params}) as answer:
            assert (answer.status, await answer.body()) == (202, b"")

    async def cancel(self, id: Any, reason: str | None = None) -> None:
        """Send `notifications/cancelled`."""
        await self.notify(
            "notifications/cancelled", {"requestId": id, **({} if reason is None else {"reason": reason})}
        )

    async def answer(self, id: Any, result: dict[str, Any]) -> None:
        """Answer a request of the server."""
        async with self.post({"jsonrpc": "2.0", "id": id, "result": result}) as answer:
            assert answer.status == 202

    def check(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message from the server, checked against the schema."""
        method, task = self.methods.get(message.get("id"), (None, False)) if "method" not in message else (None, False)
        schema(self.revision).check_message(message, method=method, task=task)
        return message

    def result(self, message: dict[str, Any]) -> dict[str, Any]:
        """The result of a response. Raises `RpcError`."""
        self.check(message)
        if "error" in message:
            raise RpcError(message["error"])
        return dict(message["result"])

    async def read(self, answer: Answer, respond: Respond = lambda request: None) -> list[Event]:
        """Every event with a message, to the end of the stream; notes what is no response, answers requests."""
        events = []
        async for event in answer.events():
            if event.data:
                events.append(event)
                await self.hear(event, respond)
        return events

    async def hear(self, event: Event, respond: Respond) -> None:
        """Take one message: check it, note it unless it is a response, answer it if it is a request."""
        message = self.check(event.message)
        if "method" in message:
            self.notes.append(message)
            result = respond(message) if "id" in message else None
            if result is not None:
                await self.answer(message["id"], result)

    async def call(self, method: str, params: dict[str, Any] | None = None, id: Any = None) -> dict[str, Any]:
        """Send a request and wait for its result. Raises `RpcError`, and `AssertionError` when none comes."""
        request = self.request(method, params, id)
        async with self.post(request) as answer:
            assert answer.status == 200, (answer.status, await answer.body())
            if answer.headers["content-type"] == "application/json":
                messages = [await answer.json()]
            else:
                messages = [event.message for event in await self.read(answer)]
        responses = [message for message in messages if "method" not in message]
        assert len(responses) == 1, "exactly one response ends the stream"
        assert messages[-1] == responses[0], "nothing follows the response"
        # Not inside the block: it would come out of the exchange's nursery as an exception group.
        return self.result(responses[0])

    async def tool(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """`tools/call`; the member `meta` is its `_meta`, others are added to the params."""
        meta = params.pop("meta", None)
        params = {"name": name, "arguments": dict(arguments or {}), **params}
        return await self.call("tools/call", {**params, "_meta": meta} if meta else params)

    def noted(self, method: str) -> list[dict[str, Any]]:
        """The params of the notes of one method."""
        return [note["params"] for note in self.notes if note["method"] == method]

    async def listen(
        self,
        respond: Respond = lambda request: None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read the GET stream for good, answering the server's requests."""
        async with self.get() as answer:
            task_status.started()
            async for event in answer.events():
                if event.data:
                    await self.hear(event, respond)
