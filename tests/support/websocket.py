"""WebSocket frames by hand, for what a good client does not do. RFC 6455 section 5.2 is all that this knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import trio
import trio_websocket

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

_FIN, _MASK = 0x80, 0x80
_MASKING_KEY = b"\x21\x43\x65\x87"


class Frame(NamedTuple):
    """One frame of the server. What it must be in any case is asserted when it is read."""

    opcode: int
    payload: bytes

    @property
    def code(self) -> int | None:
        """The code of a close frame; None where it has none."""
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.payload[:2]) if self.payload else None

    @property
    def reason(self) -> str:
        """The reason of a close frame."""
        assert self.opcode == CLOSE, self
        return self.payload[2:].decode()


def frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, masked: bool = True, rsv: int = 0, length: int | None = None
) -> bytes:
    """A frame of a client, or something like it; `length` is what it claims to have."""
    first = bytes([(_FIN if fin else 0) | rsv << 4 | opcode])
    mask = _MASK if masked else 0
    size = len(payload) if length is None else length
    if size < 126:
        head = first + bytes([mask | size])
    elif size < 65536:
        head = first + bytes([mask | 126]) + size.to_bytes(2)
    else:
        head = first + bytes([mask | 127]) + size.to_bytes(8)
    if not masked:
        return head + payload
    return head + _MASKING_KEY + bytes(byte ^ _MASKING_KEY[at % 4] for at, byte in enumerate(payload))


def close(code: int | None = 1000, reason: str = "") -> bytes:
    """A close frame of a client."""
    return frame(CLOSE, b"" if code is None else code.to_bytes(2) + reason.encode())


def upgrade(target: str = "/ws", *, leave_out: str = "", version: str = "1.1", **headers: str | list[str]) -> bytes:
    """The request. `headers` (with `_` for `-`) replace the usual ones; a list is one line for each."""
    usual: dict[str, str | list[str]] = {
        "host": "localhost",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for name, value in headers.items():
        usual[name.replace("_", "-")] = value
    usual.pop(leave_out, None)
    several = {name: [given] if isinstance(given, str) else given for name, given in usual.items()}
    lines = [f"{name}: {value}" for name, given in several.items() for value in given]
    return "\r\n".join([f"GET {target} HTTP/{version}", *lines, "", ""]).encode()


class Reader:
    """Takes what a server sends apart: first its response, then its frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take what was received."""
        self._data += data

    def head(self) -> tuple[int, dict[str, str]] | None:
        """Status and headers of the response, once it is complete."""
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end:
            return None
        self._data = rest
        status, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.split(": ", 1) for line in lines]
        return int(status.split()[1]), {name.lower(): value for name, value in pairs}

    def frame(self) -> Frame | None:
        """The next frame, once it is complete."""
        if len(self._data) < 2:
            return None
        first, size, at = self._data[0], self._data[1], 2
        assert first & 0x70 == 0, "no extension was agreed on"
        assert first & _FIN, "this server does not fragment"
        assert size & _MASK == 0, "a server does not mask"
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(self._data) < at:
                return None
            size = int.from_bytes(self._data[2:at])
        if len(self._data) < at + size:
            return None
        found = Frame(first & 0x0F, bytes(self._data[at : at + size]))
        del self._data[: at + size]
        return found

    @property
    def rest(self) -> bytes:
        """What was received and not taken."""
        return bytes(self._data)


@asynccontextmanager
async def connected(
    port: int, target: str = "/ws", *, subprotocols: list[str] | None = None, headers: Mapping[str, str] | None = None
) -> AsyncIterator[trio_websocket.WebSocketConnection]:
    """A connection of the independent client; leaving the block closes it. Raises `ConnectionRejected`."""
    extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    async with trio_websocket.open_websocket(
        "127.0.0.1", port, target, use_ssl=False, subprotocols=subprotocols, extra_headers=extra
    ) as connection:
        yield connection


async def refused(
    port: int, target: str = "/ws", *, subprotocols: list[str] | None = None, headers: Mapping[str, str] | None = None
) -> trio_websocket.ConnectionRejected:
    """The independent client's word of a handshake that the server refuses."""
    extra = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    # The client would leave a stream of its own to the collector, and so to a later test.
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        with pytest.RaisesGroup(trio_websocket.ConnectionRejected) as caught:
            async with trio.open_nursery() as nursery:
                await trio_websocket.wrap_client_stream(
                    nursery, stream, f"127.0.0.1:{port}", target, subprotocols=subprotocols, extra_headers=extra
                )
    (rejected,) = caught.value.exceptions
    assert isinstance(rejected, trio_websocket.ConnectionRejected)
    return rejected
