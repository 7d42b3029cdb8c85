"""Rules `stdio.*`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probe.judge.verdicts import Verdict

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import Log, Pipe, judged

ONLY = "stdio.only-messages"
LINE = "stdio.one-line-each"
INPUT = "stdio.closes-input-first"
RESPONSES = "stdio.no-responses"
PROBES = "stdio.probes-with-discover"
# Other rules have their say about requests without an answer.
OWN = {ONLY, LINE, INPUT, RESPONSES, PROBES}

ALL = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def opened(log: Log, revision: str) -> Pipe:
    pipe = log.stdio()
    if revision == "2026-07-28":
        pipe.answer(pipe.modern("server/discover"))
        return pipe
    return pipe.session(revision)


@pytest.mark.parametrize("revision", ALL)
def test_lines_are_messages(revision: str) -> None:
    log = Log()
    check(log, ONLY, SILENT)
    pipe = opened(log, revision)
    for rule in (ONLY, LINE):
        check(log, rule, PASS)
    pipe.post("hello")
    pipe.close()
    check(log, ONLY, FAIL)


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("line", ["DEBUG starting", "{'jsonrpc': '2.0'}", '{"jsonrpc": "2.0"'])
def test_text_between_messages(revision: str, line: str) -> None:
    log = Log()
    pipe = opened(log, revision)
    pipe.unreadable(line)
    pipe.unreadable(line)
    pipe.request("ping")
    check(log, ONLY, FAIL, only=OWN)


@pytest.mark.parametrize(
    ("fault", "verdict"), [("encoding", FAIL), ("size", PASS), ("nesting", UNCLEAR), ("number", UNCLEAR)]
)
def test_what_this_server_does_not_read(fault: str, verdict: Verdict) -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.unreadable("[[[[", fault)
    pipe.close()
    check(log, ONLY, verdict, only=OWN)


def test_a_line_that_was_cut_off() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.process("no_final_newline")
    pipe.process("end_of_input")
    pipe.unreadable('{"jsonrpc": "2.0", "method": "no')
    pipe.close()
    check(log, ONLY, UNCLEAR, only=OWN)


@pytest.mark.parametrize("rule", [ONLY, LINE])
def test_a_line_before_missing_entries_may_go_on_in_them(rule: str) -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.unreadable("{")
    log.gap()
    pipe.request("ping")
    check(log, rule, UNCLEAR, only=OWN)


def test_missing_entries_may_have_said_that_the_line_behind_them_is_cut_off() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    log.gap()
    pipe.unreadable('{"jsonrpc": "2.0", "method": "no')
    check(log, ONLY, UNCLEAR, only=OWN)
    pipe.unreadable("hello")
    pipe.close()
    check(log, ONLY, FAIL, only=OWN)


def test_a_fault_that_another_rule_found_is_left_to_it() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.post({"id": 9, "method": "ping"})
    pipe.post({"jsonrpc": "2.0", "id": 9})
    pipe.unreadable(r"\xff", "encoding")
    pipe.close()
    found = judged(log)["acme"]
    assert set(found.faults) == {"jsonrpc.version", "jsonrpc.wire-schema", "jsonrpc.utf8-json"}
    assert found[ONLY] is PASS


def test_empty_lines_and_other_transports() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.process("empty_line")
    pipe.process("crlf")
    check(log, ONLY, PASS)
    check(log, LINE, PASS)
    assert judged(log)["acme"].measured[LINE] == {"line_ends": "CRLF"}
    log = Log()
    log.websocket().session().unreadable("{no")
    check(log, ONLY, SILENT, only=OWN)


PRETTY = ["{", '  "jsonrpc": "2.0",', '  "id": 7,', '  "method": "ping",', '  "params": {', '    "a": [', "      1,"]
REST = ["      2", "    ]", "  }", "}"]


def write(pipe: Pipe, *lines: str) -> None:
    for line in lines:
        if line.strip() == "2":
            pipe.post(2)
        else:
            pipe.unreadable(line)


@pytest.mark.parametrize("revision", ALL)
def test_a_message_on_several_lines_is_one_fault(revision: str) -> None:
    log = Log()
    pipe = opened(log, revision)
    write(pipe, *PRETTY, *REST)
    pipe.request("ping")
    check(log, LINE, FAIL, only=OWN)


def test_half_of_a_message_is_none() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    write(pipe, *PRETTY)
    pipe.close()
    check(log, LINE, PASS, only={LINE})
    check(log, ONLY, FAIL, only=OWN)


def test_bytes_that_are_written_as_numbers() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    write(pipe, "{", r'\x09"jsonrpc": "2.0", "method": "notifications/\xc3\xa9"', "}")
    pipe.close()
    check(log, LINE, FAIL, only=OWN)


def end(*acts: Callable[[Log, Pipe], object]) -> Log:
    log = Log()
    pipe = opened(log, "2025-11-25")
    for act in acts:
        act(log, pipe)
    return log


def happens(what: str, status: int | None = None) -> Callable[[Log, Pipe], object]:
    return lambda _, pipe: pipe.process(what, status)


def client(what: str, status: int | None = None) -> Callable[[Log, Pipe], object]:
    return lambda log, _: log.process(what, status)


def closes(_: Log, pipe: Pipe) -> None:
    pipe.close("the server is shutting down")


@pytest.mark.parametrize(
    ("acts", "verdict"),
    [
        ([happens("end_of_input"), happens("exit", 0)], PASS),
        ([happens("end_of_input"), happens("SIGTERM"), happens("exit", 0)], PASS),
        ([happens("SIGTERM"), closes, happens("exit", 0)], WARN),
        ([happens("SIGTERM"), happens("SIGTERM"), happens("exit", 0)], WARN),
        ([happens("SIGINT"), closes, happens("exit", 0)], UNCLEAR),
        ([happens("SIGHUP"), closes], UNCLEAR),
        ([happens("SIGTERM"), happens("end_of_input"), happens("exit", 0)], UNCLEAR),
        ([client("killed"), happens("end_of_input"), happens("exit", 0)], UNCLEAR),
        ([client("timed_out"), client("killed"), happens("SIGTERM"), closes], UNCLEAR),
        ([client("started"), happens("SIGTERM"), closes, client("exited", 0)], WARN),
        ([happens("output_broken")], SILENT),
        ([], SILENT),
    ],
)
def test_the_input_is_closed_first(acts: list[Callable[[Log, Pipe], object]], verdict: Verdict) -> None:
    check(end(*acts), INPUT, verdict)


def test_two_processes_end_each_on_its_own() -> None:
    log = Log()
    first = opened(log, "2025-11-25")
    second = opened(log, "2025-11-25")
    first.process("SIGTERM")
    second.process("end_of_input")
    first.process("exit", 0)
    check(log, INPUT, WARN)


ANSWER = {"jsonrpc": "2.0", "id": "q1", "result": {}}


@pytest.mark.parametrize(("transport", "verdict"), [("stdio", FAIL), ("websocket", WARN)])
def test_without_a_session_there_is_nothing_to_answer(transport: str, verdict: Verdict) -> None:
    log = Log()
    pipe = log.stdio() if transport == "stdio" else log.websocket()
    pipe.modern("server/discover")
    check(log, RESPONSES, PASS)
    pipe.post(ANSWER)
    check(log, RESPONSES, verdict, only=OWN)


def test_in_a_session_answers_are_legal() -> None:
    log = Log()
    pipe = opened(log, "2025-11-25")
    pipe.reply(pipe.ask("ping"))
    check(log, RESPONSES, SILENT)


def test_in_a_session_on_a_pipe_that_was_probed_answers_are_legal() -> None:
    log = Log()
    pipe = log.stdio()
    pipe.modern("server/discover")
    pipe.session()
    pipe.reply(pipe.ask("ping"))
    check(log, RESPONSES, PASS)
    pipe.modern("tools/list")
    pipe.reply(pipe.ask("ping"))
    check(log, RESPONSES, PASS)


def first_legacy(log: Log) -> None:
    pipe = log.stdio()
    pipe.session()
    pipe.modern("tools/list")


def first_modern(log: Log) -> None:
    pipe = log.stdio()
    pipe.modern("tools/list")
    pipe.session()


def probes(log: Log) -> None:
    pipe = log.stdio()
    pipe.modern("server/discover")
    pipe.session()


def one_era_each(log: Log) -> None:
    log.stdio().session().close()
    log.stdio().modern("tools/list")


def remembers(log: Log) -> None:
    probes(log)
    log.stdio().session()
    first_modern(log)


@pytest.mark.parametrize(
    ("story", "verdict"),
    [
        (probes, PASS),
        (remembers, PASS),
        (first_modern, WARN),
        (first_legacy, WARN),
        (one_era_each, UNCLEAR),
        (lambda log: log.stdio().session(), SILENT),
        (lambda log: log.stdio().modern("tools/list"), SILENT),
        (lambda log: (log.gap(), log.stdio(), log.gap(), first_legacy(log)), SILENT),
    ],
)
def test_who_speaks_both_eras_probes(story: Callable[[Log], object], verdict: Verdict) -> None:
    log = Log()
    story(log)
    check(log, PROBES, verdict, only=OWN)


def test_an_array_before_the_revision_is_known_is_no_second_fault() -> None:
    log = Log()
    pipe = log.stdio()
    pipe.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    pipe.close()
    found = judged(log)["acme"]
    assert found["jsonrpc.no-batch"] is Verdict.INCONCLUSIVE
    assert found.faults == {}
