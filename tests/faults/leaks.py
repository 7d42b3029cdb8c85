"""What must be left of clients that have gone: nothing."""

from __future__ import annotations

from hashlib import sha256

from probe.engine.engine import Engine

from ..support.inside import SERVICES, engine_tasks
from .client import Client


def check_sizes(engine: Engine) -> None:
    """The streams are as large as the server thinks."""
    streams = list(engine.streams)
    assert engine.streams._bytes == sum(stream.replay.bytes for stream in streams)
    limits = engine.settings.limits
    assert engine.log.bytes <= limits.event_log_bytes
    for stream in streams:
        assert stream.replay.bytes <= limits.replay_bytes
        assert len(stream.replay) <= limits.replay_messages
        assert len(stream._recorders) <= 2 * limits.replay_messages + 1


def check_known(engine: Engine, clients: list[Client]) -> int:
    """How many streams their clients know nothing of, and can know nothing of: their secrets were never heard.

    The others are over, and so are their calls.
    """
    known = {sha256(secret.encode()).digest() for client in clients for secret in client.secrets}
    books = {stream_id: book for client in clients for stream_id, book in client.books.items()}
    unknown = 0
    for stream in engine.streams:
        assert stream.reader is None, "nobody is there"
        book = books.get(stream.stream_id)
        if book is not None:
            assert book.lost or (stream.call is None and stream.replay.closed)
        else:
            assert stream.owner.secret is not None
            assert stream.owner.secret not in known, f"{stream.stream_id} was never told to its owner"
            unknown += 1
    return unknown


def check_nothing_left(engine: Engine) -> None:
    """Long after the last client has gone."""
    assert [stream.stream_id for stream in engine.streams] == []
    assert engine.streams._bytes == 0
    assert engine.streams._streams == {}
    assert engine.sessions._sessions == {}
    assert engine_tasks() == SERVICES
    assert all(record.outcome is not None for record in engine.records.newest_first())
