"""The scripted client as a program: `python -m tests.judge.runs.scripted [--revision R] [--break RULE] URL`.

With `--stdio` what follows is the command of a server, which is started.
"""

from __future__ import annotations

import argparse
import subprocess

from .breaks import ACTS, BEGINNINGS, STDIO, WATCHED, perform
from .client import MODERN, Client
from .story import tell
from .wire import Http, Stdio, WebSocket, Wire


def _wire(given: argparse.Namespace) -> Wire:
    if given.stdio:
        return Stdio(subprocess.Popen(given.server, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    return (WebSocket if given.websocket else Http)(given.server[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revision", default=MODERN)
    parser.add_argument("--break", dest="rule", choices=[*ACTS, *BEGINNINGS, *STDIO, *WATCHED], metavar="RULE")
    parser.add_argument("--websocket", action="store_true")
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("server", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    client = Client(_wire(given), given.revision)
    if given.rule is None:
        tell(client)
    else:
        perform(client, given.rule)


if __name__ == "__main__":
    main()
