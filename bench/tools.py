"""The programs that put load on a server: wrk for HTTP/1.1, h2load for HTTP/2. Both take far less than any server here.

Each keeps its clients busy: a client sends the next call as soon as the last one is answered.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import trio

from .client import FIRST_ID, Client, Sessionless, Tool, WrongAnswerError, open_client
from .http1 import Connection
from .servers import Running

_FOREVER_S = 3600
# No id is used twice in a session, and no client comes so far before it.
_SECOND_ID = FIRST_ID + 4_000_000
# wrk gives a request up after so long; with 256 clients of a slow server one waits for half a second.
_TIMEOUT_S = 30

# `request` runs once for each request, so it does nothing but count: the rest is ready. A session is no connection's
# own: each request is of the next one of its group. `setup` runs once for each thread, before it begins.
_SCRIPT = """
local heads, tail, ids, n = {%s}, %s, {}, 0
local in_group, groups = %d, 0
for each = 1, #heads do ids[each] = %d end
setup = function(thread)
  thread:set("before", groups * in_group)
  groups = groups + 1
end
request = function()
  n = n %% in_group + 1
  local each = before + n
  ids[each] = ids[each] + 1
  return heads[each] .. ids[each] .. tail
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"done": %%d, "failed": %%d, "seconds": %%f, "p50": %%f, "p99": %%f}\\n', summary.requests,
    failed, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls per second, how long one took (milliseconds), and what one took of the server's processor."""

    per_second: float
    p50_ms: float
    p99_ms: float
    processor_us: float


async def calls(running: Running, clients: int, *, warm_up_s: float, window_s: float) -> Calls:
    """So many clients call again and again. Raises `WrongAnswerError` for whatever is not the tool's answer."""
    load = Load(running.port, running.server.echo, [await _clients(running, clients)], clients)
    return await load.calls(running.cpu_s, warm_up_s=warm_up_s, window_s=window_s)


@dataclass(frozen=True, slots=True)
class Load:
    """Calls of a tool in the name of some clients, over so many connections.

    The `groups` are of one size, and each has the same part of the connections, on which its clients call in turn.
    """

    port: int
    tool: Tool
    groups: Sequence[Sequence[Client]]
    connections: int

    async def calls(self, processor_s: Callable[[], float], *, warm_up_s: float, window_s: float) -> Calls:
        """Keep all connections busy. Raises `WrongAnswerError` for whatever is not the tool's answer."""
        with self.script(FIRST_ID) as warm_up, self.script(_SECOND_ID) as window:
            await _run(self.command(warm_up_s, warm_up))
            before = processor_s()
            printed = await _run(self.command(window_s, window))
            cpu_s = processor_s() - before
        found = json.loads(printed.splitlines()[-1])
        if found["failed"] or not found["done"]:
            raise WrongAnswerError(f"wrk counts {found['done']} answers and {found['failed']} failures")
        return Calls(found["done"] / found["seconds"], found["p50"], found["p99"], cpu_s / found["done"] * 1e6)

    def command(self, seconds: float, script: str) -> list[str]:
        """wrk for so long."""
        clients = [f"--threads={len(self.groups)}", f"--connections={self.connections}", f"--timeout={_TIMEOUT_S}s"]
        return ["wrk", *clients, f"--script={script}", _duration(seconds), f"http://127.0.0.1:{self.port}/mcp"]

    @contextmanager
    def script(self, first_id: int) -> Iterator[str]:
        """The name of a file by which wrk sends a call of each client of a group in turn."""
        (in_group,) = {len(group) for group in self.groups}
        parts = [client.numberless(self.tool) for group in self.groups for client in group]
        heads = ",".join(_lua(head) for head, _ in parts)
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(_SCRIPT % (heads, _lua(parts[0][1]), in_group, first_id))
            file.flush()
            yield file.name


@asynccontextmanager
async def calling(running: Running, clients: int) -> AsyncIterator[None]:
    """So many clients call again and again while the block runs."""
    if not clients:
        yield
        return
    load = Load(running.port, running.server.echo, [await _clients(running, clients)], clients)
    with load.script(FIRST_ID) as script:
        command = load.command(_FOREVER_S, script)
        process = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL)
        try:
            yield
            if process.poll() is not None:
                raise WrongAnswerError("wrk ended before its time")
        finally:
            process.kill()
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await process.wait()


async def calls_http2(running: Running, streams: int, *, warm_up_s: float, window_s: float) -> Calls:
    """One connection on which so many calls are in flight; all have one id, which only modern servers take.

    h2load tells no percentiles: p50 is the mean, p99 the longest.
    """
    client = Sessionless(running.port)
    await _check(running, client)
    head, _, body = client.call(running.server.echo, FIRST_ID).partition(b"\r\n\r\n")
    lines = [line for line in head.decode().split("\r\n")[1:] if not line.startswith(("host:", "content-length:"))]
    with tempfile.NamedTemporaryFile("wb", suffix=".json") as file:
        file.write(body)
        file.flush()
        command = ["h2load", "--clients=1", f"--max-concurrent-streams={streams}", f"--data={file.name}"]
        command += [f"--header={line}" for line in lines]
        url = f"http://127.0.0.1:{running.port}/mcp"
        await _run([*command, _duration(warm_up_s), url])
        before = running.cpu_s()
        printed = await _run([*command, _duration(window_s), url])
        cpu_s = running.cpu_s() - before
    return _read_h2load(printed, cpu_s)


def _read_h2load(printed: str, cpu_s: float) -> Calls:
    good = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", printed)
    rate = re.search(r"([\d.]+) req/s", printed)
    times = re.search(r"time for request: +\S+ +(\S+) +(\S+)", printed)
    if good is None or rate is None or times is None or not int(good[1]):
        raise WrongAnswerError(f"h2load says {printed[-800:]}")
    return Calls(float(rate[1]), _ms(times[2]), _ms(times[1]), cpu_s / int(good[1]) * 1e6)


def _ms(text: str) -> float:
    """A time as h2load prints it: 812us, 1.25ms, 1.02s."""
    number, unit = text.rstrip("mus"), text.lstrip("0123456789.")
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def _duration(seconds: float) -> str:
    """Both programs take whole seconds only."""
    return f"--duration={max(1, round(seconds))}"


async def _run(command: Sequence[str]) -> str:
    done = await trio.run_process(list(command), capture_stdout=True, capture_stderr=True, check=False)
    if done.returncode:
        raise WrongAnswerError(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout.decode(errors="replace")


async def _clients(running: Running, count: int) -> list[Client]:
    """So many sessions, or one client of the era that has none."""
    port, era = running.port, running.server.era
    async with Connection(port) as connection:
        made = [await open_client(connection, port, era) for _ in range(count if era == "legacy" else 1)]
    await _check(running, made[0])
    return made


async def _check(running: Running, client: Client) -> None:
    """The load looks at statuses alone, so one answer is looked at before it begins."""
    tool: Tool = running.server.echo
    async with Connection(running.port) as connection:
        head, body = await connection.exchange(client.call(tool, FIRST_ID))
    if head.status != 200 or len(body) < 1024 or b'"result"' not in body:
        raise WrongAnswerError(f"{tool.name} was answered {head.status} {body[:300]!r}")


def _lua(data: bytes) -> str:
    """Bytes as a string of Lua."""
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


def missing() -> list[str]:
    """The programs of these that are not installed."""
    return [name for name in ("wrk", "h2load") if shutil.which(name) is None]
