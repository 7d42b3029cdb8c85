"""`python -m load.start PROGRAM`: from the start of an installed `mcp-probe` to the first call that it has answered.

Each time is of a process of its own. The first is told apart: what it loads may not be in the system's memory yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request
from statistics import median

from . import wire

_TIMES = 10
_PATIENCE_S = 30


def first_answer_s(program: str) -> float:
    """The seconds for one start."""
    began = time.monotonic()
    command = [program, "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603 - named by the caller
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+/mcp", server.stderr.readline())
            assert found, "it does not say where it listens"
            _call(found[0])
            return time.monotonic() - began
        finally:
            server.terminate()
            server.wait(_PATIENCE_S)


def _call(url: str) -> None:
    head, _, body = wire.modern("tools/call", {"name": "simple_tool", "arguments": {}}, wire.Client(""), 1).partition(
        b"\r\n\r\n"
    )
    lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
    headers = {name: value for name, _, value in lines if name not in {"host", "x-forwarded-for"}}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - http, as matched above
    with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 - the same
        assert b"Completed after 0ms" in answer.read()


def main() -> None:
    """Measure, and print both figures."""
    first, *others = [first_answer_s(sys.argv[1]) for _ in range(1 + _TIMES)]
    sys.stdout.write(f"first start {first:.2f} s, then {median(others):.2f} s (median of {_TIMES})\n")


if __name__ == "__main__":
    main()
