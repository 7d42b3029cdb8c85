"""What the operator reads: which facts, at which level, and nothing that a client could have forged."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core import escaping
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import AuditState, LimitReached, ServerState
from probe.log.events import Event as Fact
from probe.telemetry.lines import LogHandler, LogLine, OperatorLines, Printer, adopt_logging
from probe.telemetry.service import following

from ..log.vocabulary import EVENT
from ..support.calls import slow
from ..support.facts import settled, started
from ..support.legacy import Legacy
from ..support.probe import Probe, running
from .watched import Samples, watched

HOSTILE = {
    "a line of its own": "x\n2026-01-01T00:00:00.000Z ERROR the server is on fire",
    "carriage return": "good\rbad",
    "colours": "\x1b[31mred\x1b[0m \x9b31m",
    "a title": "\x1b]0;owned\x07",
    "backspaces": "rm\x08\x08ok\x7f\x7f",
    "turned round": "abc\u202edef\u2066ghi",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "quotes": 'a" outcome=completed b="c\\',
    "nul": "a\x00b",
    "members": '","level":"error","message":"x',
}


class Lined:
    """A printer whose lines are kept."""

    def __init__(self, format: str = "console", level: str = "debug") -> None:
        self.said: list[bytes] = []
        self.printer = Printer(format, level, self.said.append)

    def lines(self) -> list[str]:
        return b"".join(self.said).decode().splitlines()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in b"".join(self.said).split(b"\n") if line]

    def harmless(self) -> None:
        text = b"".join(self.said).decode()
        assert not [letter for letter in text if not letter.isprintable() and letter != "\n"], repr(text)


def told(level: str, *facts: Fact, every_s: float = 1.0) -> list[LogLine]:
    """The lines of some facts, one behind the other."""
    lines = OperatorLines(level)
    entries = [Entry(n, 1000 + n * every_s, n * every_s, Context(), fact) for n, fact in enumerate(facts, 1)]
    return [line for line in map(lines.of, entries) if line is not None]


@pytest.mark.parametrize("format", ["console", "json"])
async def test_no_name_of_a_client_can_forge_a_line(format: str) -> None:
    lined = Lined(format)
    async with watched(lined.printer, log_level="debug") as probe:
        for name in HOSTILE.values():
            await act(probe, name)
    facts = len(probe.engine.log)
    lined.harmless()
    # Each line belongs to one fact, so nobody has added one.
    assert len(HOSTILE) * 4 < len(lined.lines()) <= facts
    if format == "json":
        assert {line["level"] for line in lined.objects()} <= {"info", "debug"}
        clients = {line["client"] for line in lined.objects() if line["event"] == "session.opened"}
        assert clients == set(HOSTILE.values())
    else:
        assert {line.split()[1] for line in lined.lines()} <= {"INFO", "DEBUG"}


async def act(probe: Probe, name: str) -> None:
    """Say a name wherever a client can say one."""
    client = Legacy(probe.app, "/mcp?tools=all")
    info = {"name": name, "version": name}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    async with client.post(client.request("initialize", hello)) as answer:
        client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    unknown = client.request("tools/call", {"name": name, "arguments": {name: name}}, id=name)
    async with client.post(unknown) as answer:
        await answer.body()
    async with client.post(slow(client, id=f"slow {name}")) as answer:
        await answer.first(1)
        await client.cancel(f"slow {name}", reason=name)
        await answer.body()
    await client.notify("notifications/cancelled", {"requestId": name, "reason": name})
    async with client.post(client.request(name)) as answer:
        await answer.body()


@given(st.text())
@example("\x7f\x9b\u2028\u202e\ue000\U000e0001")
def test_whatever_the_text_it_is_one_line_that_can_be_read(text: str) -> None:
    for shown in (escaping.value(text), escaping.shown(text)):
        assert shown.isprintable()
    line = escaping.json_line({"said": text})
    assert line.isprintable()
    assert line.isascii()
    assert json.loads(line) == {"said": text}


@given(st.text(max_size=escaping.LONGEST), st.text(max_size=escaping.LONGEST))
@example("\n", "\\x0a")
@example('a" b', 'a\\" b')
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    assert (escaping.value(one) == escaping.value(other)) == (one == other)


@given(st.text())
@example("a \\")
@example('" x="')
def test_a_value_has_no_end_within(text: str) -> None:
    shown = escaping.value(text)
    assert not set(shown) & {" ", "=", '"'} or (shown[0] == shown[-1] == '"' and len(shown) > 1)
    inside = shown[1:-1].replace("\\\\", "").replace('\\"', "") if shown.startswith('"') else ""
    assert '"' not in inside


def test_a_long_text_is_cut() -> None:
    assert len(escaping.value("x" * 10_000)) == escaping.LONGEST + 3
    printer = Printer("json", "info", bytes)
    assert len(printer.line(LogLine(0, "info", "k", "t", {"f": "x" * 10_000}))) < 400


async def test_one_line_for_each_call(autojump_clock: MockClock) -> None:
    lined = Lined("json", "info")
    async with watched(log_level="info") as probe:
        await (await probe.client()).tool("simple_tool", {"delayMs": 250})
        await probe.modern().tool("simple_tool")
        lines = OperatorLines("info")
        for entry in probe.engine.log.since(0, 1000).entries:
            line = lines.of(entry)
            if line is not None:
                lined.printer.write(lined.printer.line(line))
    calls = [line for line in lined.objects() if line["event"] == "call.settled"]
    unknown = {"time": "", "request": "", "exchange": 0}
    assert [{**line, **unknown, "ms": round(line["ms"], -1)} for line in calls] == [
        {
            **unknown,
            "level": "info",
            "event": "call.settled",
            "message": "call",
            "session": session,
            "call": call,
            "tool": "simple_tool",
            "client": "test-client",
            "transport": "http",
            "era": era,
            "outcome": "completed",
            "ms": ms,
        }
        for session, call, era, ms in (("s1", "c1", "legacy", 250), ("m1", "c2", "modern", 0))
    ]
    assert [line["event"] for line in lined.objects()][:2] == ["server.state", "session.opened"]


def test_the_line_of_a_call_that_is_no_tool_call_names_its_client_as_well() -> None:
    (line,) = told("info", started(tool=None, method="subscriptions/listen"), settled(duration_ms=12.34567))
    client = {"client": "n", "transport": "http", "era": "legacy"}
    assert line.fields == {"request": 1, **client, "outcome": "completed", "ms": 12.346}


LIMIT, STATE = LimitReached("max_tasks", 5), ServerState("ready")
FAILING, WELL = AuditState("failing", "no space left on device", 3), AuditState("ok", None, 3)


def test_levels() -> None:
    assert [line.level for line in told("error", LIMIT, STATE, FAILING, WELL)] == ["error"]
    assert [line.level for line in told("warning", LIMIT, STATE, FAILING, WELL)] == ["warning", "error", "warning"]
    assert len(told("info", LIMIT, STATE, FAILING, WELL)) == 4
    assert [line.text for line in told("info", STATE)] == ["the server is ready"]
    assert told("off", LIMIT, STATE, FAILING, WELL) == []


@given(EVENT)
def test_a_fact_of_any_kind_is_one_line_or_none(fact: Fact) -> None:
    for line in told("debug", fact):
        for format in ("json", "console"):
            text = Printer(format, "debug", bytes).line(line).decode()
            assert text.endswith("\n")
            assert text[:-1].isprintable()
        said = json.loads(Printer("json", "debug", bytes).line(line))
        assert (said["event"], said["message"]) == (fact.kind, line.text), "no field is named as what every line has"


def test_a_limit_that_is_reached_all_the_time_is_told_now_and_then() -> None:
    other = LimitReached("max_sessions", 9)
    lines = told("warning", *[LIMIT] * 25, other, *[LIMIT] * 10)
    assert [(line.fields["limit"], line.fields.get("more")) for line in lines] == [
        ("max_tasks", None),
        ("max_tasks", 9),
        ("max_tasks", 9),
        ("max_sessions", None),
        ("max_tasks", 8),
    ]


def test_what_a_line_belongs_to() -> None:
    line = OperatorLines("warning").of(Entry(1, 1001, 1, Context(session="s1"), LIMIT))
    assert line is not None
    assert (line.at, line.kind, line.text) == (1001, "limit.reached", "limit reached")
    assert line.fields == {"session": "s1", "limit": "max_tasks", "most": 5}
    assert Printer("console", "warning", bytes).line(line) == (
        b"1970-01-01T00:16:41.000Z WARNING limit reached session=s1 limit=max_tasks most=5\n"
    )


async def test_who_reads_slowly_holds_up_nobody_and_is_told_what_is_missing() -> None:
    said: list[bytes] = []
    reads, asked, told = Event(), Event(), Event()

    def write(text: bytes) -> None:
        asked.set()
        assert reads.wait(60)
        said.append(text)
        if b"log.missed" in text:
            told.set()

    async with watched(Printer("json", "warning", write), event_log_events=100) as probe:
        probe.engine.log.append(LIMIT)
        await trio.to_thread.run_sync(asked.wait, 60)
        client = await probe.client()
        for _ in range(60):
            await client.tool("simple_tool")
        assert not said
        reads.set()
        assert await trio.to_thread.run_sync(told.wait, 60)
    lines = [json.loads(line) for text in said for line in text.splitlines()]
    assert [line["event"] for line in lines] == ["limit.reached", "log.missed"]
    assert lines[1]["entries"] > 60


async def test_the_end_does_not_wait_for_who_reads_nothing() -> None:
    reads, asked = Event(), Event()

    def write(text: bytes) -> None:
        asked.set()
        reads.wait(60)

    started = trio.current_time()
    async with watched(Printer("json", "warning", write), log_level="info") as probe:
        probe.engine.log.append(LIMIT)
        await trio.to_thread.run_sync(asked.wait, 60)
    assert trio.current_time() - started < 20
    reads.set()


async def test_the_last_lines_come_behind_those_that_a_thread_still_writes() -> None:
    said: list[bytes] = []
    goes_on, asked = Event(), Event()

    def write(text: bytes) -> None:
        asked.set()
        assert goes_on.wait(60)
        said.append(text)

    async def go_on() -> None:
        # the end waits for the thread
        await wait_all_tasks_blocked()
        goes_on.set()

    async with running() as probe, trio.open_nursery() as nursery:
        async with following(probe.engine, Printer("json", "warning", write)):
            probe.engine.log.append(LIMIT)
            await trio.to_thread.run_sync(asked.wait, 60)
            probe.engine.log.append(FAILING)
            nursery.start_soon(go_on)
        assert [json.loads(line)["event"] for line in b"".join(said).splitlines()] == ["limit.reached", "audit.state"]


async def test_without_a_thread_lines_are_lost_and_the_next_ones_written(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bytes] = []

    async def no_thread(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    async with running() as probe, following(probe.engine, Printer("json", "warning", said.append)):
        with monkeypatch.context() as patched:
            patched.setattr(trio.to_thread, "run_sync", no_thread)
            probe.engine.log.append(LIMIT)
            await wait_all_tasks_blocked()
            await probe.engine.observer.reach(probe.engine.log.last)
            await wait_all_tasks_blocked()
        probe.engine.log.append(FAILING)
    assert [json.loads(line)["event"] for line in b"".join(said).splitlines()] == ["audit.state"]


async def test_who_reads_nothing_costs_the_counters_no_entry() -> None:
    reads, asked = Event(), Event()

    def write(text: bytes) -> None:
        asked.set()
        reads.wait(60)

    async with running(metrics=True) as probe:
        async with following(probe.engine, Printer("json", "warning", write)) as page:
            probe.engine.log.append(LIMIT)
            await trio.to_thread.run_sync(asked.wait, 60)
            probe.engine.log.append(LimitReached("max_sessions", 1))
        reads.set()
        assert page is not None
        assert Samples(page.text().decode())("limits_reached_total", limit="max_sessions") == 1


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Logging as pytest has it, behind a test that takes it over."""
    root, own = logging.getLogger(), logging.getLogger("probe")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:], root.level = before[0], before[1]
    own.setLevel(before[2])


