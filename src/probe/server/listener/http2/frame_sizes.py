"""The lengths of HTTP/2 frames, from their headers alone."""

from __future__ import annotations

_PREFACE_BYTES = 24
_FRAME_HEADER_BYTES = 9


class FrameSizes:
    """Checks the length of each frame when its header arrives.

    h2 checks it when the frame is complete. A length has three bytes, so that may be 16 MiB later.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._header = bytearray()
        self._skip = _PREFACE_BYTES

    def acceptable(self, data: bytes) -> bool:
        """Whether each frame beginning in `data` has an allowed length."""
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
            else:
                step = min(_FRAME_HEADER_BYTES - len(self._header), len(data) - at)
                self._header += data[at : at + step]
            at += step
            if len(self._header) == _FRAME_HEADER_BYTES:
                self._skip = int.from_bytes(self._header[:3])
                self._header.clear()
                if self._skip > self._limit:
                    return False
        return True
