"""An image and a sound for people to recognise."""

from __future__ import annotations

import base64
import io
import wave
from typing import Final

IMAGE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAgMAAADXB5lNAAAADFBMVEXWLy8unkQrbNbywC5+3d6NAAAA"
    "IElEQVR42mNggIJQKGAYFRgVQBJYBQX/oWBUYFQASQAABnD+ECYayaQAAAAASUVORK5CYII="
)
"""A PNG of 64 by 64 pixels, Base64: red, green above blue, yellow. A literal, since compressors differ."""

_RATE: Final = 8000
_PERIOD: Final = 18


def _tone() -> str:
    # Whole numbers only, so that the bytes are the same on every machine.
    period = bytes(128 + 12 * min(step, _PERIOD - step) - 54 for step in range(_PERIOD))
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(_RATE)
        sound.writeframes(period * (_RATE // 2 // _PERIOD))
    return base64.b64encode(written.getvalue()).decode()


TONE: Final = _tone()
"""Half a second of a triangle wave of 444 Hz in a WAV, Base64: 8 bits, mono, 8000 samples per second."""
