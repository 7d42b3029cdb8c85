"""A line is one line: plain and whole in a file, in colours and cut to the width on a terminal."""

from __future__ import annotations

import io

import pytest

from probe.terminal.exchanges import Line
from probe.terminal.screen import Screen

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


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_has_gone_does_not_end_the_process() -> None:
    with pytest.raises(BrokenPipeError):
        Screen(Gone()).show(LINE)
