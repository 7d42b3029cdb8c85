"""A real server process on a free port of the loopback interface."""

from __future__ import annotations

import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_START_S = 30.0
# the grace period below, the flush of the responses, and a slow machine
_STOP_S = 15.0


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Run `mcp-probe serve` with these arguments; gives the URL of `/mcp`.

    Leaving the block sends SIGTERM: the process must then end by itself, with exit code 0 and without a traceback.
    """
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--grace-s", "1", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _announced_url(process)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=_STOP_S)
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in said) == (0, False), said


def _announced_url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        assert selector.select(_START_S), f"the server said nothing within {_START_S:g} s"
    line = process.stderr.readline()
    found = re.search(r"http://\S+/mcp", line)
    assert found, f"no URL in {line!r}"
    return found[0]
