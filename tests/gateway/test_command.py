"""`mcp-probe gateway` in a process: arguments, exit codes, files, and a signal during a run."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest
import trio

from probe.cli.program import COMMANDS, main
from probe.gateway.trials import dump

from .faults import ResultChanged
from .runs import tried


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def listening() -> tuple[str, ...]:
    """Direct on both ways: the way through leads to the probe itself."""
    port = free_port()
    return ("gateway", "--listen", str(port), "--through", f"http://127.0.0.1:{port}/mcp", "--profile", "quick")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--probe", "http://127.0.0.1:1"], "--through URL says where the gateway is"),
        (["--through", "http://127.0.0.1:1/mcp"], "--listen PORT or --probe URL says where the probe is"),
        (
            ["--listen", "1", "--probe", "http://127.0.0.1:1", "--through", "http://127.0.0.1:1/mcp"],
            "--listen starts a probe and --probe uses one that runs: give one of them",
        ),
        (
            ["--listen", "1", "--breaker", "1", "--through", "http://127.0.0.1:1/mcp"],
            "--breaker is another port than --listen",
        ),
        (
            ["--probe", "http://127.0.0.1:1", "--through", "http://127.0.0.1:1/mcp", "--host", "0.0.0.0"],
            "--host is the address of --listen and of --breaker: give one of them",
        ),
        (["--insecure", "--cafile", "/nowhere"], "--insecure checks no certificate, so --cafile has no effect"),
        (["--verbose", "--format", "json"], "--verbose is about the table, and --format json writes none"),
        (["--only", "colour"], "there is no check 'colour'; known are stream.held"),
        (["--only", "stream.lat"], "there is no check 'stream.lat'; did you mean stream.late"),
        (["--allow", "/nowhere"], "/nowhere cannot be read"),
        (["--from", "/nowhere"], "/nowhere"),
        (["--observe"], "--observe reads the log of --probe URL"),
        (["--probe", "http://127.0.0.1:1", "--through", "nothing"], "'nothing' is not http://host[:port]/path"),
        (["--probe", "http://127.0.0.1:1", "--through", "http://127.0.0.1:1/mcp", "--wait", "0"], "did not answer"),
        (
            ["--probe", "http://127.0.0.1:1", "--through", "http://127.0.0.1:1/mcp", "--names", "/nowhere"],
            "/nowhere cannot",
        ),
        (["--listen", "1", "--through", "http://127.0.0.1:1/mcp", "--header", "no colon"], "--header is NAME: VALUE"),
    ],
)
def test_what_cannot_be_checked_is_said_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert said in error


_HAVE_EFFECT = {
    "--from": {"saved", "only", "skip", "allow", "strict", "form", "verbose", "out"},
    "--observe": {"observe", "probe", "cafile", "insecure", "out"},
}


@pytest.mark.parametrize(
    ("mode", "option"),
    [
        pytest.param(mode, option, id=f"{mode} {option.opts[0]}")
        for mode, has_effect in _HAVE_EFFECT.items()
        for option in COMMANDS["gateway"].params
        if option.name not in {*has_effect, "observe"}
    ],
)
def test_an_option_without_effect_is_refused(
    mode: str, option: click.Parameter, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = option.opts[0]
    if isinstance(option, click.Option) and option.is_flag:
        words = [flag]
    else:
        words = [flag, option.type.choices[0] if isinstance(option.type, click.Choice) else "1"]
    given = [mode, "/nowhere"] if mode == "--from" else [mode, "--probe", "http://127.0.0.1:1"]
    assert main(["gateway", *given, *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {flag} is about a run, and {mode} ")


def test_a_taken_breaker_port_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main([*listening(), "--breaker", str(port)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: --breaker cannot listen on 127.0.0.1:{port}: the port is in use"
    )


def test_a_run_is_written_kept_and_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, out = tmp_path / "run.ndjson", tmp_path / "out.json"
    secret = ("--header", "X-Gateway-Key: very-secret-value")
    code = main(
        [*listening(), *secret, "--only", "ids,errors.tool", "--save", str(kept), "--format", "json", "--out", str(out)]
    )
    assert code == 0
    value = json.loads(out.read_text())
    assert {(each["name"], each["verdict"]) for each in value["findings"]} == {
        ("errors.tool", "same"),
        ("ids.changed", "same"),
        ("ids.refused", "same"),
    }
    assert "very-secret-value" not in out.read_text() + kept.read_text()
    capsys.readouterr()
    assert main(["gateway", "--from", str(kept), "--only", "ids.changed", "--format", "markdown"]) == 0
    assert "| `ids.changed` | as sent | as sent | same |" in capsys.readouterr().out


def test_a_terminal_gets_lines_of_its_width_and_a_pipe_or_ci_gets_all_of_them(tmp_path: Path) -> None:
    kept = tmp_path / "run.ndjson"
    kept.write_bytes(b"".join(dump(trio.run(tried, ResultChanged(), ["ids", "results"]))))
    command = [sys.executable, "-m", "probe", "gateway", "--from", str(kept)]
    own = {name: value for name, value in os.environ.items() if name not in ("CI", "COLUMNS")}
    piped = subprocess.run(command, env=own, check=False, stdout=subprocess.PIPE, timeout=60).stdout.decode()
    longest = max(map(len, piped.splitlines()))

    def on_terminal(**more: str) -> str:
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            try:
                termios.tcsetwinsize(theirs, (24, longest - 10))
                assert subprocess.run(command, env=own | more, stdout=theirs, check=False, timeout=60).returncode == 1
            finally:
                os.close(theirs)
            return terminal.read(10_000).decode().replace("\r\n", "\n")

    assert max(map(len, on_terminal().splitlines())) == longest - 10
    assert on_terminal(CI="true") == piped


def test_a_signal_ends_a_run_and_what_was_done_is_judged(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "probe", *listening(), "--verbose"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("fidelity: errors"):
                process.send_signal(signal.SIGINT)
                break
        out, error = process.communicate(timeout=30)
    assert "stopped by a signal" in error
    assert "ids.changed" in out
    assert "stream.held" not in out
    assert " · PARTIAL: stopped by a signal: " in out
    assert process.returncode == 3


def test_a_run_that_reaches_its_limit_is_partial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, kept = tmp_path / "out.json", tmp_path / "run.ndjson"
    files = ("--format", "json", "--out", str(out), "--save", str(kept))
    # The silences of this profile last longer than its limit here.
    assert main([*listening(), "--limit", "2", *files]) == 3
    assert "ended by its limit of 2 s: " in capsys.readouterr().err
    assert json.loads(out.read_text())["partial"].startswith("ended by its limit of 2 s: ")
    assert main(["gateway", "--from", str(kept), "--format", "junit"]) == 3
    assert '<error message="the run is partial: ended by its limit of 2 s: ' in capsys.readouterr().out
