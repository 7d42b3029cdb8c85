"""The contained listener: hypercorn's HTTP/1.1, HTTP/2 and WebSocket state machines behind connections of our own.

    sockets.py      listening sockets and the TLS context; everything that can be wrong before the first connection
    open_files.py   `fit`: the limit of open files, and how many connections it allows
    server.py       `serve`: accepts connections until it is cancelled
    accepting.py    accepting when the system is short of descriptors or memory
    door.py         who is let in: counts the connections and contains each one
    connection.py   one connection: its reader, its writer, its end
    outbox.py       the one write path of a connection, bounded, and never broken by a cancelled writer
    turnstile.py    who goes next: one request in each pass of the scheduler, and the clients in turn
    unbegun.py      the requests of an HTTP/2 connection whose turn has not come
    calls.py        the application calls of a connection, and what each of them has yet to receive
    http1.py        hypercorn's `H11Protocol` with its defects contained
    websocket.py    hypercorn's `WSStream` with its defects contained
    http2.py        hypercorn's `H2Protocol` with its defects contained
    stream_buffer.py, frame_sizes.py    its parts: what a stream has yet to send, and whether a frame is too large

`docs/listener.md` lists each defect of hypercorn 0.18 and how it is contained.
"""

from .calls import App
from .open_files import fit
from .server import serve
from .sockets import ListenError, open_sockets, tls_context

__all__ = ["App", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
