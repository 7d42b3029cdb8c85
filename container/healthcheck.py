"""Ends with 0 if the server in this container answers `/health`, else with 1: the image has no curl, and needs none."""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection, HTTPException

_TIMEOUT_S = 3


def healthy(port: int) -> bool:
    """Whether the server on this port of this machine is alive."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if healthy(int(os.environ.get("MCP_PROBE_PORT", "8000"))) else 1)
