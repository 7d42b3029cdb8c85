"""The listener: HTTP/1.1, WebSocket and (by hypercorn, with its defects contained) HTTP/2 for one ASGI application.

    sockets.py          listening sockets, the TLS context, the limit of open files: all before the first connection
    server.py           `serve`: accepts connections and finds their protocol; `watch` enforces the limits of all
    transport.py        the byte stream of a connection, and the state common to all connections
    fair_queue.py       the order of work: one request in each pass of the scheduler, clients in turn
    request_head.py     the head of a request, and a cache of heads
    http1/              HTTP/1.1: `protocol.py` is a state machine for bytes, `connection.py` one connection in one task
    http2/              HTTP/2: `connection.py` is one connection, `protocol.py` contains the defects of hypercorn
    websocket.py        one WebSocket; websocket_input.py: its handshake, the heads of its frames, incomplete messages
    calls.py            the unread events of application calls, and their errors
    outbox.py           the one write path of a connection with several sending tasks, and the times of its end

`docs/internals/listener.md` has the promises of the listener, and the list of hypercorn's defects.
"""

from .calls import App
from .server import serve
from .sockets import ListenError, fit, open_sockets, tls_context
from .transport import Hooks

__all__ = ["App", "Hooks", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
