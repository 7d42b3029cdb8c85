"""A loop that answers whatever arrives with the same bytes: what the load reaches where no server is in its way."""

from __future__ import annotations

import json
import selectors
import socket
import sys

_RESULT = {"content": [{"type": "text", "text": "x" * 1024}]}
_BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "result": _RESULT}, separators=(",", ":")).encode()
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: echo\r\ncontent-length: %d\r\n\r\n"
_ANSWER = _HEAD % len(_BODY) + _BODY


def main() -> None:
    """Serve until killed. A request must arrive in one piece, as those of the load do."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                accepted, _address = listener.accept()
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(accepted, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                _answer(selector, key.fileobj)


def _answer(selector: selectors.BaseSelector, client: socket.socket) -> None:
    try:
        if client.recv(65536):
            client.send(_ANSWER)
            return
    except ConnectionError:
        pass
    selector.unregister(client)
    client.close()


main()
