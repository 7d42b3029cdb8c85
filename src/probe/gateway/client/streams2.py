"""Many requests on one HTTP/2 connection: how many streams a peer allows, and what the next one meets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trio

from .live import Sending, headers_of, pseudo
from .target import Target, connect


@dataclass(frozen=True, slots=True)
class Streams:
    """The result of many streams: the limit that the peer named, and when the head of each stream came, in seconds.

    `refused` counts streams that were reset, `limit` is None where none was named.
    """

    limit: int | None
    heads: tuple[float | None, ...]
    refused: int
    problem: str = ""


async def open_many(to: Target, sendings: Sequence[Sending], seconds: float) -> Streams:
    """Send all of these at once on one connection, as far as the peer's limit lets; wait so many seconds for heads.

    Requests beyond the limit wait here, as RFC 9113 section 5.1.2 asks of a client.
    """
    try:
        stream, protocol = await connect(to)
    except OSError as error:
        return Streams(None, (), 0, str(error))
    try:
        if protocol != "HTTP/2":
            return Streams(None, (), 0, "HTTP/2 is not spoken")
        return await _many(stream, to, sendings, seconds)
    finally:
        await trio.aclose_forcefully(stream)


async def _many(stream: trio.abc.Stream, to: Target, sendings: Sequence[Sending], seconds: float) -> Streams:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
    connection.initiate_connection()
    began, heads, order = time.monotonic(), dict[int, float](), list[int]()
    refused, waiting, problem, named = 0, list(sendings), "", False
    with trio.move_on_after(seconds):
        while waiting or len(heads) + refused < len(order):
            while (
                named
                and waiting
                and connection.open_outbound_streams < connection.remote_settings.max_concurrent_streams
            ):
                sending = waiting.pop(0)
                number = connection.get_next_available_stream_id()
                fields = [*pseudo(to, sending), *((name.lower(), value) for name, value in headers_of(to, sending))]
                connection.send_headers(number, fields)
                connection.send_data(number, sending.body, end_stream=True)
                order.append(number)
            try:
                await stream.send_all(connection.data_to_send())
                data = await stream.receive_some(65536)
                events = connection.receive_data(bytes(data))
            except (trio.BrokenResourceError, h2.exceptions.ProtocolError) as error:
                problem = str(error) or type(error).__name__
                break
            if not data:
                problem = "the connection was closed"
                break
            for event in events:
                named = named or isinstance(event, h2.events.RemoteSettingsChanged)
                if isinstance(event, h2.events.ResponseReceived) and event.stream_id is not None:
                    heads[event.stream_id] = time.monotonic() - began
                elif isinstance(event, h2.events.DataReceived) and event.stream_id is not None:
                    connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                refused += isinstance(event, h2.events.StreamReset)
    limit = connection.remote_settings.max_concurrent_streams
    came = tuple(heads.get(number) for number in order) + (None,) * len(waiting)
    return Streams(limit if limit < 2**31 else None, came, refused, problem)
