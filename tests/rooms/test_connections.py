"""The connections of the process, in the logs of rooms."""

from __future__ import annotations

from typing import Any

from probe.server.endpoints.exchange import CONNECTION

from .house import House, Room, ask, house


async def carried(here: House, room: Room, number: int) -> None:
    """A request for a room on a connection of the process."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await here.app({**scope, "extensions": {CONNECTION: {"number": number, "stream_id": None}}}, receive, send)

    await ask(app, "GET", f"/r/{room.id}/mcp")


def sockets(room: Room) -> list[tuple[str, Any, Any]]:
    """The connections in the log of a room: kind, number, and how many requests it had."""
    kinds = ("socket.opened", "socket.closed")
    entries = [entry for entry in room.engine.log.since(0, 1000).entries if entry.fact.kind in kinds]
    return [(entry.fact.kind, entry.context.connection, getattr(entry.fact, "requests", None)) for entry in entries]


async def test_a_room_counts_its_own_connections_and_requests() -> None:
    async with house() as here:
        room, other = await here.open(), await here.open()
        for number in (7, 9):
            here.app.sockets.opened(number, "127.0.0.1", 4711)
        await carried(here, other, 7)
        await carried(here, other, 7)
        await carried(here, room, 7)
        await carried(here, room, 9)
        here.app.sockets.closed(7, "client", 3)
        assert sockets(other) == [("socket.opened", "tcp1", None), ("socket.closed", "tcp1", 2)]
        assert sockets(room) == [
            ("socket.opened", "tcp1", None),
            ("socket.opened", "tcp2", None),
            ("socket.closed", "tcp1", 1),
        ]


async def test_a_connection_lives_on_after_a_room() -> None:
    async with house() as here:
        room, other = await here.open(), await here.open()
        here.app.sockets.opened(7, "127.0.0.1", 4711)
        await carried(here, room, 7)
        await room.ask("DELETE", "/api/room")
        await carried(here, other, 7)
        here.app.sockets.closed(7, "client", 2)
        assert sockets(other)[-1] == ("socket.closed", "tcp1", 1)
