"""The scripted client as a program: `python -m tests.judging.scripted [--revision R] [--break RULE] URL`.

With `--stdio` what follows is the command of a server, which is started. `--rules` prints what can be broken.
"""

from __future__ import annotations

import argparse

from .breaks import ACTS, BEGINNINGS, STDIO, perform
from .client import MODERN, Client
from .story import tell
from .wire import Http, Stdio, WebSocket, Wire


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revision", default=MODERN)
    parser.add_argument("--break", dest="rule", choices=[*ACTS, *BEGINNINGS, *STDIO], metavar="RULE")
    parser.add_argument("--websocket", action="store_true")
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("server", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    wire: Wire = Stdio(given.server) if given.stdio else (WebSocket if given.websocket else Http)(given.server[-1])
    client = Client(wire, given.revision)
    if given.rule is None:
        tell(client)
    else:
        perform(client, given.rule)


if __name__ == "__main__":
    main()
