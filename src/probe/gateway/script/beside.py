"""Other transports: WebSocket, and many streams on one HTTP/2 connection."""

from __future__ import annotations

from typing import Final

from ...wire.jsonrpc import notification, request
from ..client.live import Sending
from ..client.streams2 import open_many
from ..client.websocket import converse
from ..side import Side, initialize, modern_call
from .step import Step, Taken

_MOST_STREAMS: Final = 300
"""A gateway that allows more than this starves nobody here."""


async def websocket(side: Side, mark: int) -> Taken:
    """The upgrade, `initialize` and a ping."""
    assert side.websocket is not None, "the step needs it"
    messages = [initialize(mark), notification("notifications/initialized", None), request(1, "ping", None)]
    return Taken((await converse(side.websocket, "websocket", messages, 2),))


async def streams(side: Side, mark: int) -> Taken:
    """Open as many streams at once as the other end allows, and one more."""
    first = await open_many(side.mcp, [_waiting(side, mark, 0, 0)], 5.0)
    if first.limit is None or first.problem or first.limit > _MOST_STREAMS:
        return Taken((), facts={"limit": first.limit, "late": 0, "refused": 0, "problem": first.problem})
    sendings = [_waiting(side, mark, number, 2500) for number in range(first.limit + 1)]
    more = await open_many(side.mcp, sendings, 8.0)
    late = sum(head is None or head > 2.0 for head in more.heads)
    return Taken((), facts={"limit": first.limit, "late": late, "refused": more.refused, "problem": more.problem})


def _waiting(side: Side, mark: int, number: int, step_ms: int) -> Sending:
    # The head of a response comes with its first message: at once, and then the stream stays open.
    arguments = {"steps": 2, "step_ms": step_ms // 2, "mark": mark + 1 + number}
    return modern_call(side, f"stream {number}", "progress", arguments, mark=mark, token=number)


STEPS: Final = (
    Step("websocket", "transports", websocket, frozenset({"websocket"})),
    Step("streams", "transports", streams, frozenset({"modern", "h2", "tool:progress"}), profiles=("full", "idle")),
)
