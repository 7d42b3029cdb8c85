"""A client that does everything right stays without FAIL and WARN, whichever entry of its log is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..support.rows import each, row
from .checks import WAYS, Way
from .logs import INFO, MODERN, OFFERED, Asked, HttpSession, Log, judged, recorded

TOOLS: Final = {"tools": [{"name": "chatty", "inputSchema": {"type": "object"}}]}
CONTENT: Final = {"content": [{"type": "text", "text": "done"}]}
KEPT: Final = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "public"}
DISCOVERED: Final = {"supportedVersions": [MODERN, "2025-06-18"], "capabilities": OFFERED, "serverInfo": INFO, **KEPT}


def _works(session: Any) -> None:
    """A session lists, calls, hears of news, lists again, answers a ping, cancels a call, and ends."""
    log = session.log
    session.answer(session.request("tools/list"), TOOLS)
    session.answer(session.call("chatty"), CONTENT)
    news = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if isinstance(session, HttpSession):
        call = session.call("chatty")
        streamed = session.client.stream(call)
        streamed.send({"jsonrpc": "2.0", "id": call.id, "result": CONTENT})
        session.client.leave(Asked(0, None, None, streamed.context, call.exchange))
        stream = session.get()
        stream.send(news)
        question = stream.ask("ping")
    else:
        session.tell(news)
        question = session.ask("ping")
    log.after(0.2)
    session.reply(question)
    session.answer(session.request("tools/list"), TOOLS)
    for _ in range(2):
        session.answer(session.call("chatty", _meta={"progressToken": "again"}), CONTENT)
        log.after(3)
    call = session.call("chatty", _meta={"progressToken": "t"})
    log.after(1)
    session.notify("notifications/cancelled", {"requestId": call.id})
    log.after(20)
    session.answer(session.request("ping"))
    log.after(20)
    if isinstance(session, HttpSession):
        session.delete()
    else:
        session.close()


def legacy(client: Any, revision: str) -> None:
    """A client of the legacy era."""
    _works(client.session(revision))


def both(client: Any, revision: str) -> None:
    """A client of both eras asks first which the server knows, and takes the legacy one."""
    client.answer(client.modern("server/discover"), DISCOVERED)
    client.log.after(0.2)
    _works(client.session(revision))


def modern(client: Any, revision: str) -> None:
    """A client of the modern era."""
    client.answer(client.modern("server/discover"), DISCOVERED)
    client.answer(client.modern("tools/list"), {**TOOLS, **KEPT})
    for _ in range(2):
        client.answer(client.modern("tools/call", {"name": "chatty", "arguments": {}}), CONTENT)


def batches(client: Any, revision: str) -> None:
    """A client sends an array where the revision has arrays, and has a session of another one later."""
    first = client.session("2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 50, "method": "ping"}
    if isinstance(first, HttpSession):
        first.post(ping, message={"batch": 0})
        client.session("2025-11-25")
    else:
        first.post(ping, batch=0)
        first.close()
        getattr(client.log, client.transport)().session("2025-11-25")


@each("story", [legacy, both, modern, batches])
@each("way", WAYS)
def test_no_missing_entry_accuses_a_right_client(story: Callable[[Any, str], None], way: Way) -> None:
    transport, revision = way
    log = Log()
    story(getattr(log, transport)(), revision)
    _accuses_nobody(log)
    for place in range(len(log.items)):
        holed = recorded([*log.items[:place], *log.items[place + 1 :]])
        holed.seq = log.seq
        with row(without=log.items[place]):
            _accuses_nobody(holed)


def _accuses_nobody(log: Log) -> None:
    for label, client in judged(log).items():
        assert client.faults == {}, (label, {rule: client.remarks[rule] for rule in client.faults})
