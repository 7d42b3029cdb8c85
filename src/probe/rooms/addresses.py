"""The addresses of one room, as programs get them from `POST /api/rooms`."""

from __future__ import annotations

from dataclasses import dataclass

from .ids import secret_of


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """The addresses that others may see: GET of the dashboard and of the API."""

    dashboard: str
    api: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one room. `room` is its page for people; `secret` is that of its tool hosts."""

    room: str
    mcp: str
    websocket: str
    toolhost: str
    secret: str
    dashboard: str
    api: str
    read_only: ReadOnly


def addresses(base: str, id: str, reading: str) -> Addresses:
    """The addresses under the base URL of the server, for both ids of a room."""
    own, shown = f"{base}/r/{id}", f"{base}/r/{reading}"
    wire = own.replace("http", "ws", 1)
    return Addresses(
        room=f"{own}/",
        mcp=f"{own}/mcp",
        websocket=f"{wire}/ws",
        toolhost=f"{wire}/toolhost",
        secret=secret_of(id),
        dashboard=f"{own}/dashboard",
        api=f"{own}/api",
        read_only=ReadOnly(f"{shown}/dashboard", f"{shown}/api"),
    )
