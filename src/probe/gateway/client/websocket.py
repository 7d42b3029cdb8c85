"""One WebSocket, over wsproto: the handshake, messages sent, messages received."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import trio
import wsproto
import wsproto.events as ws
from pydantic_core import from_json

from ...wire.jsonrpc import encode
from .live import Target, connect
from .records import Arrived, ClientExchange, digest

_READ_BYTES = 64 * 1024
_TALK_S = 5.0


async def converse(to: Target, name: str, messages: Sequence[Any], answers: int) -> ClientExchange:
    """Open a WebSocket, send these messages, and wait for so many answers; then close it.

    The record has each failure: the status of a refused handshake, else the reason.
    """
    draft, text = ClientExchange(name, "WebSocket", "GET", time.time()), bytearray()
    try:
        stream, _ = await connect(to)
    except OSError as error:
        draft.problem, draft.end = str(error), "refused"
        draft.finish(text, time.time())
        return draft
    try:
        with trio.move_on_after(_TALK_S):
            await _talk(stream, to, draft, text, messages, answers)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        draft.end = draft.end if draft.over else "reset"
    except wsproto.utilities.RemoteProtocolError as error:
        draft.faults.append(f"WebSocket: {error}")
        draft.end = "broken"
    finally:
        await trio.aclose_forcefully(stream)
    draft.finish(text, time.time())
    return draft


async def _talk(
    stream: trio.abc.Stream,
    to: Target,
    draft: ClientExchange,
    text: bytearray,
    messages: Sequence[Any],
    answers: int,
) -> None:
    connection = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
    fields = [(name.encode(), value.encode()) for name, value in to.headers]
    hello = ws.Request(host=to.authority, target=to.path, subprotocols=["mcp"], extra_headers=fields)
    await stream.send_all(connection.send(hello))
    while not draft.over:
        data = await stream.receive_some(_READ_BYTES)
        connection.receive_data(bytes(data) or None)
        now = time.time()
        for event in connection.events():
            reply = _take(draft, text, event, now, answers)
            if isinstance(event, ws.AcceptConnection):
                for message in messages:
                    await stream.send_all(connection.send(ws.TextMessage(encode(message).decode())))
            elif reply is not None:
                await stream.send_all(connection.send(reply))
        if not data and not draft.over:
            draft.end = "cut"
    draft.ended = time.time()


def _take(draft: ClientExchange, text: bytearray, event: ws.Event, now: float, wanted: int) -> ws.Event | None:
    match event:
        case ws.AcceptConnection():
            draft.status, draft.head_at, draft.framing = 101, now, "websocket"
        case ws.RejectConnection():
            draft.status, draft.head_at = event.status_code, now
            draft.headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers)
            draft.end = "complete"
        case ws.TextMessage():
            text += event.data.encode()
            if event.message_finished:
                return _message(draft, text, now, wanted)
        case ws.Ping():
            return event.response()
        case ws.CloseConnection():
            draft.end = "complete" if event.code == 1000 else "cut"
            return event.response()
    return None


def _message(draft: ClientExchange, text: bytearray, now: float, wanted: int) -> ws.Event | None:
    data = bytes(text)
    text.clear()
    value = from_json(data)
    draft.messages.append(Arrived(now, None, len(data), digest(value), value if isinstance(value, dict) else None))
    if len(draft.messages) < wanted:
        return None
    draft.end = "complete"
    return ws.CloseConnection(1000)
