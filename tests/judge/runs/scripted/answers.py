"""Faults of a client that breaks on what it is sent, or on how it is sent."""

from __future__ import annotations

from .acts import COMPLETION, let_pass, stay_alive
from .client import Client
from .story import pause
from .wire import Reply

MUCH = {"blocks": 20, "chars": 65536}
_TRIES = 6


def gives_streams_up(client: Client) -> None:
    """It does not notice an answer that comes in an event stream, and cancels the call."""
    for token in (1, 2):
        arguments = {"steps": 1, "step_ms": 1}
        call = client.message(
            "tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": token}}
        )
        client.ask(call)
        let_pass(client, 3)
        client.notify("notifications/cancelled", {"requestId": call["id"]})
        client.result("completion/complete", COMPLETION)


def connect_anew(client: Client) -> None:
    """A new session, after which nothing is said in the one before."""
    client.session = None
    client.connect()


def leaves_at_comments(client: Client) -> None:
    """It closes each stream at its first comment, which comes at another time each time."""
    for each in range(_TRIES):
        reply = silent(client, 60_000)
        let_pass(client, 0.7 * each)
        until_comment(reply)
        reply.close()
        # The server has to see it before the next one.
        pause(client, 0.05)


def silent(client: Client, ms: int) -> Reply:
    """A call that says nothing for so long but comments."""
    arguments = {"silentMs": ms, "idleMs": 100_000}
    return client.send(client.message("tools/call", {"name": "silent_call", "arguments": arguments}))


def until_comment(reply: Reply) -> None:
    """Read to the first comment of an event stream. Raises `EOFError` where none comes."""
    for line in reply.lines:
        if line.startswith(b":"):
            return
    raise EOFError


def ends_at_errors(client: Client) -> None:
    """It ends its session after each error, and goes on after each good result."""
    for _ in range(2):
        client.call("simple_tool")
        client.call("fail", {"how": "tool_error"})
        client.http.request("DELETE", client.headers(None))
        connect_anew(client)


def loses_much(client: Client) -> None:
    """It goes on after a small result, and begins anew after a large one."""
    client.call("simple_tool")
    client.call("long_output", MUCH)
    connect_anew(client)
    stay_alive(client, 310)


def undeclared(client: Client) -> None:
    """It asks for a task as if it had never heard of tasks."""
    named = {"taskId": client.call("slow_compute", {"seconds": 60})["taskId"]}
    declared, client.declared = client.declared, {}
    client.ask(client.message("tasks/get", named))
    client.declared = declared
    client.result("tasks/cancel", named)
