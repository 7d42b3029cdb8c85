"""The listener: HTTP/1.1 and WebSocket, and HTTP/2 by hypercorn with its defects contained, for one ASGI application.

    sockets.py              listening sockets and the TLS context; all that can be wrong before the first connection
    open_files.py           `fit`: the limit of open files, and how many connections it allows
    server.py               `serve`: accepts connections until it is cancelled
    accepting.py            accepting when the system is short of descriptors or memory
    door.py                 counts the connections, refuses those beyond the limits, and contains each one
    connection.py           finds the protocol of a connection; `watch` holds all connections to their limits
    transport.py            what a connection stands on, and what all connections share
    times.py                how long the end of a connection may take
    fair_queue.py           the order of work: one request in each pass of the scheduler, clients in turn
    http1/                  HTTP/1.1: `protocol.py` is a state machine that is fed bytes, `connection.py` one connection
                            in one task, `call.py` one request with its response
    websocket.py            one WebSocket; websocket_handshake.py: whether a request asks for it, websocket_frames.py:
                            its frames, from their heads
    incomplete.py           WebSocket messages that are not complete, and what they take
    http2/                  HTTP/2: `connection.py` is one connection, `protocol.py` contains the defects of hypercorn
    calls.py                what application calls have yet to receive; those of an HTTP/2 connection
    outbox.py, writer.py    the one write path of a connection on which several tasks send

`docs/internals/listener.md` says what is promised, and lists the defects of hypercorn.
"""

from .calls import App
from .open_files import fit
from .server import serve
from .sockets import ListenError, open_sockets, tls_context
from .transport import Hooks

__all__ = ["App", "Hooks", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
