"""The listener: HTTP/1.1 and WebSocket, and HTTP/2 by hypercorn with its defects contained, for one ASGI application.

    sockets.py              listening sockets and the TLS context; all that can be wrong before the first connection
    open_files.py           `fit`: the limit of open files, and how many connections it allows
    server.py               `serve`: accepts connections until it is cancelled
    accepting.py            accepting when the system is short of descriptors or memory
    door.py                 who is let in: counts the connections and contains each one
    connection.py           finds the protocol of a connection; `watch` holds all connections to their limits
    transport.py            what a connection stands on, and what all connections share
    turnstile.py            who goes next: one request in each pass of the scheduler, and the clients in turn
    http1_protocol.py       HTTP/1.1 as a state machine that is fed bytes
    http1.py                one HTTP/1.1 connection, in one task
    websocket.py            one WebSocket; websocket_frames.py: the sizes of its messages, from the heads of frames
    incomplete.py           what WebSocket messages take that are not complete
    http2_connection.py     one HTTP/2 connection: reader, writer, application calls
    http2.py                hypercorn's `H2Protocol` with its defects contained
    unbegun.py, stream_buffer.py, frame_sizes.py    parts of it
    calls.py                what application calls have yet to receive; those of an HTTP/2 connection
    outbox.py, writer.py    the one write path of a connection on which several tasks send

`docs/listener.md` says what is promised, and lists the defects of hypercorn.
"""

from .calls import App
from .open_files import fit
from .server import serve
from .sockets import ListenError, open_sockets, tls_context

__all__ = ["App", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
