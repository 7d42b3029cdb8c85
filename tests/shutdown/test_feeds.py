"""Whoever watches the server hears of its end: the log up to the entry `stopped`, and then a proper end."""

from __future__ import annotations

import gzip
import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from ..sockets.peers import Dialer
from ..support.process import serving
from .peers import call, ended2, head, is_complete, post, read2, steps

FEED = "/dashboard/events?tail=1000&tables=calls"
END = [("server.state", "draining"), ("server.state", "stopped")]
TINY = 4096


def chunks(answer: bytes) -> Iterator[bytes]:
    """The chunks of the body of an answer over HTTP/1.1; fails where the last one is missing."""
    rest = answer.partition(b"\r\n\r\n")[2]
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not int(size, 16):
            break
        yield rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]


def told(body: bytes) -> list[Any]:
    """The data of all events of a body, the names of which do not matter here."""
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


def states(body: bytes) -> list[tuple[str, str]]:
    entries = [value for value in told(body) if value.get("kind") == "server.state"]
    return [(entry["kind"], entry["state"]) for entry in entries if entry["state"] != "ready"]


@pytest.mark.parametrize("signals", [1, 2])
async def test_an_idle_servers_feeds_tell_its_end(dial: Dialer, signals: int) -> None:
    async with serving("--grace-s", "600", "--keep-alive-s", "600") as server:
        port = server.port
        feed, packed, works = [await dial.wire(port) for _ in range(3)]
        two = await dial.http2(port)
        await feed.send(head("GET", {}, FEED))
        await packed.send(head("GET", {"accept-encoding": "gzip"}, FEED))
        stream = await two.request(FEED)
        # The last entry that each has read, so that all of them wait for another.
        seen = {feed: await feed.read_until(b"event: hello"), packed: await packed.read_until(b"\r\n\r\n")}
        await two.drained(lambda: b"event: hello" in two.body(stream))
        if signals == 2:
            await works.send(post(steps(100, 5000)))
            seen[feed] += await feed.read_until(b'"tool":"progress"')
        server.program.signal(signal.SIGTERM)
        if signals == 2:
            await server.program.said("stopping:")
            server.program.signal(signal.SIGTERM)
        await read2(two)
        answers = {wire: seen[wire] + await wire.read_to_end() for wire in seen}
        assert await server.program.ended() == 0
    assert {is_complete(answer) for answer in answers.values()} == {True}
    plain = b"".join(chunks(answers[feed]))
    assert states(plain) == END
    assert states(gzip.decompress(b"".join(chunks(answers[packed])))) == END
    assert states(two.body(stream)) == END
    assert ended2(two, stream)
    if signals == 2:
        for body in (plain, two.body(stream)):
            assert rows(body)[-1]["outcome"] == "cancelled"


def rows(body: bytes) -> list[Any]:
    return [row for value in told(body) if value.get("table") == "calls" for row in value["rows"]]


async def test_the_last_change_of_a_call_is_told(dial: Dialer) -> None:
    """The call ends while the server drains."""
    async with serving("--grace-s", "60", "--keep-alive-s", "600") as server:
        feed, works = [await dial.wire(server.port) for _ in range(2)]
        await feed.send(head("GET", {}, FEED))
        seen = await feed.read_until(b"event: hello")
        await works.send(post(steps(4, 50)))
        await works.read_until(b'"progress":1')
        server.program.signal(signal.SIGTERM)
        seen += await feed.read_to_end()
        assert await server.program.ended() == 0
    assert rows(b"".join(chunks(seen)))[-1]["outcome"] == "completed"


async def test_readers_that_do_not_read_delay_nothing_for_long(dial: Dialer) -> None:
    """A log of some megabytes, of which a reader takes its first kilobytes; one that reads has all of it meanwhile.

    The process ends within the patience of `ended`, and a write may last an hour.
    """
    async with serving("--grace-s", "0", "--write-timeout-s", "3600") as server:
        works = await dial.wire(server.port)
        for number in range(20):
            await works.send(post(call("long_output", {"blocks": 20, "chars": 8000}, number)))
            await works.read_until(b'"resultType"')
        stuck = await dial.wire(server.port, receive_buffer=TINY)
        await stuck.send(head("GET", {}, FEED))
        reads = await dial.wire(server.port)
        await reads.send(head("GET", {}, FEED))
        seen = await reads.read_until(b"event: hello")
        server.program.signal(signal.SIGTERM)
        seen += await reads.read_to_end()
        assert await server.program.ended() == 0
    assert (is_complete(seen), states(b"".join(chunks(seen)))) == (True, END)
