"""What may stand before a probe: one that holds back what it passes on, one that is late, and one that switches."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_PATIENCE_S = 30


class _Buffering(BaseHTTPRequestHandler):
    """Reads a whole response before it passes on any of it, and knows no upgrades: a badly configured proxy."""

    protocol_version = "HTTP/1.1"
    upstream = ("127.0.0.1", 0)

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "upgrade")}
        with closing(HTTPConnection(*self.upstream, timeout=_PATIENCE_S)) as connection:
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            answer = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = _pass_on  # noqa: N815 - the names that http.server looks for

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def buffering(upstream: str) -> Iterator[str]:
    """A proxy before this origin that buffers; gives its own."""
    parts = urlsplit(upstream)
    handler = type("Handler", (_Buffering,), {"upstream": (parts.hostname, parts.port)})
    with _answering(handler) as own:
        yield own


@contextmanager
def _answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(_PATIENCE_S)


class _Late(_Buffering):
    """Passes each piece of a stream on after a time, as Nagle's algorithm does with a client that acknowledges late."""

    late_s = 0.0

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with closing(HTTPConnection(*self.upstream, timeout=_PATIENCE_S)) as connection:
            connection.request(self.command, self.path, body or None, dict(self.headers.items()))
            response = connection.getresponse()
            self.send_response(response.status)
            self.send_header("Content-Type", response.headers["content-type"])
            self.send_header("Connection", "close")
            self.end_headers()
            streamed = response.headers["content-type"] == "text/event-stream"
            while piece := response.read1():
                time.sleep(self.late_s if streamed else 0)  # real time: a proxy that holds streams back
                self.wfile.write(piece)
        self.close_connection = True

    do_GET = do_POST = _pass_on  # noqa: N815 - likewise


@contextmanager
def delaying(upstream: str, seconds: float) -> Iterator[str]:
    """A proxy before this origin that passes each piece of a stream on so much later; gives its own."""
    parts = urlsplit(upstream)
    handler = type("Handler", (_Late,), {"upstream": (parts.hostname, parts.port), "late_s": seconds})
    with _answering(handler) as own:
        yield own


@contextmanager
def switching(target: Callable[[], str], host: str = "127.0.0.1") -> Iterator[str]:
    """Passes each connection on to the origin that `target` names at that moment, as an ingress does."""
    with socket.create_server((host, 0)) as listener:
        threading.Thread(target=_accept, args=(listener, target), daemon=True).start()
        yield f"http://{host}:{listener.getsockname()[1]}"
        # wakes accept(), which closing alone does not
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, target: Callable[[], str]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_join, args=(client, urlsplit(target())), daemon=True).start()


def _join(client: socket.socket, target: object) -> None:
    with client, selectors.DefaultSelector() as selector:
        try:
            server = socket.create_connection((target.hostname, target.port), _PATIENCE_S)
        except OSError:
            return
        with server:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while ready := selector.select(_PATIENCE_S):
                for key, _ in ready:
                    if not _moved(key.fileobj, key.data):
                        return


def _moved(source: socket.socket, sink: socket.socket) -> bool:
    try:
        data = source.recv(65536)
        sink.sendall(data)
    except OSError:
        return False
    return bool(data)
