"""The interface between a pipe and its transport: a WebSocket, or the two standard streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...core.clients import client_key
from ...log.context import Recorder
from ...wire.errors import Refusal, Rejection


class WireBrokenError(Exception):
    """The peer broke the framing; `code` is the close code for this of RFC 6455 section 7.4."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class TooLargeError(Rejection):
    """A message is larger than `max_bytes`. It begins with `head`; `size` bytes of it arrived before the refusal.

    The connection goes on.
    """

    def __init__(self, head: bytes, size: int, max_bytes: int) -> None:
        super().__init__(Refusal.BODY_TOO_LARGE, f"The message is larger than {max_bytes} bytes (max_body_bytes)")
        self.head = head
        self.size = size


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. `client` is its address with the port.

    `peer` is the address and port of a proxy in between, None without one. `request` is the recorder of the upgrade
    request, if there was one. `label` is the label of the client. `origin` is this server's pages as the peer reaches
    them, such as `http://127.0.0.1:8000`, and empty if it cannot. `selection` are the tools in the URL.
    """

    transport: str
    address: str
    origin: str
    selection: str
    client: str = "stdio"
    peer: str | None = None
    request: Recorder | None = None
    label: str | None = None

    @property
    def holder(self) -> str | None:
        """The key of the peer's share of limits; None on standard streams, which have no share."""
        return None if self.transport == "stdio" else client_key(self.address)

    @property
    def timed(self) -> bool:
        """True if a silent peer is disconnected."""
        return self.transport != "stdio"


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """The end of a connection: the close code of RFC 6455, and `client` or the server's reason."""

    code: int
    why: str


class Closed(NamedTuple):
    """The end of a connection as it happened: its close code (None without one), and its cause.

    `by` is `client` if the peer closed first, else the server's reason.
    """

    code: int | None
    by: str


class Wire(Protocol):
    """One connection that carries whole messages both ways. Owned by the endpoint that accepted it.

    `receive` and `send` are each called by one task at a time.
    """

    @property
    def closed(self) -> Closed | None:
        """The end of the connection, once `receive` has returned None."""

    def opened(self, recorder: Recorder) -> None:
        """Take the recorder for facts about the wire itself. Called once, before all other methods."""

    async def receive(self) -> bytes | None:
        """The next message as it came, in UTF-8; None after the last.

        Raises `TooLargeError` and `WireBrokenError`.
        """

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the peer's side of the system has taken it. Raises `OSError` if it will not.

        A message is never sent in part while the connection goes on, even if this is cancelled.
        """
