"""The server under load, as a process of its own that tells on request how it stands.

    argv[1]          its settings, a JSON object of flat names
    standard output  first its URL; then, for each line on standard input, one line of JSON: `rss`, `tasks`

`tasks` has the names of all trio tasks but its own, and how many there are of each.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from probe.cli import app
from probe.cli.starting import tune_garbage_collection
from probe.settings import Settings, build

from .process import resident

_WRITE = 1


def main() -> None:
    """Serve until standard input ends."""
    # As the program does it, whose figures these are to be.
    tune_garbage_collection()
    trio.run(_run, build(json.loads(sys.argv[1])), strict_exception_groups=True)


async def _run(settings: Settings) -> None:
    async with trio.open_nursery() as nursery:
        urls = await nursery.start(partial(app.serve, settings))
        _say(urls[0])
        # A descriptor of its own, as trio makes it one that does not block.
        async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as asked:
            async for lines in asked:
                for _ in range(lines.count(b"\n")):
                    _say(json.dumps(_figures()))
        nursery.cancel_scope.cancel()


def _say(line: str) -> None:
    os.write(_WRITE, f"{line}\n".encode())


def _figures() -> dict[str, Any]:
    gc.collect()
    with suppress(OSError, AttributeError):
        # What the C library holds back for later is no memory of this program's.
        ctypes.CDLL(None).malloc_trim(0)
    root = trio.lowlevel.current_root_task()
    assert root is not None
    names = Counter(task.name for task in _below(root) if task is not trio.lowlevel.current_task())
    return {"rss": resident(os.getpid()), "tasks": names}


def _below(task: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield child
            yield from _below(child)


if __name__ == "__main__":
    main()
