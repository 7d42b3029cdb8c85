"""The interface between a pipe and its transport: a WebSocket, or the two standard streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...core.clients import client_key
from ...log.context import Recorder
from ...wire.errors import Refusal, Rejection


class WireBrokenError(Exception):
    """The peer did what ends its connection; `code` is the close code of RFC 6455 section 7.4 that says so."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class TooLargeError(Rejection):
    """A message is larger than `max_bytes`: it begins with `head`, and `size` bytes of it came before it was refused.

    The connection goes on.
    """

    def __init__(self, head: bytes, size: int, max_bytes: int) -> None:
        super().__init__(Refusal.BODY_TOO_LARGE, f"The message is larger than {max_bytes} bytes (max_body_bytes)")
        self.head = head
        self.size = size


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. `client` is the address with its port.

    `peer` is the address and port of a proxy that speaks for the client, None where there is none. `request` is the
    recorder of the upgrade request, if there was one; `label` is the name that the client was given.
    `origin` is where the peer reaches this server's pages, empty when it cannot; `selection` the tools it asks for.
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
        """The key by which the peer's share of limits counts; None where it shares with nobody, on standard streams."""
        return None if self.transport == "stdio" else client_key(self.address)

    @property
    def timed(self) -> bool:
        """Whether a silent peer is given up. The client that started this process keeps it as long as it wants."""
        return self.transport != "stdio"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a connection is to end: the close code of RFC 6455, and `client` or why the server ends it."""

    code: int
    why: str


class Closed(NamedTuple):
    """How a connection has ended: its close code (None where it has none), and who ended it.

    `by` is `client` when the peer went first, else why the server ended it.
    """

    code: int | None
    by: str


class Wire(Protocol):
    """One connection that carries whole messages both ways. Owned by the endpoint that accepted it.

    `receive` and `send` are each called by one task at a time.
    """

    @property
    def closed(self) -> Closed | None:
        """How the connection has ended, once `receive` has given None."""

    def opened(self, recorder: Recorder) -> None:
        """The connection is in the log: facts about the wire itself go to this recorder. Called once, first of all."""

    async def receive(self) -> bytes | None:
        """The next message as it came, in UTF-8; None when nothing more will come.

        Raises `TooLargeError` and `WireBrokenError`.
        """

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the peer's side of the system has taken it. Raises `OSError` when it will not.

        Cancelled or not, a message is never sent in part while the connection goes on.
        """
