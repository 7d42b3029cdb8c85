"""Requests that may have been sent twice: which ones are recorded."""

from __future__ import annotations

import pytest

from probe.engine.messages import Repeats, RequestContext
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import Event, MessageReceived, RequestRepeated
from probe.wire.jsonrpc import Request


class Sent:
    """Requests that all have the same bytes and the same id, each on a connection of its own, by one modern client."""

    def __init__(self) -> None:
        self.now = 0.0
        self._log = EventLog(lambda: (0.0, self.now), max_events=100, max_bytes=10**6)
        self._repeats = Repeats(self._log)

    def is_repeat(self, label: str | None, transport: str = "http") -> bool:
        """Whether one more of them, from a URL with this `?client=`, is recorded as a repeat."""
        recorder = Recorder(self._log).bind(connection=f"tcp{self._log.last}", session="m1", label=label)
        seq = recorder.append(MessageReceived(None, "request", "tools/call", 1, b"{}"))
        return self._repeats.note(Request(1, "tools/call", {}), RequestContext(recorder.caused_by(seq), transport))

    @property
    def latest(self) -> Event:
        """The latest fact."""
        entry = self._log.entry(self._log.last)
        assert entry is not None
        return entry.fact


def test_a_repeat_says_which_request_came_before_and_how_long_before() -> None:
    sent = Sent()
    assert not sent.is_repeat(None)
    sent.now = 1.2345
    assert sent.is_repeat(None)
    assert sent.latest == RequestRepeated("tools/call", 1, 1, None, 1234.5)


@pytest.mark.parametrize(("later_s", "repeats"), [(10.0, True), (10.001, False)])
def test_what_comes_on_another_connection_ten_seconds_later_is_no_repeat(later_s: float, repeats: bool) -> None:
    sent = Sent()
    sent.is_repeat(None)
    sent.now = later_s
    assert sent.is_repeat(None) is repeats


def test_nothing_is_a_repeat_where_one_connection_carries_everything() -> None:
    sent = Sent()
    assert [sent.is_repeat(None, "websocket"), sent.is_repeat(None, "websocket")] == [False, False]


def test_workers_with_labels_of_their_own_repeat_nothing_of_each_other() -> None:
    sent = Sent()
    assert [sent.is_repeat(label) for label in ("one", "two", None)] == [False, False, False]
    assert [sent.is_repeat(label) for label in ("one", "two", None)] == [True, True, True]
