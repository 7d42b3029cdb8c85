"""`mcp-probe stdio`: the process ends with its connection, and the next one knows nothing of its streams."""

from __future__ import annotations

import json
import random
import signal

import pytest

from ..support.lines import Stdio, speaking
from . import seeds
from .books import Book, Job, Message, mark
from .links import INITIALIZED, encoded, initialize, resume_request

JOB = Job("progress", {"steps": 100, "step_ms": 3})


async def ask(probe: Stdio, message: Message) -> Message:
    await probe.write(encoded(message) + b"\n")
    return await probe.read()


async def begin(probe: Stdio) -> None:
    assert "streams" in (await ask(probe, initialize(-1)))["result"]["capabilities"]["experimental"]
    await probe.write(encoded(INITIALIZED) + b"\n")


async def heard_until_cut(probe: Stdio, most: int) -> bytes:
    """What the process has written, up to so many bytes."""
    data = b""
    while len(data) < most:
        piece = await probe.stdout.receive_some(most - len(data))
        assert piece, "it ended by itself"
        data += piece
    return data


@pytest.mark.parametrize("seed", seeds(3))
async def test_a_new_process_says_that_the_stream_is_lost(seed: int, drops) -> None:
    rng = random.Random(seed)
    async with speaking() as probe:
        await begin(probe)
        await probe.write(encoded(JOB.request(1)) + b"\n")
        data = await heard_until_cut(probe, rng.randrange(400, 15_000))
        how = rng.choice(("kill", "terminate", "close"))
        if how == "close":
            await probe.stdin.aclose()
            await probe.stdout.aclose()
            assert await probe.process.wait() == 0
        else:
            probe.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
            data += b"".join([piece async for piece in probe.stdout]) if how == "terminate" else b""
            assert await probe.process.wait() == (-signal.SIGKILL if how == "kill" else 0)
    drops.count("processes", 1)
    *lines, torn = data.split(b"\n")
    assert torn == b"" or how != "terminate"
    book = Book(mark(json.loads(lines[0]))["streamId"], exact=True)
    for line in lines:
        book.take(json.loads(line))
    assert book.ended or how != "terminate", "it may finish what it does"
    async with speaking() as probe:
        await begin(probe)
        answer = await ask(probe, resume_request(book, 2, {"secret": book.secret, "received": book.last}))
        assert answer["error"]["code"] == -32602
        assert "Stream not found" in answer["error"]["message"]
        params = {"_meta": {"mcp-probe/stream": {"secret": book.secret}}}
        answer = await ask(probe, {"jsonrpc": "2.0", "id": 3, "method": "stream/poll/all", "params": params})
        assert answer["result"]["streams"] == []
        await probe.stdin.aclose()
        await probe.ended()
