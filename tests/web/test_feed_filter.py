"""A filter line narrows the feed and `mcp-probe tail`, in the words of the dashboard's search."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from probe.cli.program import main
from probe.engine.services import Turns
from probe.telemetry.terminal.exchanges import Exchanges
from probe.views.fold import Views
from probe.views.search.search import Search, SearchRequest
from probe.views.search.words import Known, complete, read

from ..support.api import page
from ..support.feed import LOCAL, watching
from ..support.http import exchange
from ..support.probe import Probe

LINES = (
    "client:m1",
    "client:test-client tool:progress",
    "tool:simple_tool direction:out",
    "-tool:progress kind:message",
    "status:200",
    "method:tools/call",
    "outcome:completed kind:call",
    '"simple_tool" -kind:call',
)


async def story(probe: Probe) -> None:
    client = probe.modern()
    await client.tool("simple_tool")
    await client.tool("progress", {"steps": 2, "step_ms": 0})
    session = await probe.client()
    await session.tool("simple_tool", {"delayMs": -1})


@pytest.mark.parametrize("line", LINES)
async def test_what_is_over_passes_as_in_the_search(line: str, probe: Probe, autojump_clock: MockClock) -> None:
    await story(probe)
    log, observer = probe.engine.log, probe.engine.observer
    wanted = SearchRequest(read(line), "entry", log.last + 1, 1000)
    found = await Search(log, lambda: observer.views, wanted, Turns().done).run()
    passing = sorted(entry.seq for (entry,) in found.parts)
    assert 0 < len(passing) < log.last
    async with watching(probe, f"tail=1000&filter={line}") as it:
        await it.has(probe.engine.log.last)
        assert it.seqs == passing


async def test_what_comes_is_judged_by_what_its_exchange_has_said(probe: Probe, autojump_clock: MockClock) -> None:
    async with watching(probe, "tail=0&filter=tool:progress&kind=call,message") as it:
        await story(probe)
        await it.has(probe.engine.log.last)
        assert {entry["call"] for entry in it.data("message")} - {None} == {probe_call(probe, "progress")}
        kinds = [entry["kind"] for entry in it.data("message")]
        # The exchange told its tool with its second entry, before anything of it was sent.
        assert kinds[:2] == ["message.received", "call.started"]


def probe_call(probe: Probe, tool: str) -> str:
    (call,) = [event["call"] for event in probe.events("call.started") if event["tool"] == tool]
    return str(call)


async def test_readers_of_two_lines_have_each_their_own(probe: Probe, autojump_clock: MockClock) -> None:
    await story(probe)
    async with (
        watching(probe, "tail=1000&filter=tool:progress") as one,
        watching(probe, "tail=1000&filter=tool:simple_tool") as other,
    ):
        await one.has(probe.engine.log.last)
        await other.has(probe.engine.log.last)
        assert one.seqs
        assert other.seqs
        assert not set(one.seqs) & set(other.seqs)


@pytest.mark.parametrize(
    ("line", "detail"),
    [("clint:x", "clint: is no word of the filter"), ("outcome:canceled", "outcome is one of"), ('"a', "has no end")],
)
async def test_a_line_that_is_not_understood_is_refused(line: str, detail: str, probe: Probe) -> None:
    async with exchange(probe.app, "GET", f"/dashboard/events?filter={line}", LOCAL) as answer:
        assert (answer.status, detail in (await answer.json())["detail"]) == (400, True)


def told(probe: Probe, line: str) -> list[tuple[str, str]]:
    views = Views()
    exchanges = Exchanges(lambda: views, words=read(line))
    entries = probe.engine.log.since(0, 10_000).entries
    for entry in entries:
        views.take(entry)
    return [(shown.what, shown.how.split(",")[0]) for entry in entries for shown in exchanges.take(entry)]


async def test_tail_shows_the_lines_of_exchanges_that_pass(probe: Probe, autojump_clock: MockClock) -> None:
    await story(probe)
    simple, stepped = ("tools/call simple_tool", "ok"), ("tools/call progress", "ok")
    assert told(probe, "tool:progress") == [stepped]
    assert told(probe, "client:m1 method:tools/call -tool:progress") == [simple]
    assert told(probe, "outcome:tool_error") == [
        ("tools/call simple_tool", told(probe, "problem:asked")[0][1]),
    ]
    assert simple in told(probe, "client:m1")
    assert all("initialize" not in what for what, _ in told(probe, "client:m1"))
    assert ("initialize", "ok") in told(probe, "client:s1")
    assert told(probe, '"no such text anywhere"') == []
    assert len(told(probe, "-tool:progress")) == len(told(probe, "")) - 1


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("clint:x", "did you mean client?"),
        ("outcome:canceled", "did you mean cancelled?"),
        ("kind:htp", "did you mean http?"),
    ],
)
def test_tail_names_what_was_probably_meant(line: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tail", "--filter", line]) == 2
    err = capsys.readouterr().err
    assert (hint in err, err.count("\n")) == (True, 1)


@pytest.mark.parametrize(
    ("line", "at", "lines"),
    [
        ("cl", 2, ["client:"]),
        ("-ou", 3, ["-outcome:"]),
        ("outcome:completed,ca", 20, ["outcome:completed,cancelled "]),
        ("tool:pro timeout", 8, ["tool:progress  timeout"]),
        ("tool:slow", 9, ['tool:"slow one" ']),
        ("tool:Progress", 10, ["tool:progress "]),
        ("text", 4, []),
        ("constructor:", 12, []),
        ('"two wo', 7, []),
        ("status:", 7, ["status:>=400 ", "status:200 ", "status:202 "]),
        ("client:py", 9, ["client:s7 "]),
    ],
)
def test_words_are_completed_at_a_place(line: str, at: int, lines: list[str]) -> None:
    known: Known = {"tool": [("progress", ""), ("slow one", "")], "client": [("s7", "py-agent"), ("m1", "other")]}
    found = [line[: each.start] + each.insert + line[each.end :] for each in complete(line, at, known)]
    assert found == lines


async def test_the_page_of_a_line_says_what_is_wrong_and_knows_clients_and_tools(probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    assert await page(probe, "/api/filter?line=tool:sim") == {
        "error": None,
        "completions": [{"start": 5, "end": 8, "insert": "simple_tool ", "label": "tool:simple_tool", "note": ""}],
    }
    wrong = await page(probe, "/api/filter?line=client:+colour:red&at=7")
    assert wrong["error"].startswith("client: has no value")
    assert [(each["insert"], each["note"]) for each in wrong["completions"]] == [("s1 ", "test-client")]
