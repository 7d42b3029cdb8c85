"""A modern client in memory: it says everything in each request. Every message it gets is checked by the schemas."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from .http import Answer, Event, exchange, http_scope
from .legacy import ALL_CAPABILITIES, RpcError
from .schemas import schema

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
TASKS = PREFIX + "tasks"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
WITH_TASKS = {**ALL_CAPABILITIES, "extensions": {TASKS: {}}}
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
_RESULTS = {"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult"}

Answers = Callable[[str, dict[str, Any]], dict[str, Any]]
"""The client's result for an input request, given its key and the request."""


class Modern:
    """One client. `notes` collects every notification, in order of arrival, whatever the request."""

    def __init__(self, app: Any, target: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.app = app
        self.target = target
        self.capabilities = dict(WITH_TASKS if capabilities is None else capabilities)
        self.notes: list[dict[str, Any]] = []
        self.ids = count(1)

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        id: Any = None,
    ) -> dict[str, Any]:
        """A request message with a fresh id unless one is given; `meta` is added to what every request says."""
        said = {
            PREFIX + "protocolVersion": VERSION,
            PREFIX + "clientInfo": {"name": "test-client", "version": "1.2.3"},
            PREFIX + "clientCapabilities": self.capabilities,
            **(meta or {}),
        }
        id = next(self.ids) if id is None else id
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": said}}

    @staticmethod
    def headers(message: Any) -> dict[str, str]:
        """The headers that mirror a message."""
        headers = {
            "host": "127.0.0.1:8000",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": message.get("method", ""),
        }
        member = "taskId" if message["method"] in _TASK_METHODS else _NAMED.get(message["method"])
        if member is not None:
            headers["mcp-name"] = str(message["params"][member])
        return headers

    @asynccontextmanager
    async def post(
        self, message: Any, headers: Mapping[str, str | None] | None = None, *, gone: trio.Event | None = None
    ) -> AsyncIterator[Answer]:
        """POST a message; `headers` replace those that mirror it, None leaves one out. `gone` is as in `exchange`."""
        sent = {**self.headers(message), **(headers or {})}
        kept = {name: value for name, value in sent.items() if value is not None}
        body = json.dumps(message).encode()
        async with exchange(self.app, "POST", self.target, kept, body, gone=gone) as answer:
            yield answer

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        id: Any = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its result. Raises `RpcError`, and `AssertionError` when none comes."""
        request = self.request(method, params, meta=meta, id=id)
        async with self.post(request) as answer:
            if answer.headers["content-type"] == "application/json":
                messages = [await answer.json()]
            else:
                assert answer.status == 200
                messages = [event.message async for event in answer.events()]
        responses = [message for message in messages if "method" not in message]
        self.notes += [self.check(message) for message in messages if "method" in message]
        assert len(responses) == 1, "exactly one response ends the stream"
        assert messages[-1] == responses[0], "nothing follows the response"
        return self.result(responses[0], method, request["id"])

    def check(self, message: dict[str, Any]) -> dict[str, Any]:
        """A notification from the server, checked."""
        assert "id" not in message, "no request of the server is ever sent"
        if message["method"] == "notifications/tasks":
            schema("ext-tasks").check(message, "TaskStatusNotification")
        else:
            schema(VERSION).check_message(message)
        return message

    def result(self, message: dict[str, Any], method: str, id: Any) -> dict[str, Any]:
        """The result of a response, checked. Raises `RpcError`."""
        assert message["id"] == id
        assert type(message["id"]) is type(id)
        schema(VERSION).check_message(message)
        if "error" in message:
            raise RpcError(message["error"])
        result = dict(message["result"])
        assert PREFIX + "serverInfo" in result["_meta"]
        match result["resultType"]:
            case "input_required":
                assert method in ("tools/call", "prompts/get", "resources/read")
                schema(VERSION).check(result, "InputRequiredResult")
            case "task":
                assert method == "tools/call"
                schema("ext-tasks").check(result, "CreateTaskResult")
            case "complete" if method in _RESULTS:
                schema("ext-tasks").check(result, _RESULTS[method])
            case "complete":
                name = {"server/discover": "Discover"}.get(method)
                schema(VERSION).check_message(message, method=None if name else method)
                if name:
                    schema(VERSION).check(result, "DiscoverResult")
            case other:
                raise AssertionError(f"unknown resultType {other}")
        return result

    async def tool(self, name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """`tools/call`; the member `meta` is added to `_meta`, others to the params."""
        meta = params.pop("meta", None)
        return await self.call("tools/call", {"name": name, "arguments": dict(arguments or {}), **params}, meta=meta)

    async def rounds(self, method: str, params: Mapping[str, Any], respond: Answers) -> tuple[dict[str, Any], int]:
        """Send a request again and again with the answers it asks for; the final result and the number of rounds."""
        retry: dict[str, Any] = {}
        for number in range(1, 20):
            result = await self.call(method, {**params, **retry})
            if result["resultType"] != "input_required":
                return result, number
            asked = result.get("inputRequests", {})
            retry = {"inputResponses": {key: respond(key, request) for key, request in asked.items()}}
            if "requestState" in result:
                retry["requestState"] = result["requestState"]
        raise AssertionError("the server asks for ever")

    async def get_task(self, task_id: str) -> dict[str, Any]:
        """`tasks/get`."""
        return await self.call("tasks/get", {"taskId": task_id})

    async def until(self, task_id: str, *statuses: str, pause: Callable[[], Awaitable[None]]) -> dict[str, Any]:
        """Poll a task until it has one of the statuses; `pause` lets time pass between two polls."""
        for _ in range(10_000):
            task = await self.get_task(task_id)
            if task["status"] in statuses:
                return task
            await pause()
        raise AssertionError(f"the task never became {statuses}")

    def noted(self, method: str) -> list[dict[str, Any]]:
        """The params of the notes of one method."""
        return [note["params"] for note in self.notes if note["method"] == method]

    def heard(self, event: Event) -> dict[str, Any]:
        """One event of a listen stream, checked and noted."""
        message = self.check(event.message)
        self.notes.append(message)
        return message


async def unread(client: Modern, request: Mapping[str, Any]) -> None:
    """A request whose answer no socket takes."""
    body = json.dumps(request).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Any) -> None:
        if event["type"] == "http.response.body":
            await trio.sleep_forever()

    await client.app(http_scope("POST", client.target, client.headers(request)), receive, send)
