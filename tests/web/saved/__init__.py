"""Logs that past commits wrote (`make.py`), and what the API says of two of them: `recorded/`."""

from __future__ import annotations

import re
from pathlib import Path

from probe.web.exports.archive import open_file

from ...support.api import LOCAL, page
from ...support.http import exchange
from ...support.probe import Probe, running

FOLDER = Path(__file__).parent
LOGS = sorted(file for file in FOLDER.iterdir() if file.suffix in {".ndjson", ".mcpprobe"})
RECORDED = sorted(FOLDER.glob("recorded/*"))
# their answers depend on the log alone: not on the time, a version of the program or its tools
PAGES = (
    *(f"/api/{name}" for name in ("sessions", "tasks", "streams", "hosts", "refusals", "counts", "export")),
    "/api/events?since=0&limit=50&view=1",
    "/api/events/{seq}?view=1",
    "/api/events.ndjson?kind=message.delivered",
    "/api/search?filter=tool:progress&limit=6&view=1",
    "/api/calls",
    "/api/calls.csv",
    "/api/calls/{id}?view=1",
    "/api/export.har",
    "/api/judge",
)


async def names(probe: Probe) -> dict[str, str]:
    """An entry, a call and a client of a log, for the paths that need one."""
    (event, *_) = (await page(probe, "/api/events?since=0"))["events"]
    calls = (await page(probe, "/api/calls"))["calls"]
    subjects = (await page(probe, "/api/judge"))["subjects"]
    return {"seq": str(event["seq"]), "id": calls[-1]["id"] if calls else "", "name": subjects[0]["label"]}


async def answers(log: Path) -> list[bytes]:
    """What the API says of a log: the path, the head, and the body with each object of a list in a line of its own."""
    said = []
    async with running(judge=True, opened=open_file(log)) as probe:
        known = await names(probe)
        for path in PAGES:
            async with exchange(probe.app, "GET", path.format(**known), LOCAL) as answer:
                head = f"GET {path}\n{answer.status} {answer.headers['content-type']}\n".encode()
                said.append(head + (await answer.body()).replace(b"},{", b"},\n{") + b"\n")
    return said


def recorded(file: Path) -> list[bytes]:
    """The answers in a file, as `answers` has them."""
    return re.split(rb"(?m)^(?=GET /api)", file.read_bytes())[1:]
