"""Made the saved logs of this folder: `COMMIT-KIND` was written by the program of that commit.

Run in a work tree of that commit, with the environment of today: `PYTHONPATH=src python .../make.py FOLDER KIND...`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

PROBE = (sys.executable, "-m", "probe")


async def story(server: Any, mode: Any) -> None:
    """Calls that end well, with progress, too early and badly, and one of a tool that does not exist."""
    async with Client(server, mode=mode) as client:
        await client.call_tool("chatty", {})
        await client.call_tool("progress", {"steps": 2, "step_ms": 1}, progress_callback=print_progress)
        with trio.move_on_after(0.3):
            await client.call_tool("progress", {"steps": 100, "step_ms": 100})
        for tool, arguments in (("progress", {"steps": 0}), ("nothing", {})):
            try:
                await client.call_tool(tool, arguments)
            except MCPError as error:
                print(error, file=sys.stderr)


async def print_progress(progress: float, total: float | None, message: str | None) -> None:
    print(progress, total, message, file=sys.stderr)


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server; gives its address without a path."""
    command = [*PROBE, "serve", "--port", "0", "--tools", "streaming", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        found = next(filter(None, (re.search(r"(http://\S+)/mcp", line) for line in lines)))
        try:
            yield found[1]
        finally:
            process.terminate()
            process.communicate()


def through_stdio(*options: str) -> None:
    """A client on standard streams."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "probe", "stdio", "--tools", "streaming", *options],
        env={"PYTHONPATH": "src"},
    )
    trio.run(story, stdio_client(command), "legacy")


def save(url: str, path: str, file: Path) -> None:
    """Keep what a page of the API gives."""
    with urllib.request.urlopen(f"{url}{path}") as answer:
        file.write_bytes(answer.read())


def main() -> None:
    """Write one file for each kind."""
    folder, kinds = Path(sys.argv[1]), sys.argv[2:]
    commit = Path.cwd().name
    if kinds[0].startswith("http"):
        # the client that `judge` starts
        trio.run(story, kinds[0], "legacy")
        return
    with serving() as url:
        for mode in ("legacy", "auto"):
            trio.run(story, f"{url}/mcp", mode)
        pages = {
            "filtered.ndjson": "/api/events.ndjson?session=s1",
            "session.mcpprobe": "/api/export.mcpprobe",
            "client.mcpprobe": "/api/export.mcpprobe?client=s1",
        }
        for kind in pages.keys() & set(kinds):
            save(url, pages[kind], folder / f"{commit}-{kind}")
    if "gap.ndjson" in kinds:
        with serving("--event-log-events", "100") as url:
            for mode in ("legacy", "auto"):
                trio.run(story, f"{url}/mcp", mode)
            save(url, "/api/events.ndjson", folder / f"{commit}-gap.ndjson")
    if "judge.ndjson" in kinds:
        run = (
            *PROBE,
            "judge",
            "--save",
            str(folder / f"{commit}-judge.ndjson"),
            "--tools",
            "streaming",
            sys.executable,
            __file__,
            str(folder),
        )
        subprocess.run(run, check=False)
    if "stdio.ndjson" in kinds:
        through_stdio("--log-to", str(folder / "logs"))
        (written,) = (folder / "logs").iterdir()
        written.rename(folder / f"{commit}-stdio.ndjson")
    if "forwarded.ndjson" in kinds:
        with serving("--forward-secret", "a-secret-of-sixteen") as url:
            through_stdio("--forward", url, "--forward-secret", "a-secret-of-sixteen")
            save(url, "/api/events.ndjson", folder / f"{commit}-forwarded.ndjson")


if __name__ == "__main__":
    main()
