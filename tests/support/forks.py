"""Servers on standard streams, forked from one process that has imported them: none of them pays for a start.

`forking` runs that process; `python -m tests.support.forks FD` is it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import BinaryIO

from probe.cli.program import main as serve


@dataclass
class Forked:
    """One server. Whoever started it closes `stdin` and `stdout`, and waits for its end once."""

    pid: int
    stdin: BinaryIO
    stdout: BinaryIO
    life: int

    def terminate(self) -> None:
        """Send it SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout: float) -> None:
        """Return when the process is gone, and close `life`. Raises `TimeoutError`."""
        ended, _, _ = select.select([self.life], [], [], timeout)
        if not ended:
            raise TimeoutError(f"server {self.pid} goes on")
        os.close(self.life)


@contextmanager
def forking() -> Iterator[Callable[..., Forked]]:
    """Gives what starts a server, from the arguments of `mcp-probe stdio`; one caller at a time."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.support.forks", str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
        theirs.close()

        def start(*arguments: str) -> Forked:
            (input, stdin), (stdout, output), (life, lives) = os.pipe(), os.pipe(), os.pipe()
            socket.send_fds(ours, [json.dumps(arguments).encode()], [input, output, lives])
            for each in (input, output, lives):
                os.close(each)
            return Forked(int(ours.recv(100)), os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), life)

        try:
            yield start
        finally:
            # The end of the connection is the end of the process.
            ours.shutdown(socket.SHUT_RDWR)
            process.wait(10)


def main() -> None:
    """Fork a server for each message with its arguments and its streams, and tell its number."""
    # The command line imports it with the first command.
    import_module("probe.cli.app")
    # Nobody waits for a server.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        while True:
            said, streams, _, _ = socket.recv_fds(connection, 65536, 3)
            if not said:
                return
            if (pid := os.fork()) == 0:
                connection.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.dup2(streams[0], 0)
                os.dup2(streams[1], 1)
                for each in streams[:2]:
                    os.close(each)
                # The inherited object takes its file for what it was: perhaps a file with a position.
                sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
                os._exit(serve(["stdio", *json.loads(said)]))
            for each in streams:
                os.close(each)
            connection.sendall(str(pid).encode())


if __name__ == "__main__":
    main()
