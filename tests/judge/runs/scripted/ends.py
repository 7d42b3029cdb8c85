"""Faults of a client whose session, stream, question or connection ends, or is about to begin."""

from __future__ import annotations

from contextlib import suppress

from wsproto.events import BytesMessage

from .acts import ELICIT, begin_task, let_pass, settled
from .answers import connect_anew
from .client import INFO, Client
from .story import pause
from .wire import Json, Pipe, WebSocket

_GONE = 404
# What the server with short times waits before it ends a session, and a little.
_IDLE_S = 2.1


def until_ended(client: Client) -> None:
    """Wait until the server has ended the session, as nothing came."""
    pause(client, _IDLE_S)
    while client.send(client.message("tools/list")).status != _GONE:
        pause(client, _IDLE_S)


def comes_back_to_the_dead(client: Client) -> None:
    dead = client.session
    until_ended(client)
    connect_anew(client)
    client.hear_stream()
    client.call("simple_tool")
    let_pass(client, 6)
    client.send(client.message("tools/list"), mcp_session_id=dead)


def leaves_sessions(client: Client) -> None:
    """Sessions are left as they are, and replaced when they have ended."""
    for _ in range(4):
        other = Client(client.wire, client.revision)
        other.connect()
    # The last one is over when the others are.
    until_ended(other)
    connect_anew(client)


def calls_again(client: Client) -> None:
    """It makes a call again whose stream was lost, and gives the first one up."""
    call = {"name": "test_reconnection", "arguments": {}}
    first = client.message("tools/call", call)
    with suppress(EOFError):
        client.response(client.send(first))
    again = client.send(client.message("tools/call", call))
    with suppress(EOFError):
        client.response(again)
    client.notify("notifications/cancelled", {"requestId": first["id"]})
    pause(client, 0.6)
    client.response(client.get(last_event_id=again.last_event))
    let_pass(client, 32)


def withdrawn(client: Client) -> Json:
    """A question of a task that was cancelled before it had an answer; the server has withdrawn it."""
    client.hear_stream()
    client.questions[ELICIT] = lambda _: None
    task = settled(client, begin_task(client, "pausable_task", itemCount=2, pauseAfterItem=1))
    question = until_heard(client, ELICIT)
    client.result("tasks/cancel", {"taskId": task["taskId"]})
    until_heard(client, "notifications/cancelled")
    return question


def until_heard(client: Client, method: str) -> Json:
    """Go on until a message of this method has come; gives it."""
    while True:
        for message in client.heard:
            if message.get("method") == method:
                return message
        client.call("simple_tool")


def answers_withdrawn(client: Client) -> None:
    question = withdrawn(client)
    let_pass(client, 6)
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})


def does_not_wait(client: Client) -> None:
    """What follows `initialize` comes with it in one write, so the server reads it before it has written an answer."""
    assert isinstance(client.wire, Pipe)
    params = {"protocolVersion": client.revision, "capabilities": client.declared, "clientInfo": INFO}
    initialize = client.message("initialize", params)
    # An array, as one more line would give the server the time for an answer.
    behind = [client.message("notifications/initialized", id=None), client.message("tools/list")]
    first, _ = client.wire.send_together([initialize, behind])
    client.response(first)
    client.wire.read_value()


def speaks_both(client: Client) -> None:
    """It begins as a legacy client, and goes on as a modern one."""
    legacy = Client(client.wire, "2025-11-25")
    legacy.connect()
    client.ids = legacy.ids
    client.result("tools/list")


def bytes_in_place_of_text(client: Client) -> None:
    """A binary frame, for which the server closes the connection; then another connection."""
    wire = client.wire
    assert isinstance(wire, WebSocket)
    wire.put(BytesMessage(b"{}"))
    wire.read_to_end()
    client.wire = WebSocket(wire.url)
    if not client.is_modern:
        client.connect()


def deaf_to_pings(client: Client) -> None:
    """Two connections are read, and no ping on them is answered, until the server cuts them off."""
    client.wire.close()
    others = [WebSocket(client.wire.url) for _ in range(2)]
    for other in others:
        other.answers_pings = False
    for other in others:
        other.read_to_end()
    client.wire = WebSocket(client.wire.url)


def hangs_up(client: Client) -> None:
    """The process ends by itself, and its WebSocket with it."""
    client.call("simple_tool")
    assert isinstance(client.wire, WebSocket)
    client.wire.socket.close()


def floods(client: Client) -> None:
    """More than 5,000 requests, as fast as they are answered, in arrays as large as the server takes them."""
    assert isinstance(client.wire, Pipe)
    for _ in range(101):
        client.wire.send([client.message("logging/setLevel", {"level": "error"}) for _ in range(50)])
        client.wire.read_value()
