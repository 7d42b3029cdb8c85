"""What a client does right that only time shows: it waits, comes back later, or leaves something alone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from .acts import COMPLETION, Act, each_of, ended_task, let_pass, reports, session_twice, stay_alive
from .answers import connect_anew, silent
from .client import MODERN, Client
from .ends import until_ended, withdrawn
from .story import listen_in_vain, long_call, pause
from .wire import OneConnection, WebSocket

_LEGACY: Final = "2025-11-25"


@dataclass(frozen=True)
class Patience:
    """What is done in a revision. `short`: at a server that waits a second or less where it would wait for minutes."""

    revision: str
    act: Act
    websocket: bool = False
    short: bool = False


def _asks_in_time(client: Client) -> None:
    """Lists, pings and completions, all in measure."""
    for value in ("1", "2", "3", "4", "5"):
        client.result("completion/complete", {**COMPLETION, "argument": {"name": "year", "value": value}})
    for _ in range(3):
        client.result("prompts/list")
    for _ in range(2):
        client.result("ping")
        let_pass(client, 61)


def _extends(client: Client) -> None:
    """A silent call is given up after two seconds, one that reports is waited for."""
    params = {"name": "silent_call", "arguments": {"silentMs": 60_000, "idleMs": 100_000}}
    call = client.message("tools/call", params)
    reply = client.send(call)
    let_pass(client, 2)
    client.notify("notifications/cancelled", {"requestId": call["id"]})
    reply.close()
    _, reply = long_call(client, steps=2)
    let_pass(client, 20)
    client.response(reply)


def _hangs_up_and_cancels(client: Client) -> None:
    for seconds in (0.1, 0.3, 1.0):
        call, reply = long_call(client)
        reply.close()
        # Where the server does not see it before the notification ends the stream, it is no opportunity.
        pause(client, seconds)
        client.notify("notifications/cancelled", {"requestId": call["id"]})
    stay_alive(client, 40)


def _uses_sessions(client: Client) -> None:
    for _ in range(5):
        session_twice(client, lambda _, other: other.pages("resources/list"))


def _resumes(client: Client) -> None:
    reply = client.send(client.message("tools/call", {"name": "test_reconnection", "arguments": {}}))
    with suppress(EOFError):
        client.response(reply)
    pause(client, 0.6)
    client.response(client.get(last_event_id=reply.last_event))
    stay_alive(client, 35)


def _polls_no_more(client: Client) -> None:
    """A task of its own has ended, and one that is unknown is asked for once."""
    named = ended_task(client, 0, 0)
    if not client.is_modern:
        client.result("tasks/result", named)
        client.ask(client.message("tasks/get", {"taskId": "gone"}))
    stay_alive(client, 35)


def _keeps(client: Client) -> None:
    """A list is asked for once more while it is fresh, and then as somebody wants it."""
    client.result("prompts/list")
    let_pass(client, 20)
    client.result("prompts/list")
    stay_alive(client, 310)
    for each in range(12):
        let_pass(client, 65 + 4 * (each * each % 7))
        client.result("prompts/list")


def _reconnects(client: Client) -> None:
    for _ in range(6):
        WebSocket(client.wire.url).close()
        let_pass(client, 10)


def _finds_another_session(client: Client) -> None:
    until_ended(client)
    connect_anew(client)
    # A session with an open stream is not idle.
    client.hear_stream()
    stay_alive(client, 70)


def _misses_events(client: Client) -> None:
    """It comes back for a stream that the server has forgotten, and leaves it at that."""
    client.hear_stream()
    reply = client.send(client.message("tools/call", {"name": "progress", "arguments": {"steps": 1, "step_ms": 1}}))
    client.response(reply)
    last = str(reply.last_event).rpartition("-")[0] + "-1"
    # The server looks once a second for streams that it has kept for a second.
    pause(client, 2.2)
    client.get(last_event_id=last).close()
    stay_alive(client, 70)


def _hears_comments(client: Client) -> None:
    client.response(silent(client, 1500))


def _reports(client: Client) -> None:
    reports(client, {"progress": 1}, {"progress": 2.5})


def _pools_sessions(client: Client) -> None:
    """A session for each call, some left and some ended, on one connection; each answer is read to its end."""
    before, client.wire = client.wire, OneConnection(client.http.url)
    for ends in (False, True, False, True):
        connect_anew(client)
        client.result("tools/list")
        reply = client.send(client.message("tools/call", {"name": "progress", "arguments": {"steps": 1, "step_ms": 1}}))
        client.response(reply)
        for _ in reply:
            pass
        if ends:
            client.http.request("DELETE", client.headers(None))
    client.wire.close()
    client.wire = before
    connect_anew(client)


SCENES: Final = {
    "reports": Patience(_LEGACY, _reports),
    "in-measure": Patience(_LEGACY, _asks_in_time),
    "extends": Patience(_LEGACY, _extends),
    "hangs-up-and-cancels": Patience(_LEGACY, _hangs_up_and_cancels),
    "resumes": Patience(_LEGACY, _resumes),
    "pools-sessions": Patience(_LEGACY, _pools_sessions),
    "uses-sessions": Patience(_LEGACY, _uses_sessions),
    "polls-no-more": Patience(_LEGACY, _polls_no_more),
    "polls-no-more-modern": Patience(MODERN, _polls_no_more),
    "heeds-withdrawals": Patience(_LEGACY, each_of(withdrawn, lambda client: stay_alive(client, 40))),
    "listens": Patience(MODERN, each_of(listen_in_vain, lambda client: stay_alive(client, 70))),
    "keeps": Patience(MODERN, _keeps, websocket=True),
    "reconnects": Patience(_LEGACY, _reconnects, websocket=True),
    "finds-another-session": Patience(_LEGACY, _finds_another_session, short=True),
    "misses-events": Patience(_LEGACY, _misses_events, short=True),
    "hears-comments": Patience(MODERN, _hears_comments, short=True),
    "answers-pings": Patience(MODERN, _hears_comments, websocket=True, short=True),
}


def show(client: Client, name: str) -> None:
    """Do one of these things, in a short life."""
    client.connect()
    client.pages("tools/list")
    SCENES[name].act(client)
    client.call("chatty")
    client.end()
