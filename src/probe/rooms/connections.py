"""The connections of the process, in the logs of the rooms whose requests they carry.

A connection of a balancer carries requests of many rooms. Each room numbers its connections by itself, and counts its
own requests: the numbers of the process would show how much others do.
"""

from __future__ import annotations

from ..server.endpoints.asgi import Scope
from ..server.endpoints.exchange import CONNECTION
from ..server.endpoints.socket_facts import SocketFacts
from .room import Room


class Connections:
    """The `ConnectionLog` of a server with rooms; `root` records for the log of the process."""

    def __init__(self, root: SocketFacts) -> None:
        self._root = root
        # Address and port of each open connection, and the rooms that it has carried requests of.
        self._open: dict[int, tuple[str, int | None, set[Room]]] = {}

    def opened(self, number: int, address: str, port: int | None) -> None:
        self._open[number] = address, port, set()
        self._root.opened(number, address, port)

    def refused(self, number: int, status: int | None, why: str) -> None:
        self._root.refused(number, status, why)

    def closed(self, number: int, by: str, requests: int) -> None:
        self._root.closed(number, by, requests)
        _address, _port, rooms = self._open.pop(number)
        for room in rooms:
            own, own_requests = room.connections.pop(number)
            room.paths.sockets.closed(own, by, own_requests)

    def carries(self, room: Room, scope: Scope) -> Scope:
        """The scope of a request of a room, with the room's number of its connection."""
        extensions = scope.get("extensions", {})
        carrier = extensions.get(CONNECTION)
        if carrier is None or carrier["number"] not in self._open:
            return scope
        number = carrier["number"]
        if number not in room.connections:
            address, port, rooms = self._open[number]
            rooms.add(room)
            room.connections[number] = [next(room.numbers), 0]
            room.paths.sockets.opened(room.connections[number][0], address, port)
        room.connections[number][1] += 1
        own = {**carrier, "number": room.connections[number][0]}
        return {**scope, "extensions": {**extensions, CONNECTION: own}}

    def left(self, room: Room) -> None:
        for number in room.connections:
            self._open[number][2].discard(room)
        room.connections.clear()
