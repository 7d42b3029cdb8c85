"""One HTTP/1.1 connection for load: requests as ready bytes, responses read with as little work as possible.

Not a general client. It trusts its peer to be a correct server, because what costs time here is measured as if the
server had taken it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import trio

_READ = 64 * 1024
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class BrokenResponseError(Exception):
    """The peer closed, or sent something else than a response of a known length."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status and header block of a response; names in lower case, values as sent."""

    status: int
    raw: bytes

    def get(self, name: bytes) -> bytes | None:
        """The value of a header, None without it."""
        start = self.raw.lower().find(b"\r\n" + name + b":")
        if start < 0:
            return None
        start += len(name) + 3
        return self.raw[start : self.raw.index(b"\r\n", start)].strip()


class Connection:
    """A keep-alive connection; an async context manager that closes it. One exchange at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = trio.socket.socket()
        self._buffer = b""

    async def __aenter__(self) -> Self:
        """Connect to 127.0.0.1."""
        self._socket.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)
        await self._socket.connect(("127.0.0.1", self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the socket."""
        self._socket.close()

    async def exchange(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request and read the whole response. Raises `BrokenResponseError`."""
        head = await self.open(request)
        if (length := head.get(b"content-length")) is not None:
            return head, await self._exactly(int(length))
        if head.get(b"transfer-encoding") == b"chunked":
            return head, await self._to_last_chunk()
        if head.status in (202, 204):
            return head, b""
        raise BrokenResponseError(f"a response of unknown length: {head.raw[:200]!r}")

    async def open(self, request: bytes) -> Head:
        """Send a request and read the head of the response. Raises `BrokenResponseError`."""
        await self._send(request)
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            self._buffer += await self._some()
        raw, self._buffer = self._buffer[: end + 2], self._buffer[end + 4 :]
        return Head(int(raw[9:12]), raw)

    async def part(self) -> bytes:
        """What has arrived of the body, chunk framing and all; empty at the end of the connection."""
        if self._buffer:
            part, self._buffer = self._buffer, b""
            return part
        return await self._socket.recv(_READ)

    async def _send(self, data: bytes) -> None:
        sent = await self._socket.send(data)
        while sent < len(data):
            sent += await self._socket.send(data[sent:])

    async def _some(self) -> bytes:
        data = await self._socket.recv(_READ)
        if not data:
            raise BrokenResponseError("the server closed the connection")
        return data

    async def _exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._buffer += await self._some()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    async def _to_last_chunk(self) -> bytes:
        # The framing stays in the body: nothing that is looked for in it, all of it short, is cut by a chunk.
        while not self._buffer.endswith(_LAST_CHUNK) and self._buffer != _LAST_CHUNK[2:]:
            self._buffer += await self._some()
        body, self._buffer = self._buffer, b""
        return body