@pytest.mark.parametrize("format", ["console", "json"])
def test_what_programs_log_comes_the_same_way(format: str, restored_logging: None) -> None:
    lined = Lined(format, "warning")
    adopt_logging(lined.printer)
    for name in HOSTILE.values():
        logging.getLogger("probe.engine").error("a handler failed: %s", name, exc_info=ValueError(name))
    logging.getLogger("probe.engine").info("not told")
    logging.getLogger("urllib3").info("not told")
    lined.harmless()
    if format == "json":
        assert [line["message"] for line in lined.objects()] == [f"a handler failed: {n}" for n in HOSTILE.values()]
        assert all(line["traceback"][0].startswith("ValueError: ") for line in lined.objects())
    else:
        heads = [line for line in lined.lines() if not line.startswith("    ")]
        assert len(heads) == len(HOSTILE)
        assert all(line.split()[1] == "ERROR" for line in heads)


@pytest.mark.parametrize(
    ("level", "told"), [("off", ""), ("error", "e"), ("warning", "ew"), ("info", "ewi"), ("debug", "ewid")]
)
def test_the_level_is_also_that_of_logging(level: str, told: str, restored_logging: None) -> None:
    lined = Lined("json", level)
    adopt_logging(lined.printer)
    for name in ("probe.x", "some.library"):
        logger = logging.getLogger(name)
        logger.error("e")
        logger.warning("w")
        logger.info("i")
        logger.debug("d")
    assert "".join(line["message"] for line in lined.objects()) == told + told[:2]


def test_arguments_that_do_not_fit_end_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lined = Lined()
    record = logging.LogRecord("probe", logging.ERROR, "f", 1, "%d of %d", ("x",), None)
    LogHandler(lined.printer).emit(record)
    assert lined.said == []
    assert "Logging error" in capsys.readouterr().err


def test_what_is_said_to_people_stays_as_it_is() -> None:
    lined = Lined("console", "off")
    lined.printer.say("MCP Probe listens on http://127.0.0.1:8000/mcp (toolsets: probe)")
    assert lined.lines() == ["MCP Probe listens on http://127.0.0.1:8000/mcp (toolsets: probe)"]
    lined = Lined("json", "off")
    lined.printer.say("MCP Probe listens")
    (line,) = lined.objects()
    assert {**line, "time": ""} == {"time": "", "level": "info", "event": "server", "message": "MCP Probe listens"}
