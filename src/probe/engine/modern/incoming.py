"""One modern request with everything that is known about it: there is no session to remember any of it."""

from __future__ import annotations

from dataclasses import dataclass

from ...wire.jsonrpc import Request
from ...wire.v2026.meta import RequestMeta
from ..offers import Offer


@dataclass(frozen=True, slots=True)
class Source:
    """Where a request came from: the exchange, the label of its client, and under what that reaches this server.

    `origin` is scheme and authority of a URL, empty where the client cannot reach its pages. `transport` is `http`,
    `websocket` or `stdio`. `holder` is the client address by which shares of limits count, None where they do not.
    """

    exchange: int
    client: str | None
    origin: str
    transport: str = "http"
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request that has climbed the ladder, what it says about itself, what its URL offers, and whence it came."""

    request: Request
    meta: RequestMeta
    offer: Offer
    source: Source
