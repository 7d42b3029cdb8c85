"""The listener: HTTP/1.1, WebSocket and (by hypercorn, with its defects contained) HTTP/2 for one ASGI application.

`server.serve` accepts connections and finds their protocol. docs/internals/listener.md has the promises of the
listener, and the list of hypercorn's defects.
"""

from .calls import App
from .server import serve
from .sockets import ListenError, fit, open_sockets, tls_context
from .transport import Hooks

__all__ = ["App", "Hooks", "ListenError", "fit", "open_sockets", "serve", "tls_context"]
