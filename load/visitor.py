"""The well-behaved client beside a flood, as a process of its own, so that the flood's work does not count as waiting.

    argv  the port, for how many seconds, how many calls a second, and the paths of rooms

It calls a tool, with rooms in each in turn, at even intervals, each call at its time even if the one before is still
waiting, and prints JSON: `late_ms`, how long after it was due each call was answered, and `failed`, what else happened
how often.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import cycle

import trio
from bench.http1 import BrokenResponseError, Connection

from . import wire

_CLIENT = wire.Client("192.0.2.1")
_PATIENCE_S = 20.0


class Visitor:
    """Calls until its time is up; `late_ms` and `failed` as above."""

    def __init__(self, port: int, per_second: float, rooms: Sequence[str]) -> None:
        self.late_ms: list[float] = []
        self.failed: Counter[str] = Counter()
        self._port = port
        self._pause_s = 1 / per_second
        self._clients = cycle([wire.Client.numbered(n, room) for n, room in enumerate(rooms)] or [_CLIENT])

    async def run(self, seconds: float) -> None:
        """Start each call when it is due, on a connection of its own, and wait for the last."""
        began = due = trio.current_time()
        async with trio.open_nursery() as nursery:
            while due < began + seconds:
                await trio.sleep_until(due)
                nursery.start_soon(self._call, due)
                due += self._pause_s

    async def _call(self, due: float) -> None:
        request = wire.modern("tools/call", {"name": "simple_tool", "arguments": {}}, next(self._clients), 1)
        try:
            with trio.fail_after(_PATIENCE_S):
                async with Connection(self._port) as connection:
                    head, body = await connection.exchange(request)
        except (OSError, BrokenResponseError):
            self.failed["closed"] += 1
        except trio.TooSlowError:
            self.failed["no answer"] += 1
        else:
            self._note(wire.fault(head.status, body), due)

    def _note(self, kind: str | None, due: float) -> None:
        if kind is None:
            self.late_ms.append(round((trio.current_time() - due) * 1000, 3))
        else:
            self.failed[kind] += 1


def main() -> None:
    """Run, and print what was found."""
    port, seconds, per_second, *rooms = sys.argv[1:]
    visitor = Visitor(int(port), float(per_second), rooms)
    trio.run(visitor.run, float(seconds))
    sys.stdout.write(json.dumps({"late_ms": visitor.late_ms, "failed": visitor.failed}))


if __name__ == "__main__":
    main()
