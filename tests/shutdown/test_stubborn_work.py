"""A tool that nothing stops does not keep the process: it is told to end, waited for, and left behind."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from ..sockets.peers import Dialer
from ..support.process import Program, followed
from .peers import call, post, rows

STUBBORN = """
import sys
import trio
from probe.cli import app, ending, parts, program as cli
from probe.engine import engine
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, structured

# The same, in less time.
engine._CLEANUP_S = ending.FLUSH_S = app.FLUSH_S = ending.JOIN_S = app._GONE_S = 0.5

async def run(context):
    context.report_progress(1)
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()
    return structured({})

tool = Tool(name="stubborn", title="Stubborn", exercises="", shows="", description="", run=run, steps=lambda _: 2)
task = Tool(name="task", title="Task", exercises="", shows="", description="", run=run, task_support="required")
parts.TOOLSETS = (*parts.TOOLSETS, Toolset("rude", (tool, task)))
sys.exit(cli.main(sys.argv[1:]))
"""
"""A server with a tool that nothing stops."""

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


async def started(program: Program) -> int:
    """The port of a server that has said where it listens."""
    return int((await program.said("listens on")).partition("/mcp")[0].rpartition(":")[2])


@pytest.mark.parametrize("signals", [1, 2])
async def test_it_ends_in_time_with_its_rows_written(dial: Dialer, tmp_path: Path, signals: int) -> None:
    """After the drain, or at once where a second signal says so. Long between two writings: the end writes the rows."""
    path = tmp_path / "audit.db"
    options = ("--port", "0", "--grace-s", "600" if signals == 2 else "0.1", "--tools", "all")
    audit = ("--audit-db", str(path), "--audit-flush-s", "60")
    async with followed([sys.executable, "-c", STUBBORN, "serve", *options, *audit], {}) as program:
        port = await started(program)
        stubborn, other = await dial.wire(port), await dial.wire(port)
        await stubborn.send(post(call("stubborn", id="stubborn")))
        await stubborn.read_until(b'"progress":1')
        await other.send(post(call("task", id="task", tasks=True)))
        await other.read_until(b'"taskId"')
        await other.send(post(call("chatty", id="done")))
        await other.read_until(b'"result"')
        program.signal(signal.SIGTERM)
        await program.said("stopping: running work may finish", "; signal again to stop at once")
        if signals == 2:
            program.signal(signal.SIGTERM)
        assert await program.ended() == 0
        await program.said("left behind")
    found: dict[str, Any] = rows(path)
    assert set(found) == {"stubborn", "task", "done"}
    assert (found["done"]["outcome"], found["done"]["answer_delivered"]) == ("completed", True)


async def test_over_standard_streams(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STUBBORN, "stdio", "--grace-s", "0.1", "--tools", "all"]
    async with followed(command, {}) as program:
        await program.said("speaks on standard input")
        await program.tell(json.dumps(call("stubborn", id="it")))
        await program.said('"progress":1')
        program.signal(signal.SIGINT)
        assert await program.ended() == 0
        await program.said("left behind")


@pytest.mark.parametrize("begun", ["modern call", "legacy call", "legacy task"])
async def test_over_standard_streams_whose_client_has_gone(tmp_path: Path, begun: str) -> None:
    """Nobody sends a signal then: the end of the input is all that there is."""
    path = tmp_path / "audit.db"
    command = [sys.executable, "-c", STUBBORN, "stdio", "--tools", "all", "--audit-db", str(path)]
    async with followed([*command, "--audit-flush-s", "60"], {}) as program:
        await program.said("speaks on standard input")
        if begun == "modern call":
            await program.tell(json.dumps(call("stubborn", id="it")))
        else:
            await program.tell(json.dumps(HELLO))
            params = {"name": "stubborn", "arguments": {}, "_meta": {"progressToken": "t"}}
            task = {"name": "task", "arguments": {}, "task": {}, "_meta": {"progressToken": "t"}}
            params = task if begun == "legacy task" else params
            await program.tell(json.dumps({"jsonrpc": "2.0", "id": "it", "method": "tools/call", "params": params}))
        await program.said('"progress":1')
        await program.end_input()
        assert await program.ended() == 0
        await program.said("left behind")
    assert set(rows(path)) == {"it"}


async def test_work_that_ends_is_not_left_behind(tmp_path: Path) -> None:
    """The last resort is none for a server that ends by itself."""
    command = [sys.executable, "-c", STUBBORN, "stdio", "--grace-s", "0.1"]
    async with followed(command, {}) as program:
        await program.said("speaks on standard input")
        await program.tell(json.dumps(call("simple_tool", {"delayMs": 5000}, "it")))
        await program.tell(json.dumps(call("chatty", id="heard")))
        await program.said('"heard"')
        program.signal(signal.SIGTERM)
        assert await program.ended() == 0
        assert not [said for said in program.lines if "left behind" in said]
