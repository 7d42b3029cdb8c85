"""Control frames of a WebSocket, and frames that were refused, for the event log.

A listener tells of them by an extension of the ASGI scope: `scope["extensions"]["probe.frames"]` is a function that
takes a `NoteFrame`. The endpoint calls it once, when the connection is in the log. From then on the listener calls the
`NoteFrame` for each ping, pong and close, in both directions, and for each frame of the peer that it refuses. It
neither waits nor raises. A listener without the extension tells nothing.
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
"""Direction, kind and payload size in bytes of a frame, and why it was refused, None for one that was not."""

# A ping of six bytes costs its peer nothing: so many are recorded, and then one every two seconds.
_BURST: Final = 20
_PER_S: Final = 0.5


class FrameFacts:
    """Records frames of one WebSocket, from the moment when that is `opened`. `now` is a monotonic clock, in seconds.

    A close and a refusal are always recorded, of pings and pongs the first ones and then one every two seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._rates = Rates(_PER_S, _BURST, 1)
        self._recorder: Recorder | None = None

    def opened(self, recorder: Recorder) -> None:
        """The connection is open; the cause of the recorder is its `connection.opened`."""
        self._recorder = recorder

    def note(self, direction: Direction, opcode: Opcode, size: int, refused: str | None = None) -> None:
        """Record a frame, if there is room for it."""
        rare = opcode == "close" or refused is not None
        if self._recorder is not None and (rare or not self._rates.take("", self._now()).wait_s):
            self._recorder.append(WebSocketFrame(direction, opcode, size, refused))
