"""The listener: HTTP/1.1, WebSocket and (by hypercorn, with its defects contained) HTTP/2 for one ASGI application.

    sockets.py              listening sockets and the TLS context: all errors before the first connection
    open_files.py           `fit`: the limit of open files, and the number of connections it allows
    server.py               `serve`: accepts connections until it is cancelled
    accepting.py            accepting during a shortage of descriptors or memory
    door.py                 counts the connections, refuses those beyond the limits, and contains their errors
    connection.py           finds the protocol of a connection; `watch` enforces the limits of all connections
    transport.py            the byte stream of a connection, and the state common to all connections
    times.py                the times that the end of a connection may take
    fair_queue.py           the order of work: one request in each pass of the scheduler, clients in turn
    http1/                  HTTP/1.1: `protocol.py` is a state machine for bytes, `connection.py` one connection in one
                            task, `call.py` one request with its response
    websocket.py            one WebSocket; websocket_handshake.py: the request for it, websocket_frames.py: its frames,
                            from their heads
    incomplete.py           incomplete WebSocket messages, and their bytes
    http2/                  HTTP/2: `connection.py` is one connection, `protocol.py` contains the defects of hypercorn
    calls.py                the unread events of application calls
    outbox.py, writer.py    the one write path of a connection with several sending tasks

`docs/internals/listener.md` has the promises of the listener, and the list of hypercorn's defects.
"""

from .calls import App
from .open_files import fit
from .server import serve
from .sockets import ListenError, open_sockets, tls_context
from .transport import Hooks

__all__ = ["App", "Hooks", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
