"""Made `version_1.sql`: the file of a server of commit 66f8073, whose audit has version 1, as statements of SQL.

Run in a work tree of that commit: `PYTHONPATH=src:. python .../make_version_1.py FILE.sql`.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path

import trio
from tests.support.audit import auditing

ARGUMENTS = {"steps": 3, "step_ms": 20}
META = {"progressToken": "5"}


async def fill(path: Path) -> None:
    """Calls of both eras, a task, and one that is cancelled while it runs."""
    async with auditing(path) as probe:
        client = await probe.client()
        await client.call("tools/call", {"name": "progress", "arguments": ARGUMENTS, "_meta": META})
        handle = await client.tool("pure_task", {"durationMs": 1000}, task={})
        await client.call("tasks/result", {"taskId": handle["task"]["taskId"]})
        slow = {"name": "progress", "arguments": {"steps": 100, "step_ms": 50}, "_meta": {"progressToken": 7}}
        async with client.post(client.request("tools/call", slow, "it")) as answer:
            await answer.first(3)
            await client.cancel("it", "seen enough")
            await client.read(answer)
        await probe.modern().call("tools/call", {"name": "chatty", "arguments": {"lines": 1}})


def main() -> None:
    """Write the statements, and the numbers in the header of the file that they do not have."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.db"
        trio.run(fill, path)
        connection = sqlite3.connect(path)
        lines = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("auto_vacuum", "application_id", "user_version")
        ]
        Path(sys.argv[1]).write_text("\n".join([*lines, *connection.iterdump()]) + "\n")
        connection.close()


if __name__ == "__main__":
    main()
