"""The answer to a request for a WebSocket endpoint that asks for no WebSocket."""

from __future__ import annotations

from ..problem_details import RefusedError


def upgrade_required(subprotocol: str) -> RefusedError:
    """The answer to a request that wants no upgrade."""
    return RefusedError(
        426,
        f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{subprotocol}"',
        # HTTP/2, which knows neither of them, leaves them out.
        [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
    )
