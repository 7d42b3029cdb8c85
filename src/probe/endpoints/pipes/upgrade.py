"""The handshake of a WebSocket: an HTTP request, judged as one before it becomes a connection."""

from __future__ import annotations

from ...engine.engine import Engine
from ..asgi import Receive, Scope, Send, before_upgrade
from ..exchange import Exchange
from ..problem_details import RefusedError
from ..rooms import Unsent

_SWITCHING_PROTOCOLS = 101


def upgrade_exchange(engine: Engine, unsent: Unsent, scope: Scope, receive: Receive, send: Send) -> Exchange:
    """The upgrade request as the HTTP request that it is; what it answers is sent in place of the upgrade."""
    request = {**scope, "method": "GET", "scheme": "https" if scope["scheme"] == "wss" else "http"}
    return Exchange(engine, unsent, request, receive, before_upgrade(send))


async def accept(exchange: Exchange, send: Send, subprotocol: str) -> bool:
    """Go on as a WebSocket; False when the client has gone meanwhile."""
    try:
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
    except OSError:
        exchange.close("client")
        return False
    exchange.switch(_SWITCHING_PROTOCOLS)
    return True


def upgrade_required(subprotocol: str) -> RefusedError:
    """The answer to a request that wants no upgrade."""
    return RefusedError(
        426,
        f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{subprotocol}"',
        # HTTP/2, which knows neither of them, leaves them out.
        [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
    )
