"""Asks a deployed probe whether it does what clients need, through everything that stands before it.

    python infra/smoke.py https://mcp.example.org [--wait SECONDS] [--cafile FILE]

It makes a room, checks that and ends it, if the server has rooms. Prints a line per check and ends with 0 if all have
passed, else with 1. Needs Python 3.11 and nothing else. It looks at what proxies get wrong: streams held back or late,
clients whose going is not passed on, large requests, WebSockets, names that are not passed on. The checks are those of
`mcp-probe doctor`, taken from this checkout.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from probe.gateway.doctor.needs import (
    ProbeAddress,
    WrongError,
    check_call,
    in_a_room,
    modern_call,
    outcomes,
    wait_ready,
)

__all__ = ["ProbeAddress", "check_call", "main", "modern_call"]


def main(arguments: list[str]) -> int:
    """Check one probe; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check a deployed MCP Probe.")
    parser.add_argument("url", help="scheme and host, such as https://mcp.example.org")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds until it has to be ready")
    parser.add_argument("--cafile", help="a certificate authority beside those of this machine")
    given = parser.parse_args(arguments)
    server = target = ProbeAddress(given.url, given.cafile)
    wait_ready(server, given.wait)
    # Where it fails, the checks show why.
    with _failures_suppressed():
        target = in_a_room(server)
    try:
        passed = True
        for name, wrong, seconds in outcomes(target):
            passed = passed and wrong is None
            print(f"FAILED {name}: {wrong}" if wrong else f"ok     {name} ({seconds * 1000:.0f} ms)", flush=True)
    finally:
        # One that stays ends by itself after its idle time.
        if target is not server:
            with _failures_suppressed(), target.response("DELETE", "/api/room"):
                pass
    return 0 if passed else 1


def _failures_suppressed() -> suppress:
    return suppress(WrongError, OSError, HTTPException, ValueError)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
