"""The floods: what each of their workers does, again and again.

What a worker holds at the end (sessions, tasks, streams) it leaves behind: the server has to get rid of that by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count

import trio

from . import wire
from .flood import Flood, Raw, Worker, run
from .rooms import room_path


async def session(flood: Flood, client: wire.Client) -> None:
    """A session with a GET stream that stays open, and a call every twenty seconds. Nobody ends the session."""
    async with flood.connected() as connection, flood.connected() as listening:
        _, _, id = await flood.ask(connection, wire.initialize(client))
        if not id:
            await trio.sleep(0.5)
            return
        headers = wire.in_session(id)
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await flood.ask(connection, wire.post(note, client, headers))
        head = await listening.open(wire.request("GET", client, {"accept": "text/event-stream", **headers}))
        flood.note(head.status)
        for id_ in count(2):
            await flood.ask(connection, wire.post(wire.tool("simple_tool", {}, id_), client, headers))
            await trio.sleep(20)


async def slow_reader(flood: Flood, client: wire.Client) -> None:
    """Asks for three megabytes and takes a kilobyte a second of them."""
    arguments = {"blocks": 50, "chars": 65536}
    async with flood.connected() as connection:
        head = await connection.open(
            wire.modern("tools/call", {"name": "long_output", "arguments": arguments}, client, 1)
        )
        flood.note(head.status)
        part = await connection.part()
        while part:
            await trio.sleep(1)
            part = await connection.part()


async def churn(flood: Flood, client: wire.Client) -> None:
    """Connects and goes in one of four ways: at once, half way through a head, after an answer, or with a reset."""
    way = next(flood.turns) % 4
    request = wire.modern("server/discover", {}, client, 1)
    async with flood.connected() as connection:
        if way == 1:
            await connection.send(request[:40])
        elif way > 1:
            await flood.ask(connection, request)
        if way == 3:
            connection.reset_on_close()
    flood.done += way < 2


async def cancel(flood: Flood, client: wire.Client) -> None:
    """Starts a call that would take minutes, and hangs up as soon as it has begun."""
    arguments = {"steps": 100, "step_ms": 20}
    async with flood.connected() as connection:
        head = await connection.open(wire.modern("tools/call", {"name": "progress", "arguments": arguments}, client, 1))
        flood.note(head.status)
        await connection.part()
    # As fast as the rate of one address allows.
    await trio.sleep(0.02)


async def task(flood: Flood, client: wire.Client) -> None:
    """Starts tasks that would take minutes, and forgets them; every second one is cancelled."""
    arguments = {"durationMs": 120_000}
    async with flood.connected() as connection:
        for number in count(1):
            params = {"name": "cancellable_task", "arguments": arguments}
            _, body, _ = await flood.ask(connection, wire.modern("tools/call", params, client, number, tasks=True))
            start = body.find(b'"taskId":"')
            if start >= 0 and number % 2:
                id = body[start + 10 : body.index(b'"', start + 10)].decode()
                message = wire.modern_message("tasks/cancel", {"taskId": id}, number, tasks=True)
                named = {"mcp-protocol-version": wire.MODERN, "mcp-method": "tasks/cancel", "mcp-name": id}
                await flood.ask(connection, wire.post(message, client, named))
            await trio.sleep(0.05)


async def subscription(flood: Flood, client: wire.Client) -> None:
    """Subscribes to what ticks, reads one message, and goes; every eighth one stays and reads nothing more."""
    params = {"notifications": {"resourceSubscriptions": [wire.CLOCK_URI], "toolsListChanged": True}}
    async with flood.connected() as connection:
        head = await connection.open(wire.modern("subscriptions/listen", params, client, 1))
        flood.note(head.status)
        await connection.part()
        if head.status == 200 and next(flood.turns) % 8 == 0:
            await trio.sleep_forever()
    await trio.sleep(0.05)


async def websocket(flood: Flood, client: wire.Client) -> None:
    """Opens a WebSocket, asks twenty times at once, starts a call, reads a little, and is gone without a word."""
    call = {"name": "progress", "arguments": {"steps": 100, "step_ms": 50}}
    async with flood.connected() as connection:
        head = await connection.open(wire.upgrade(client))
        flood.note(head.status)
        if head.status != 101:
            await trio.sleep(0.5)
            return
        frames = [wire.frame(wire.modern_message("server/discover", {}, id)) for id in range(20)]
        await connection.send(b"".join([*frames, wire.frame(wire.modern_message("tools/call", call, 20))]))
        for _ in range(10):
            part = await connection.part()
            # Not in one expression, which would read the number before it waits.
            flood.done += bool(part)
    await trio.sleep(0.2)


# Beyond the addresses of workers.
_OTHERS = 1 << 20
_STRANGER = wire.Client("203.0.113.1")


async def stranger(flood: Flood, client: wire.Client) -> None:
    """Asks as fast as it is answered, and all of them from one address: nearly all of it is refused."""
    async with flood.connected() as connection:
        while True:
            await flood.ask(connection, wire.modern("server/discover", {}, _STRANGER._replace(prefix=flood.prefix), 1))


async def reset(flood: Flood, client: wire.Client) -> None:
    """Opens HTTP/2 streams and resets each in the same breath, a hundred calls in all; then asks for a ping."""
    async with flood.connected() as connection:
        await connection.send(wire.resets(next(flood.turns), flood.prefix))
        seen = b""
        while wire.PONG not in seen:
            part = await connection.part()
            if not part:
                flood.errors["closed"] += 1
                return
            seen = seen[-len(wire.PONG) :] + part
        flood.done += wire.RESETS


async def slow_body(flood: Flood, client: wire.Client) -> None:
    """Sends nearly four megabytes of a body, a part now and then, and never its end."""
    part, parts = b" " * 65536, 64

    async def feed(connection: Raw) -> None:
        for _ in range(parts - 1):
            await trio.sleep(0.1)
            await connection.send(part)

    async with flood.connected() as connection, trio.open_nursery() as nursery:
        nursery.start_soon(feed, connection)
        head = await connection.open(wire.post_head(client, len(part) * parts))
        flood.note(head.status)
        nursery.cancel_scope.cancel()


async def draft_stream(flood: Flood, client: wire.Client) -> None:
    """Asks for four megabytes on draft streams, hangs up when each has begun, and never comes back for them."""
    async with flood.connected() as connection:
        _, _, id = await flood.ask(connection, wire.initialize(client, streams=True))
    arguments = {"blocks": 60, "chars": 65536}
    for number in range(2, 10 if id else 2):
        async with flood.connected() as connection:
            call = wire.tool("long_output", arguments, number)
            flood.note((await connection.open(wire.post(call, client, wire.in_session(id)))).status)
    await trio.sleep(0.2)


async def new_room(flood: Flood, client: wire.Client) -> None:
    """Makes rooms and opens them: every second one from one address, the others each as another client."""
    turn = next(flood.turns)
    client = wire.Client.numbered(_OTHERS + turn) if turn % 2 else _STRANGER
    async with flood.connected() as connection:
        status, body, _ = await flood.ask(connection, wire.new_room(client))
        if status == 201:
            await flood.ask(connection, wire.request("GET", client, {}, f"{room_path(body)}/api/room"))


async def nothing(flood: Flood, client: wire.Client) -> None:
    """Does nothing: what the others wait for by themselves."""
    await trio.sleep(0.1)


FLOODS: dict[str, tuple[Worker, int, int]] = {
    "sessions and streams": (session, 2000, 5),
    "slow readers": (slow_reader, 200, 1),
    "connection churn": (churn, 100, 1),
    "cancel storm": (cancel, 100, 1),
    "task flood": (task, 50, 1),
    "subscription flood": (subscription, 400, 1),
    "WebSocket flood": (websocket, 200, 1),
    "rate-limited strangers": (stranger, 64, 1),
    "HTTP/2 resets": (reset, 50, 1),
    "slow bodies": (slow_body, 200, 1),
    "abandoned draft streams": (draft_stream, 50, 1),
}
"""What each does, how many do it at once, and its part of the time.

Two thousand sessions come slowly: to open one takes four requests, and more of them in a second than the server can
answer would measure how long the queue gets, which is then the same for everybody.
"""

IN_ROOM = {"no flood": (nothing, 1, 1), **FLOODS, "new rooms": (new_room, 50, 1)}
"""The floods of a client in its room."""


def lengths(names: Sequence[str], seconds: float) -> dict[str, float]:
    """How many seconds each of these floods gets of so many."""
    parts = {name: IN_ROOM[name][2] for name in names}
    return {name: seconds * part / sum(parts.values()) for name, part in parts.items()}


def start(
    name: str, port: int, seconds: float, share: float, prefix: str = ""
) -> tuple[Flood, Callable[[], Awaitable[None]]]:
    """A flood for so many seconds with this share of its usual workers, and what runs it; `prefix` as in `Flood`."""
    worker, workers, _ = IN_ROOM[name]
    flood = Flood(port, trio.current_time() + seconds, prefix)
    return flood, partial(run, flood, worker, max(2, round(workers * share)))
