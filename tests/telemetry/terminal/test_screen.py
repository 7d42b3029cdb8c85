"""A line is one line: plain and whole in a file, in colours and cut to the width on a terminal."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest

from probe.telemetry.terminal.exchanges import Line
from probe.telemetry.terminal.screen import Screen

LINE = Line(1_780_000_000.25, "m1 client", "tools/call [bold]x", "ok, " + "long " * 60, "fine")
FINDING = Line(1_780_000_000.25, "m1 client", "wrong", "word " * 60 + "the clause", "bad", finding=True)


def written(line: Line) -> str:
    file = io.StringIO()
    Screen(file).show(line)
    return file.getvalue()


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")


def test_in_a_file_a_line_is_whole_and_without_colours() -> None:
    text = written(LINE)
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert text.endswith("long\n")
    assert "  m1 client            tools/call [bold]x" in text, "what a client wrote is no markup"
    assert text[:12].endswith(".250")


def test_on_a_terminal_it_is_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = written(LINE)
    assert (text.count("\n"), "\x1b[32m" in text, "…" in text) == (1, True, True)


def test_a_finding_is_whole_also_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "the clause" in written(FINDING)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii", "utf-8"])
@pytest.mark.parametrize("terminal", ["", "1"])
def test_what_an_encoding_does_not_have_is_escaped(
    encoding: str, terminal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", terminal)
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    Screen(file).show(replace(LINE, who="m1 日本", what="→ \U0001f600"))
    file.flush()
    said = file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert ("m1 日本" if encoding == "utf-8" else "m1 \\u65e5\\u672c") in said
    assert "ok, long" in said


@pytest.mark.parametrize("at", [math.nan, math.inf, -math.inf, 1e300])
def test_a_time_without_a_date_is_shown_as_none(at: float) -> None:
    assert written(replace(LINE, at=at)).startswith("--:--:--.---  m1 client")


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_has_gone_does_not_end_the_process() -> None:
    with pytest.raises(BrokenPipeError):
        Screen(Gone()).show(LINE)
