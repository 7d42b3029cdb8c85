"""The live feed over real sockets: resuming, a reader that does not read, and the end of the server."""

from __future__ import annotations

import random
import re

import h11
import pytest
import trio

from probe.log.context import Context
from probe.log.events import MessageReceived

from ..support.probe import Probe, running
from ..support.process import served
from ..wire.event_source import EventSource
from .peers import PATIENCE_S, Dialer, Wire
from .servers import Start

TOTAL = 1500
FEED = "/dashboard/events?tables=tasks,calls,sessions,streams"


def head(after: str) -> list[tuple[str, str]]:
    return [("last-event-id", after)] if after else []


async def http1_body(dial: Dialer, port: int, after: str, parts: int) -> bytes:
    """So many reads of the feed's body, and then the connection breaks."""
    wire = await dial.wire(port)
    client = h11.Connection(h11.CLIENT)
    request = h11.Request(method="GET", target=FEED, headers=[("host", "localhost"), *head(after)])
    await wire.send(client.send(request) or b"")
    body = b""
    for _ in range(parts):
        client.receive_data(await wire.read())
        while isinstance(event := client.next_event(), h11.Response | h11.Data):
            body += event.data if isinstance(event, h11.Data) else b""
    await wire.reset()
    return body


async def http2_body(dial: Dialer, port: int, after: str, parts: int) -> bytes:
    """The same over a stream that is reset."""
    peer = await dial.http2(port)
    stream = await peer.request(FEED, headers=head(after))
    for _ in range(parts + 2):
        await peer.receive()
    await peer.reset(stream)
    body = peer.body(stream)
    await peer.wire.close()
    return body


async def events_go_on(probe: Probe) -> None:
    while True:
        for number in range(5):
            probe.engine.log.append(
                MessageReceived(None, "invalid", None, None, b'"%b"' % (b"x" * 200)),
                Context(exchange=number, session="s1"),
            )
        await trio.sleep(0.002)  # real time: the pace of events while connections break


@pytest.mark.parametrize("body_of", [http1_body, http2_body])
async def test_nothing_is_lost_or_twice_over_broken_connections(body_of, start: Start, dial: Dialer) -> None:
    chance, seqs, connections = random.Random(7), list[int](), 0
    async with running(feed_tick_s=0.01) as probe:
        port, last_id = await start(probe.app), f"{probe.engine.run}-0"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(events_go_on, probe)
            with trio.fail_after(60):
                while len(seqs) < TOTAL:
                    body = await body_of(dial, port, last_id, chance.randrange(1, 6))
                    connections += 1
                    source = EventSource(last_event_id=last_id)
                    # What the browser had read when the connection broke ends anywhere.
                    source.feed(body[: chance.randrange(len(body) + 1)] if connections % 3 else body)
                    ids = [event.last_event_id for event in source.events if event.type == "message"]
                    seqs += [int(id.rpartition("-")[2]) for id in ids]
                    assert not [event for event in source.events if event.type == "gap"]
                    last_id = source.last_event_id
            nursery.cancel_scope.cancel()
        assert connections > 5
        assert seqs == list(range(1, len(seqs) + 1))


async def test_a_reader_that_does_not_read_is_disconnected_alone(start: Start, dial: Dialer) -> None:
    async with running(feed_tick_s=0.01, write_timeout_s=1) as probe:
        port = await start(probe.app, write_timeout_s=1)
        stuck, reading = await dial.wire(port, receive_buffer=4096), await dial.wire(port)
        for wire in (stuck, reading):
            await wire.send(b"GET /dashboard/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await reading.read_until(b"event: hello")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_reading, reading)
            with trio.fail_after(PATIENCE_S):
                while len(probe.app.feed.readers) != 1:
                    probe.engine.log.append(
                        MessageReceived(None, "invalid", None, None, b'"%b"' % (b"x" * 100_000)),
                        Context(exchange=1, session="s1"),
                    )
                    await trio.sleep(0.02)  # real time: the pace that a reader keeps up with
            nursery.cancel_scope.cancel()
        (left,) = probe.app.feed.readers
        assert left.behind < 50


async def keep_reading(wire: Wire) -> None:
    while await wire.read():
        pass


def test_readers_do_not_hold_up_the_end_of_the_server() -> None:
    """SIGTERM with one reader that reads, one that does not, and one over HTTP/2 that has no window left."""

    async def connected(port: int, leaving: trio.Event) -> None:
        dial = Dialer()
        reading, stuck = await dial.wire(port), await dial.wire(port, receive_buffer=4096)
        for wire in (reading, stuck):
            await wire.send(f"GET {FEED} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        peer = await dial.http2(port, grants=False)
        await peer.request(FEED)
        await reading.read_until(b"event: hello")
        leaving.set()
        assert await reading.read_to_end() is not None
        await dial.hang_up()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            with served() as url:
                port = int(re.findall(r":(\d+)/", url)[0])
                leaving = trio.Event()
                nursery.start_soon(connected, port, leaving)
                with trio.fail_after(PATIENCE_S):
                    await leaving.wait()

    trio.run(run)
