"""The official Python SDK 2.3.0 with its stdio client: it starts `mcp-probe stdio` itself, in both eras.

What the server saw is read from the pages that run beside it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import trio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from ..support.evidence import call_records, check_emitted, events_of, misuses
from .python_sdk import BOUND_S, Endpoint, Json, Person, text
from .test_python_sdk_modern import _Tasks as Tasks

pytestmark = [
    # `ping` and log levels exist in the legacy era only, so the SDK calls them deprecated
    pytest.mark.filterwarnings(f"ignore::{MCPDeprecationWarning.__module__}.{MCPDeprecationWarning.__name__}"),
]

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
both_eras = pytest.mark.parametrize("mode", REVISIONS)
INHERITED = ("PYTHONPATH", "VIRTUAL_ENV")


@dataclass
class Started:
    """A process that the SDK started: the client of it, and the `/mcp` URL beside which its pages are."""

    client: Client
    url: str

    async def settled_record(self) -> Json:
        """The newest call record, once that call is over."""
        endpoint = Endpoint(self.url, None, lambda: events_of(self.url), lambda: call_records(self.url))  # type: ignore[arg-type]
        return await endpoint.settled_record()


@asynccontextmanager
async def started(tmp_path: Path, mode: str, **options: Any) -> AsyncIterator[Started]:
    """A client with a server of its own.

    What the server sends has to fit the schemas and what the client sends the server's idea of it; the process has to
    end by itself when its input ends, and to say nothing but where its pages are.
    """
    log = tmp_path / "said"
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    arguments = ["-m", "probe", "stdio", "--dashboard", "0", "--tools", "all", "--event-log-events", "100000"]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    with log.open("w") as said, trio.fail_after(BOUND_S):
        async with Client(stdio_client(parameters, errlog=said), mode=mode, **options) as client:
            found = re.search(r"dashboard: (http://\S+)/dashboard", log.read_text())
            assert found
            yield Started(client, f"{found[1]}/mcp")
            events = events_of(f"{found[1]}/mcp")
            assert check_emitted(events)
            assert misuses(events) == []
    # a process that has to be stopped by a signal says that it was
    assert len(log.read_text().splitlines()) == 1, log.read_text()


@both_eras
async def test_a_client_starts_the_server_and_leaves_it(tmp_path: Path, mode: str) -> None:
    async with started(tmp_path, mode) as server:
        client = server.client
        assert client.protocol_version == REVISIONS[mode]
        assert client.server_info is not None
        assert client.server_info.name == "mcp-probe"
        assert (await client.list_tools()).tools
        assert text(await client.call_tool("chatty")) == "first block: short"
        methods = [event["method"] for event in events_of(server.url) if event["kind"] == "message.received"]
        assert methods[0] == {"legacy": "initialize", "auto": "server/discover"}[mode]
        (opened,) = [event for event in events_of(server.url) if event["kind"] == "connection.opened"]
        assert (opened["transport"], opened["client"]) == ("stdio", "stdio")


@both_eras
async def test_progress_comes_step_by_step_before_the_result(tmp_path: Path, mode: str) -> None:
    seen = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with started(tmp_path, mode) as server:
        await server.client.list_tools()
        result = await server.client.call_tool("progress", {"steps": 5, "step_ms": 20}, progress_callback=hear)
        assert seen == [(step, 5, f"step {step}/5") for step in range(1, 6)]
        assert result.structured_content == {"steps": 5, "notified": True, "done": True}


@both_eras
async def test_a_call_that_is_given_up_is_cancelled_by_a_notification(tmp_path: Path, mode: str) -> None:
    """2026-07-28 basic/patterns/cancellation: on stdio also the modern era has `notifications/cancelled`."""
    async with started(tmp_path, mode) as server:
        await server.client.list_tools()
        with trio.CancelScope() as scope:

            async def stop(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await server.client.call_tool("progress", {"steps": 100, "step_ms": 200}, progress_callback=stop)
        assert scope.cancelled_caught
        record = await server.settled_record()
        assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("cancelled", "notification", False)
        assert record["era"] == {"legacy": "legacy", "auto": "modern"}[mode]
        assert text(await server.client.call_tool("chatty")) == "first block: short"


@both_eras
async def test_many_calls_at_once_each_get_their_own_answer(tmp_path: Path, mode: str) -> None:
    async with started(tmp_path, mode) as server:
        await server.client.list_tools()
        found = {}

        async def call(delay: int) -> None:
            found[delay] = (await server.client.call_tool("simple_tool", {"delayMs": delay})).structured_content

        async with trio.open_nursery() as nursery:
            for delay in range(0, 100, 2):
                nursery.start_soon(call, delay)
        assert found == {delay: {"message": f"Completed after {delay}ms"} for delay in range(0, 100, 2)}


@both_eras
async def test_what_the_server_asks_is_answered(tmp_path: Path, mode: str) -> None:
    person = Person(answer=types.ElicitResult(action="accept", content={"name": "Ada", "email": "a@b.example"}))
    async with started(tmp_path, mode, **person.callbacks()) as server:
        await server.client.list_tools()
        form = await server.client.call_tool("elicit_simple_form")
        assert form.structured_content == {"action": "accept", "content": person.answer.content, "problems": []}
        sampled = await server.client.call_tool("sampling_demo", {"style": "haiku"})
        assert sampled.structured_content == {"text": "old pond"}
        assert len(person.asked) == 2


@both_eras
async def test_large_results_come_whole(tmp_path: Path, mode: str) -> None:
    """More than a pipe holds."""
    async with started(tmp_path, mode) as server:
        result = await server.client.call_tool("long_output", {"blocks": 50, "chars": 65536})
        assert [len(block.text) for block in result.content if isinstance(block, types.TextContent)] == [65536] * 50


@both_eras
async def test_errors_are_errors(tmp_path: Path, mode: str) -> None:
    async with started(tmp_path, mode) as server:
        with pytest.raises(MCPError) as caught:
            await server.client.call_tool("no_such_tool")
        assert caught.value.code == types.INVALID_PARAMS
        assert (await server.client.call_tool("progress", {"steps": 101})).is_error


async def test_a_legacy_client_is_told_of_changed_lists_and_log_messages(tmp_path: Path) -> None:
    person = Person()
    async with started(tmp_path, "legacy", **person.callbacks()) as server:
        await server.client.set_logging_level("warning")
        await server.client.call_tool("log_levels")
        assert [level for level, _ in person.logged] == ["warning", "error", "critical", "alert", "emergency"]
        await server.client.call_tool("announce_list_change")
        while not any(isinstance(message, types.ToolListChangedNotification) for message in person.messages):
            person.heard = trio.Event()
            await person.heard.wait()
        await server.client.send_ping()


async def test_a_modern_client_follows_a_task_to_its_end(tmp_path: Path) -> None:
    tasks = Tasks({"action": "accept", "content": {"continue": True}})
    options = {"extensions": [tasks], **Person().callbacks()}
    async with started(tmp_path, "auto", **options) as server:
        await server.client.list_tools()
        result = await server.client.call_tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1})
        assert result.structured_content == {"processedItems": 2, "pausedAt": 1}
        assert (tasks.statuses[0], tasks.statuses[-1]) == ("working", "completed")
        assert "input_required" in tasks.statuses


async def test_a_modern_client_cancels_a_task(tmp_path: Path) -> None:
    async with started(tmp_path, "auto", extensions=[Tasks(cancel=True)]) as server:
        await server.client.list_tools()
        with pytest.raises(MCPError, match="cancelled"):
            await server.client.call_tool("cancellable_task")


async def test_a_modern_client_listens(tmp_path: Path) -> None:
    async with (
        started(tmp_path, "auto") as server,
        server.client.listen(tools_list_changed=True) as subscription,
    ):
        await server.client.call_tool("announce_list_change")
        assert isinstance(await anext(aiter(subscription)), ToolsListChanged)
