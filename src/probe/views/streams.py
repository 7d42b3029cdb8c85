"""Streams of messages to clients, and their readers.

A reader is an HTTP response that carries the stream, or a pipe. It may read several streams, and it may take a stream
over from an earlier reader. The end of the earlier one then has no effect, so the newest reading alone decides whether
a stream is read:

    stream.opened       on a pipe: the pipe reads it
    http.response       with an event stream: the response reads it
    stream.resumed      the response, or the pipe, reads it from now on
    message.delivered   of a stream without a reader: a pipe reads it, or a response that carries several

A reading is over with its response (`http.closed`) or its pipe. It is over earlier, with the reason in `Reading.over`,
if the stream is lost, a pipe has had all of it, or the waiting request was cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..log import events
from ..log.bounded import Newest
from ..log.context import Context
from ..log.event_log import Entry
from .clients import Peers
from .retention import Retention
from .values import Exchange, Message
from .work import Call, Reading, Stream


class Streams:
    """The streams of a log: `live` by session and id. `past` are over, left the log, and refer to no other view.

    `own` are the streams of the draft extension by their call; they open before the call starts.
    """

    def __init__(self, retention: Retention, peers: Peers, messages: Mapping[int, Message]) -> None:
        self._keep = retention
        self._peers = peers
        self._messages = messages
        self.live: Newest[tuple[str | None, str], Stream] = Newest(retention.streams)
        self.past: Newest[tuple[str | None, str], Stream] = Newest(retention.rows)
        self.own: Newest[str, Stream] = Newest(retention.other_calls)
        self.takers: Mapping[type, Callable[[Entry, Any, Exchange | None, Call | None], None]] = {
            events.StreamOpened: self._opened,
            events.StreamResumed: self._resumed,
            events.StreamEnded: self._ended,
            events.StreamLost: self._lost,
            events.StreamControl: self._control,
        }

    def find(self, context: Context) -> Stream | None:
        return None if context.stream is None else self.live.get((context.session, context.stream))

    def forget_before(self, first: int, most: int | None, *, all_over: bool) -> None:
        """Let go of ended streams opened before the entry `first`; they are in `past` then, unless `all_over`.

        Beyond `most` streams, of the others, too.
        """
        for stream in self.live.sweep(lambda each: each.opened.seq < first, _is_read, most):
            self._leave(stream, past=not all_over)

    def _leave(self, stream: Stream, *, past: bool = True) -> None:
        session, call, context = stream.session, stream.call, stream.opened.context
        if session is not None and session.streams.get(stream.id) is stream:
            del session.streams[stream.id]
        if call is not None and self.own.get(call.name) is stream:
            del self.own[call.name]
        if stream.request is not None and stream.request.stream is stream:
            stream.request.stream = None
        if stream.reading is not None and stream.reading.asked is not None:
            stream.reading.asked.resumed = None
        stream.forget()
        if past:
            self.past.store((context.session, stream.id), stream)

    # -- what happens to a stream

    def _opened(self, entry: Entry, fact: events.StreamOpened, exchange: Exchange | None, call: Call | None) -> None:
        context = entry.context
        if context.stream is None:
            return
        request = None if entry.cause is None else self._messages.get(entry.cause)
        session = self._peers.session(context)
        stream = Stream(context.stream, entry, entry.seq, session, request, call, exchange)
        if exchange is not None and exchange.stream is None:
            exchange.stream = stream
        if request is not None and request.received and fact.purpose != "resumable":
            request.stream = stream
        if context.call is not None and fact.purpose == "resumable":
            self.own.store(context.call, stream)
        if context.pipe is not None:
            self.read(stream, entry, exchange)
        gone = self.live.store((context.session, context.stream), stream)
        if gone is not None:
            self._leave(gone)
        if session is not None:
            session.streams[stream.id] = stream
            if len(session.streams) > self._keep.history:
                session.streams.popitem(last=False)

    def read(self, stream: Stream, entry: Entry, exchange: Exchange | None) -> None:
        """Note a new reader of a stream."""
        if exchange is not None and exchange.stream is None:
            exchange.stream = stream
        newest = stream.reading
        place = self._peers.place(entry)
        # A pipe reads on, whatever the exchange.
        if place is not None and place.scope is not None:
            if newest is None or newest.place is not place:
                self._add(stream, Reading(None, place, entry))
        elif exchange is not None and (newest is None or newest.exchange is not exchange):
            self._add(stream, Reading(exchange, None, entry))

    def _add(self, stream: Stream, reading: Reading) -> None:
        stream.reading = reading
        if len(stream.readings) < self._keep.of_exchange:
            stream.readings.append(reading)

    def responded(self, entry: Entry, exchange: Exchange) -> None:
        """A response with the head of an event stream reads the stream in the entry's context."""
        stream = self.find(entry.context)
        if stream is not None:
            reading = stream.reading
            stream.newest = entry.seq
            stream.resumed += stream.was_read and (reading is None or reading.exchange is not exchange)
            self.read(stream, entry, exchange)

    def closed(self, entry: Entry, fact: events.HttpClosed) -> None:
        """An answer in one piece has no reader; its `http.closed` has the reason."""
        stream = self.find(entry.context)
        if stream is not None:
            stream.newest = entry.seq
            if not stream.was_read:
                stream.left = fact.by, entry.at

    def delivered(
        self, stream: Stream, entry: Entry, fact: events.MessagesDelivered, exchange: Exchange | None
    ) -> None:
        stream.newest = entry.seq
        stream.taken = max(stream.taken, fact.last)
        reading = stream.reading
        if reading is None:
            if entry.context.pipe is not None or (exchange is not None and exchange.is_event_stream):
                self.read(stream, entry, exchange)
        elif reading.exchange is not exchange and reading.is_over and entry.context.pipe is not None:
            self.read(stream, entry, exchange)
        if stream.ended is not None:
            _finish(stream, entry)

    def _resumed(self, entry: Entry, fact: events.StreamResumed, exchange: Exchange | None, call: Call | None) -> None:
        stream = self.find(entry.context)
        if stream is None:
            return
        stream.newest, stream.resumed = entry.seq, stream.resumed + 1
        asked = None if entry.cause is None else self._messages.get(entry.cause)
        if asked is not None:
            asked.resumed = stream
        place = self._peers.place(entry)
        if place is not None and place.scope is not None:
            self._add(stream, Reading(None, place, entry, asked))
        elif exchange is not None:
            self._add(stream, Reading(exchange, None, entry, asked))

    def _ended(self, entry: Entry, fact: events.StreamEnded, exchange: Exchange | None, call: Call | None) -> None:
        stream = self.find(entry.context)
        if stream is not None:
            stream.ended, stream.newest = entry, entry.seq
            _finish(stream, entry)

    def _lost(self, entry: Entry, fact: events.StreamLost, exchange: Exchange | None, call: Call | None) -> None:
        stream = self.find(entry.context)
        if stream is not None:
            stream.lost, stream.newest = entry, entry.seq
            stream.leave(fact.why, entry)

    def _control(self, entry: Entry, fact: events.StreamControl, exchange: Exchange | None, call: Call | None) -> None:
        stream = self.find(entry.context)
        if stream is not None:
            # A replaced response may still send one.
            if stream.reading is None:
                self.read(stream, entry, exchange)
            if len(stream.controls) < self._keep.of_exchange:
                stream.controls.append(entry)

    @staticmethod
    def settled(request: Message, entry: Entry, fact: events.CallSettled) -> None:
        """The request of a stopped call reads no stream any more."""
        waits, resumed = _reading(request.stream), _reading(request.resumed)
        # The answer will not come, and the pipe goes on: the reading ends here.
        if request.stream is not None and waits is not None and waits.place is not None and not fact.answered:
            request.stream.leave(f"cancelled by {fact.cancelled_by}", entry)
        if request.resumed is not None and resumed is not None and resumed.asked is request and fact.cancelled_by:
            request.resumed.leave("the resume was cancelled", entry)


def _reading(stream: Stream | None) -> Reading | None:
    return None if stream is None else stream.reading


def _finish(stream: Stream, entry: Entry) -> None:
    """A pipe stops reading a stream that has ended and was delivered; a response ends with its stream."""
    reading = stream.reading
    if reading is not None and reading.place is not None and stream.lost is None and not stream.waiting:
        stream.leave("end of stream", entry)


def _is_read(stream: Stream) -> bool:
    """True if a stream is over, and all of its messages were taken."""
    return stream.lost is not None or (stream.ended is not None and not stream.sent)
