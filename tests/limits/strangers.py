"""Clients that are not on this machine, which alone has no limits by address: in memory, and behind a trusted proxy."""

from __future__ import annotations

from typing import Any

from ..support.legacy import ALL_CAPABILITIES, Legacy
from ..support.modern import Modern
from ..support.probe import Probe

ANN, BEN = "203.0.113.1", "203.0.113.2"
LOCAL = "127.0.0.1"


def seen_from(app: Any, address: str) -> Any:
    """The application, as a client at an address reaches it."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": (address, 50000)}, receive, send)

    return served


async def legacy(probe: Probe, address: str, **options: Any) -> Legacy:
    """A session of a client at an address."""
    client = Legacy(seen_from(probe.app, address), "/mcp?tools=all")
    await client.initialize(capabilities={**ALL_CAPABILITIES, **options})
    return client


def modern(probe: Probe, address: str) -> Modern:
    return Modern(seen_from(probe.app, address), "/mcp?tools=all")


def reached(probe: Probe) -> list[tuple[str, float]]:
    return [(event["limit"], event["value"]) for event in probe.events("limit.reached")]
