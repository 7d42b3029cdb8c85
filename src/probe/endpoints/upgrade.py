"""The handshake of a WebSocket: an HTTP request, judged as one before it becomes a connection."""

from __future__ import annotations

from ..engine.engine import Engine
from ..observe.events import HttpResponse
from .asgi import Receive, Scope, Send, before_upgrade
from .exchange import Exchange
from .problem_details import RefusedError
from .rooms import Unsent

_SWITCHING_PROTOCOLS = 101


def upgrade_exchange(engine: Engine, unsent: Unsent, scope: Scope, receive: Receive, send: Send) -> Exchange:
    """The upgrade request as the HTTP request that it is; what it answers is sent in place of the upgrade."""
    request = {**scope, "method": "GET", "scheme": "https" if scope["scheme"] == "wss" else "http"}
    url = engine.settings.public_url
    return Exchange(
        next(engine.exchanges), request, receive, before_upgrade(send), engine.log, unsent, engine.outbox, url
    )


async def accept(engine: Engine, exchange: Exchange, send: Send, subprotocol: str) -> bool:
    """Go on as a WebSocket; False when the client has gone meanwhile."""
    try:
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
    except OSError:
        exchange.close("client")
        return False
    engine.log.append(HttpResponse(exchange.number, _SWITCHING_PROTOCOLS, "", None, None, None))
    return True


def upgrade_required(subprotocol: str) -> RefusedError:
    """The answer to a request that wants no upgrade."""
    return RefusedError(
        426,
        f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{subprotocol}"',
        # HTTP/2, which knows neither of them, leaves them out.
        [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
    )
