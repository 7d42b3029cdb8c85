"""How long a server takes from the start of its process to its first answer to a call."""

from __future__ import annotations

import compileall
import time
from statistics import median

from .client import FIRST_ID, WrongAnswerError, open_client
from .http1 import Connection
from .servers import ROOT, Cores, Server, running


async def cold_start(server: Server, cores: Cores, times: int) -> float:
    """Seconds, the median of so many starts of compiled modules. Raises `WrongAnswerError`."""
    # As an installer does with a package: where Python may write no bytecode, each start would compile this tree.
    compileall.compile_dir(ROOT / "src", quiet=1)
    return median([await _once(server, cores) for _ in range(times)])


async def _once(server: Server, cores: Cores) -> float:
    start = time.perf_counter()
    async with running(server, "start", cores) as process, Connection(process.port) as connection:
        client = await open_client(connection, process.port, server.era)
        head, body = await connection.exchange(client.call(server.echo, FIRST_ID))
        if head.status != 200 or b'"result"' not in body:
            raise WrongAnswerError(f"the first call was answered {head.status} {body[:300]!r}")
        return time.perf_counter() - start
