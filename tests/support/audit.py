"""Engines that write their calls to a file, in real time: a thread is nothing that virtual time would wait for."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import trio

from probe.engine.engine import Engine, Randomness
from probe.settings import build
from probe.tools.catalogue import TOOLSETS
from probe.views.search.call_filter import parse
from probe.web.paths import Paths

from .probe import Probe

MANY = 10**9


@asynccontextmanager
async def auditing(path: Path, life: int = 1, **values: Any) -> AsyncIterator[Probe]:
    """A probe whose calls go to a file, in one of the lives of the server."""
    numbers = count(1)
    settings = build({"audit_db": str(path), "audit_flush_s": 0.02, **values})
    engine = Engine(
        settings,
        TOOLSETS,
        epoch=time.time(),
        randomness=Randomness(
            lambda: f"id-{life}-{next(numbers):04}-0123456789abcdef",
            lambda size: (1000 * life + next(numbers)).to_bytes(size, "big"),
        ),
    )
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.serve)
            yield Probe(engine, Paths(engine))
            nursery.cancel_scope.cancel()


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows in the file, read without any of the program's help, the oldest first."""
    if not path.exists() or path.stat().st_size == 0:
        return []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            return []
        return [json.loads(row) for (row,) in connection.execute("SELECT row FROM rows ORDER BY number")]
    finally:
        connection.close()


async def asked(probe: Probe, *pairs: tuple[str, str], limit: int = 100) -> list[dict[str, Any]]:
    """All rows that pass, page by page, the newest first."""
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await probe.engine.audit.calls.page(parse(pairs), cursor, limit, MANY)
        assert len(page.rows) <= limit
        rows += map(json.loads, page.rows)
        cursor = page.next
        if cursor is None:
            return rows
