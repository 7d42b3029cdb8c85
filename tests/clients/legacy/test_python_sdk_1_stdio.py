"""The official Python SDK 1.30.0 with its stdio client: it starts `mcp-probe stdio` itself."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError

from ...support.evidence import check_emitted, events_of, misuses
from .test_python_sdk_1 import BOUND_S, Person, begin, result_of, status_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:The experimental tasks API is deprecated:DeprecationWarning"),
]

INHERITED = ("PYTHONPATH", "VIRTUAL_ENV")


@dataclass
class Started:
    """A session with a process of its own, and who sits at the client."""

    session: ClientSession
    person: Person


@asynccontextmanager
async def started(tmp_path: Path) -> AsyncIterator[Started]:
    """A session on a process that the SDK starts; what both said is judged at the end."""
    log, person = tmp_path / "said", Person()
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    arguments = ["-m", "probe", "stdio", "--dashboard", "0", "--tools", "all"]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    with log.open("w") as said, trio.fail_after(BOUND_S):
        async with (
            stdio_client(parameters, errlog=said) as (read, write),
            ClientSession(
                read,
                write,
                elicitation_callback=person.elicit,
                sampling_callback=person.sample,
                message_handler=person.note,
            ) as session,
        ):
            await session.initialize()
            yield Started(session, person)
            found = re.search(r"dashboard: (http://\S+)/dashboard", log.read_text())
            assert found
            events = events_of(f"{found[1]}/mcp")
            assert check_emitted(events)
            assert misuses(events) == []
    # a process that has to be stopped by a signal says that it was
    assert len(log.read_text().splitlines()) == 1, log.read_text()


async def test_calls_are_answered(tmp_path: Path) -> None:
    async with started(tmp_path) as server:
        tools = (await server.session.list_tools()).tools
        assert len(tools) > 20
        result = await server.session.call_tool("simple_tool", {"delayMs": 20})
        assert result.structuredContent == {"message": "Completed after 20ms"}
        large = await server.session.call_tool("long_output", {"blocks": 50, "chars": 65536})
        assert len(large.content) == 50
        with pytest.raises(McpError) as caught:
            await server.session.call_tool("no_such_tool")
        assert caught.value.error.code == types.INVALID_PARAMS


async def test_progress_comes_step_by_step_before_the_result(tmp_path: Path) -> None:
    seen = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with started(tmp_path) as server:
        await server.session.call_tool("progress", {"steps": 4, "step_ms": 20}, progress_callback=hear)
        assert seen == [(step, 4, f"step {step}/4") for step in range(1, 5)]


async def test_what_the_server_asks_is_answered(tmp_path: Path) -> None:
    async with started(tmp_path) as server:
        assert (await server.session.call_tool("elicit_form")).structuredContent["action"] == "decline"
        assert (await server.session.call_tool("sampling_demo")).structuredContent == {"text": "old pond"}
        assert (await server.session.call_tool("ping_client")).structuredContent == {"answered": True}
        assert len(server.person.asked) == 1


async def test_a_task_runs_to_its_end_and_is_told_of(tmp_path: Path) -> None:
    async with started(tmp_path) as server:
        server.person.answer = types.ElicitResult(action="accept", content={"continue": True})
        id = await begin(server.session, "pausable_task", itemCount=2, pauseAfterItem=1)
        assert (await result_of(server.session, id)).structuredContent == {"processedItems": 2, "pausedAt": 1}
        assert await status_of(server.session, id) == "completed"
        assert server.person.statuses(id) == ["working", "input_required", "working", "completed"]


async def test_a_task_is_cancelled(tmp_path: Path) -> None:
    async with started(tmp_path) as server:
        id = await begin(server.session, "cancellable_task")
        await server.session.experimental.cancel_task(id)
        assert await status_of(server.session, id) == "cancelled"
