"""One request and its response on an HTTP/2 connection of its own, over h2."""

from __future__ import annotations

from collections.abc import Iterator

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from .response import Data, Ended, Fault, Headers, ResponseHead, Seen

_WINDOW = 16 * 1024 * 1024


class Response2:
    """Fed what the connection receives; `to_send` is what must be written after each call."""

    def __init__(self) -> None:
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self._connection = h2.connection.H2Connection(config)
        self._connection.initiate_connection()
        self._connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW})
        self._connection.increment_flow_control_window(_WINDOW)
        self._stream = 0
        self._unsent = b""
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nothing more is read."""
        return self._over

    def request(self, pseudo: Headers, headers: Headers, body: bytes) -> None:
        """Begin the one request."""
        connection = self._connection
        self._stream = connection.get_next_available_stream_id()
        fields = [*pseudo, *((name.lower(), value) for name, value in headers)]
        connection.send_headers(self._stream, fields, end_stream=not body)
        self._unsent = body
        self._send_body()

    def to_send(self) -> bytes:
        """Bytes for the connection."""
        return self._connection.data_to_send()

    def reset(self) -> None:
        """Give up the stream: RST_STREAM with CANCEL."""
        if not self._over:
            self._over = True
            self._connection.reset_stream(self._stream, h2.errors.ErrorCodes.CANCEL)

    def receive(self, data: bytes) -> Iterator[Seen]:
        """Take bytes; returns the parts of the response on the stream that they bring."""
        try:
            events = self._connection.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self._over = True
            yield Fault(f"HTTP/2: {type(error).__name__}: {error}")
            return
        for event in events:
            yield from self._seen(event)
        self._send_body()

    def receive_eof(self) -> Iterator[Seen]:
        """The connection ended."""
        if not self._over:
            self._over = True
            yield Ended("cut")

    def _seen(self, event: h2.events.Event) -> Iterator[Seen]:
        if isinstance(event, h2.events.ResponseReceived):
            fields = [(str(name), str(value)) for name, value in event.headers or ()]
            status = next(int(value) for name, value in fields if name == ":status")
            yield ResponseHead(status, tuple(pair for pair in fields if not pair[0].startswith(":")), "h2", "2")
        elif isinstance(event, h2.events.DataReceived):
            self._connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            if event.data:
                yield Data(event.data)
        elif isinstance(event, h2.events.StreamEnded):
            self._over = True
            yield Ended("complete")
        elif isinstance(event, h2.events.StreamReset):
            self._over = True
            yield Ended("reset")
        elif isinstance(event, h2.events.ConnectionTerminated) and not self._over and self._is_lost(event):
            self._over = True
            yield Ended("cut")

    def _is_lost(self, event: h2.events.ConnectionTerminated) -> bool:
        # RFC 9113 section 6.8: streams up to the last one that is named may still be answered.
        return (event.last_stream_id or 0) < self._stream

    def _send_body(self) -> None:
        while self._unsent and not self._over:
            room = self._connection.local_flow_control_window(self._stream)
            size = min(room, self._connection.max_outbound_frame_size, len(self._unsent))
            if size <= 0:
                return
            part, self._unsent = self._unsent[:size], self._unsent[size:]
            self._connection.send_data(self._stream, part, end_stream=not self._unsent)
