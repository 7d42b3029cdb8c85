"""Dashboards: readers of the live feed, in a process of their own. `python -m bench.readers PORT READING STUCK`.

Says `ready` when all are connected, and reads until its input ends; the stuck ones never read anything.
"""

from __future__ import annotations

import selectors
import socket
import sys

_REQUEST = (
    "GET /dashboard/events?tables=tasks,calls,sessions,streams HTTP/1.1\r\n"
    "host: 127.0.0.1:{port}\r\naccept: text/event-stream\r\naccept-encoding: gzip\r\n\r\n"
)
_READ = 256 * 1024
_HELLO_S = 20.0


def main(port: int, reading: int, stuck: int) -> int:
    """Run until the input ends; returns the exit code: 1 when a reader that reads was not served to the end."""
    readers = [_connected(port) for _ in range(reading + stuck)]
    with selectors.DefaultSelector() as selector:
        for reader in readers[:reading]:
            # The response begins with the hello, so its first bytes say that the reader is one.
            if not reader.recv(_READ).startswith(b"HTTP/1.1 200 "):
                return 1
            reader.settimeout(None)
            selector.register(reader, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return 0
                if isinstance(key.fileobj, socket.socket) and not key.fileobj.recv(_READ):
                    return 1


def _connected(port: int) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port), timeout=_HELLO_S)
    reader.sendall(_REQUEST.format(port=port).encode())
    return reader


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
