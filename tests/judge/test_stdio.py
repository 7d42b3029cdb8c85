"""Rules `stdio.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import HEADER, Log, Pipe, judged

ONLY, LINE, INPUT = "stdio.only-messages", "stdio.one-line-each", "stdio.closes-input-first"
RESPONSES, PROBES = "stdio.no-responses", "stdio.probes-with-discover"
# Other rules have their say about requests without an answer.
OWN: Final = {ONLY, LINE, INPUT, RESPONSES, PROBES}
ALL: Final = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def opened(log: Log, revision: str = "2025-11-25") -> Pipe:
    pipe = log.stdio()
    if revision == "2026-07-28":
        pipe.answer(pipe.modern("server/discover"))
        return pipe
    return pipe.session(revision)


PRETTY: Final = [
    "{",
    '  "jsonrpc": "2.0",',
    '  "id": 7,',
    '  "method": "ping",',
    '  "params": {',
    '    "a": [',
    "      1,",
]
REST: Final = ["      2", "    ]", "  }", "}"]
ESCAPED: Final = ["{", r'\x09"jsonrpc": "2.0", "method": "notifications/\xc3\xa9"', "}"]


def write(pipe: Pipe, *lines: str) -> None:
    for line in lines:
        if line.strip() == "2":
            pipe.post(2)
        else:
            pipe.unreadable(line)


def words_of(log: Log, pipe: Pipe) -> Mapping[str, Callable[[], Any]]:
    """What a client writes, and what happens to it and to its server."""
    faults = {fault: lambda fault=fault: pipe.unreadable("[[[[", fault) for fault in ("encoding", "size", "nesting")}
    changes = ("end_of_input", "no_final_newline", "empty_line", "crlf", "output_broken", "SIGTERM", "SIGINT", "SIGHUP")
    return {
        **faults,
        **{change: lambda change=change: pipe.process(change) for change in changes},
        **{change: lambda change=change: log.process(change) for change in ("started", "killed", "timed_out")},
        "ping": lambda: pipe.request("ping"),
        "text": lambda: pipe.unreadable("DEBUG starting"),
        "quotes": lambda: pipe.unreadable("{'jsonrpc': '2.0'}"),
        "half": lambda: pipe.unreadable('{"jsonrpc": "2.0", "method": "no'),
        "bare": lambda: pipe.post("hello"),
        "number": lambda: pipe.unreadable("1e999", "number"),
        "pretty": lambda: write(pipe, *PRETTY, *REST),
        "beginning": lambda: write(pipe, *PRETTY),
        "escaped": lambda: write(pipe, *ESCAPED),
        "close": lambda: pipe.close("client"),
        "down": lambda: pipe.close("the server is shutting down"),
        "exit": lambda: pipe.process("exit", 0),
    }


@each("revision", ALL)
@each(
    "acts, only, line",
    [
        ("", PASS, PASS),
        ("bare close", FAIL, PASS),
        ("text text ping", FAIL, PASS),
        ("quotes quotes ping", FAIL, PASS),
        ("half half ping", FAIL, PASS),
        ("encoding close", FAIL, PASS),
        ("size close", PASS, PASS),
        ("nesting close", UNCLEAR, PASS),
        ("number close", UNCLEAR, PASS),
        ("no_final_newline end_of_input half close", UNCLEAR, UNCLEAR),  # it was cut off
        ("half gap ping", UNCLEAR, UNCLEAR),  # it may go on in what is missing
        ("gap half", UNCLEAR, UNCLEAR),  # what is missing may have said that it is cut off
        ("gap half text close", FAIL, UNCLEAR),
        ("empty_line crlf", PASS, PASS),
        ("pretty ping", PASS, FAIL),
        ("beginning close", FAIL, PASS),
        ("escaped close", PASS, FAIL),
    ],
)
def test_lines(revision: str, acts: str, only: Verdict, line: Verdict) -> None:
    log = Log()
    pipe = opened(log, revision)
    play(log, acts, words_of(log, pipe))
    check(log, ONLY, only, only={ONLY})
    check(log, LINE, line, only={LINE})
    if FAIL in (only, line):
        check(log, ONLY if only is FAIL else LINE, FAIL, only=OWN)


def test_a_line_of_text_is_one_fault() -> None:
    log = Log()
    check(log, ONLY, SILENT)
    pipe = opened(log)
    pipe.post("hello")
    pipe.close()
    check(log, ONLY, FAIL)


def test_a_fault_that_another_rule_found_is_left_to_it() -> None:
    log = Log()
    pipe = opened(log)
    pipe.post({"id": 9, "method": "ping"})
    pipe.post({"jsonrpc": "2.0", "id": 9})
    pipe.unreadable(r"\xff", "encoding")
    pipe.close()
    found = judged(log)["acme"]
    assert set(found.faults) == {"jsonrpc.version", "jsonrpc.wire-schema", "jsonrpc.utf8-json"}
    assert found[ONLY] is PASS


def test_line_ends_are_measured_and_other_transports_have_none() -> None:
    log = Log()
    opened(log).process("crlf")
    assert judged(log)["acme"].measured[LINE] == {"line_ends": "CRLF"}
    log = Log()
    log.websocket().session().unreadable("{no")
    check(log, ONLY, SILENT, only=OWN)


@each(
    "acts, verdict",
    [
        ("end_of_input exit", PASS),
        ("end_of_input SIGTERM exit", PASS),
        ("SIGTERM down exit", WARN),
        ("SIGTERM SIGTERM exit", WARN),
        ("SIGINT down exit", UNCLEAR),
        ("SIGHUP down", UNCLEAR),
        ("SIGTERM end_of_input exit", UNCLEAR),
        ("killed end_of_input exit", UNCLEAR),
        ("timed_out killed SIGTERM down", UNCLEAR),
        ("started SIGTERM down", WARN),
        ("output_broken", SILENT),
        ("", SILENT),
    ],
)
def test_the_input_is_closed_first(acts: str, verdict: Verdict) -> None:
    log = Log()
    pipe = opened(log)
    play(log, acts, words_of(log, pipe))
    check(log, INPUT, verdict)


def test_two_processes_end_each_on_its_own() -> None:
    log = Log()
    first, second = opened(log), opened(log)
    first.process("SIGTERM")
    second.process("end_of_input")
    first.process("exit", 0)
    check(log, INPUT, WARN)


@each("transport, verdict", [("stdio", FAIL), ("websocket", WARN)])
def test_without_a_session_there_is_nothing_to_answer(transport: str, verdict: Verdict) -> None:
    log = Log()
    pipe = getattr(log, transport)()
    pipe.modern("server/discover")
    check(log, RESPONSES, PASS)
    pipe.post({"jsonrpc": "2.0", "id": "q1", "result": {}})
    check(log, RESPONSES, verdict, only=OWN)


@each("probed, verdict", [(False, SILENT), (True, PASS)])
def test_in_a_session_answers_are_legal(probed: bool, verdict: Verdict) -> None:
    log = Log()
    pipe = log.stdio()
    if probed:
        pipe.modern("server/discover")
    pipe.session()
    pipe.reply(pipe.ask("ping"))
    check(log, RESPONSES, verdict, only={RESPONSES})
    pipe.modern("tools/list")
    pipe.reply(pipe.ask("ping"))
    check(log, RESPONSES, verdict, only={RESPONSES})


def processes(acts: str) -> Log:
    """What the processes of a client do: `open` starts the next one, which is meant by what follows."""
    log = Log()
    pipes: list[Pipe] = [log.stdio()]
    refused = {"code": -32022, "message": "Unsupported protocol version"}
    words = {
        "open": lambda: pipes.append(log.stdio()),
        "discover": lambda: pipes[-1].answer(pipes[-1].modern("server/discover")),
        "modern": lambda: pipes[-1].answer(pipes[-1].modern("tools/list"), {"tools": []}),
        "legacy": lambda: pipes[-1].session("2025-11-25"),
        "refused": lambda: pipes[-1].answer(pipes[-1].request("initialize", {}), error=refused),
        "first": pipes[0].close,
        "close": lambda: pipes[-1].close("client"),
    }
    play(log, acts, words)
    return log


@each(
    "acts, verdict",
    [
        ("discover legacy", PASS),
        ("discover close open legacy", PASS),  # a short process that only asks
        ("discover open legacy first", PASS),  # and one that ends later
        ("discover refused discover modern", PASS),
        ("discover legacy open legacy open modern legacy", PASS),  # it remembers the era
        ("modern legacy", WARN),
        ("legacy modern", WARN),
        ("legacy close open modern", UNCLEAR),
        ("legacy", SILENT),
        ("modern", SILENT),
    ],
)
def test_who_speaks_both_eras_probes(acts: str, verdict: Verdict) -> None:
    check(processes(acts), PROBES, verdict, only=OWN)


def test_a_process_before_the_log_may_have_probed() -> None:
    log = Log()
    log.gap()
    log.stdio()
    log.gap()
    pipe = log.stdio()
    pipe.session()
    pipe.modern("tools/list")
    check(log, PROBES, SILENT, only=OWN)


@each(
    "acts, several",
    [
        ("discover open legacy", False),
        ("legacy open discover", False),
        ("legacy close open legacy", False),
        ("legacy open legacy", True),
        ("modern open legacy", True),
    ],
)
def test_a_process_that_only_asks_what_the_server_is_makes_no_second_client(acts: str, several: bool) -> None:
    """The TypeScript SDK asks so by a process of its own, which may run beside the other one."""
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    for item in processes(acts).items:
        judge.take(item)
    [subject] = judge.subjects
    assert (subject.several is not None) is several


def test_an_array_before_the_revision_is_known_is_no_second_fault() -> None:
    log = Log()
    pipe = log.stdio()
    pipe.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    pipe.close()
    found = judged(log)["acme"]
    assert found["jsonrpc.no-batch"] is UNCLEAR
    assert found.faults == {}
