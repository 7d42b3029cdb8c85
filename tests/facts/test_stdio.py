"""How standard streams and their process end, and lines that are not as they should be."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import memory_stream_one_way_pair

from probe.cli.ending import stopped
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.server.endpoints.lines import LineWire, StdioFacts
from probe.telemetry.lines import StandardError

from ..support.lines import Pieces
from ..support.pipes import pipe
from ..support.probe import Probe
from ..support.shown import as_value


def log() -> EventLog:
    return EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=10**6)


def told(log: EventLog) -> list[dict[str, Any]]:
    return [as_value(entry) for entry in log.since(0, 1000).entries]


def wire(kept: EventLog, source: Any, sink: Any = None) -> LineWire:
    made = LineWire(source, sink or memory_stream_one_way_pair()[0], max_bytes=100)
    made.opened(Recorder(kept).bind(connection="i1").caused_by(3))
    return made


async def whats(pieces: list[bytes], error: type[Exception] | None = None) -> list[str]:
    kept = log()
    lines = wire(kept, Pieces(pieces, error))
    while await lines.receive() is not None:
        pass
    return [entry["what"] for entry in told(kept)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"a\nb\n"], ["end_of_input"]),
        ([b"a\r\nb\r\n"], ["crlf", "end_of_input"]),
        ([b"\n\na\n\n"], ["empty_line", "end_of_input"]),
        ([b"\r\n"], ["crlf", "empty_line", "end_of_input"]),
        ([b"a\nb"], ["no_final_newline", "end_of_input"]),
        ([], ["end_of_input"]),
    ],
)
async def test_odd_lines_are_told_once_and_the_end_at_the_end(pieces: list[bytes], expected: list[str]) -> None:
    assert await whats(pieces) == expected


async def test_a_broken_input_is_no_end_that_the_client_meant() -> None:
    assert await whats([b"a\n", b"b"], trio.BrokenResourceError) == ["input_broken"]


async def test_a_broken_output_is_told_once() -> None:
    kept = log()
    sink, reader = memory_stream_one_way_pair()
    lines = wire(kept, Pieces([]), sink)
    await reader.aclose()
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            await lines.send(b"{}")
    assert [entry["what"] for entry in told(kept)] == ["output_broken"]


def test_each_fact_has_the_process_and_what_it_wrote() -> None:
    kept = log()
    facts = StdioFacts(lambda: 7)
    facts.note("end_of_input")
    facts.opened(Recorder(kept).bind(connection="i1").caused_by(3))
    facts.signalled(signal.SIGTERM)
    facts.signalled(signal.SIGTERM)
    facts.note_once("exit", 0)
    facts.note_once("exit", 0)
    entries = told(kept)
    assert [(entry["what"], entry["status"]) for entry in entries] == [
        ("SIGTERM", None), ("SIGTERM", None), ("exit", 0)
    ]  # fmt: skip
    assert {(entry["pid"], entry["stderr_lines"], entry["cause"]) for entry in entries} == {(os.getpid(), 7, 3)}


def test_lines_on_standard_error_are_counted() -> None:
    reader, writer = os.pipe()
    try:
        error = StandardError(writer)
        error.write(b"one\ntwo\n")
        error.write_all(b"three\n")
        error.flush(30)
        assert (error.lines, os.read(reader, 100)) == (3, b"one\ntwo\nthree\n")
    finally:
        os.close(reader)
        os.close(writer)


async def test_the_client_of_a_pipe_closes_it_and_the_order_is_known(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
    opened, closed = probe.events("connection.opened")[0], probe.events("connection.closed")[0]
    (end,) = [event for event in probe.events("stdio.changed") if event["what"] == "end_of_input"]
    assert (end["connection"], end["cause"]) == (opened["connection"], opened["seq"])
    assert opened["seq"] < end["seq"] < closed["seq"]


async def test_each_signal_is_told_when_it_comes(probe: Probe) -> None:
    heard: list[int] = []
    send, signals = trio.open_memory_channel[int](2)
    send.send_nowait(signal.SIGTERM)
    send.send_nowait(signal.SIGINT)
    await stopped(signals, probe.engine, trio.sleep_forever, lambda line: None, heard.append)
    assert heard == [signal.SIGTERM, signal.SIGINT]


async def test_a_client_that_closes_its_end_beside_the_signal_is_no_client_that_only_signals(
    probe: Probe, autojump_clock: trio.testing.MockClock
) -> None:
    kept = log()
    facts = StdioFacts()
    facts.opened(Recorder(kept).bind(connection="i1").caused_by(3))
    began = trio.current_time()
    await facts.input_looked_at()
    assert trio.current_time() - began == pytest.approx(0.1), "nothing came"
    send, signals = trio.open_memory_channel[int](2)
    send.send_nowait(signal.SIGTERM)
    async with trio.open_nursery() as nursery:
        heard = (facts.signalled, facts.input_looked_at)
        nursery.start_soon(stopped, signals, probe.engine, trio.sleep_forever, lambda line: None, *heard)
        await trio.testing.wait_all_tasks_blocked()
        assert not probe.engine.draining
        facts.note_once("end_of_input")
        await trio.testing.wait_all_tasks_blocked()
        assert probe.engine.draining
    assert [entry["what"] for entry in told(kept)] == ["SIGTERM", "end_of_input"]
