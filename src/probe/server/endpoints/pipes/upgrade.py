"""The answer to a plain request for a WebSocket endpoint."""

from __future__ import annotations

from ..problem_details import RefusedError


def upgrade_required(subprotocol: str) -> RefusedError:
    """The answer to a request without an upgrade: 426, with the subprotocol to ask for."""
    return RefusedError(
        426,
        f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{subprotocol}"',
        # Not sent with HTTP/2, where neither header exists.
        [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
    )
