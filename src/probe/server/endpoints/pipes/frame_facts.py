"""Control frames of a WebSocket, and refused frames, for the event log.

The ASGI extension `scope["extensions"]["probe.frames"]` is a function of the listener that takes a `NoteFrame`. The
endpoint calls it once, when the connection is recorded. From then on the listener calls the `NoteFrame` for each ping,
pong and close, in both directions, and for each frame of the peer that it refuses. The `NoteFrame` neither waits nor
raises. Without the extension no frames are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ....core.budgets import Rates
from ....log.context import Recorder
from ....log.events import Direction, Opcode, WebSocketFrame

FRAMES: Final = "probe.frames"
"""The name of the extension."""

NoteFrame: TypeAlias = Callable[[Direction, Opcode, int, str | None], None]
"""Direction, opcode and payload size in bytes of a frame, and the reason of its refusal, or None."""

# The first pings and pongs that are recorded; after them one every two seconds, since a ping of six bytes costs its
# peer little.
_BURST: Final = 20
_PER_S: Final = 0.5


class FrameFacts:
    """Records frames of one WebSocket after `opened`. `now` is a monotonic clock, in seconds.

    Each close and each refusal is recorded; of pings and pongs the first 20, then one every two seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._rates = Rates(_PER_S, _BURST, 1)
        self._recorder: Recorder | None = None

    def opened(self, recorder: Recorder) -> None:
        """The connection is open; the recorder's cause is its `connection.opened`."""
        self._recorder = recorder

    def note(self, direction: Direction, opcode: Opcode, size: int, refused: str | None = None) -> None:
        """Record a frame within the limit of recorded frames."""
        rare = opcode == "close" or refused is not None
        if self._recorder is not None and (rare or not self._rates.take("", self._now()).wait_s):
            self._recorder.append(WebSocketFrame(direction, opcode, size, refused))
