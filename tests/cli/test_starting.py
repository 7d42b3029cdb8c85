"""How the modules of a server are loaded, and how an error at its start comes out on each Python."""

from __future__ import annotations

import ast
import gc
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

import probe
from probe.cli import app
from probe.cli.starting import loading

from ..support.process import serving

SOURCES = Path(probe.__file__).parent


def test_no_garbage_is_looked_for_in_what_is_loaded() -> None:
    with loading():
        assert not gc.isenabled()
        loaded: list[object] = []
    assert gc.isenabled()
    assert not any(each is loaded for each in gc.get_objects())


def raised_from_groups() -> Iterator[str]:
    """The places that raise in an `except*`."""
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.TryStar):
                raised = (inner for handler in node.handlers for inner in ast.walk(handler))
                yield from (f"{file}:{inner.lineno}" for inner in raised if isinstance(inner, ast.Raise))


def test_no_handler_of_a_group_raises() -> None:
    """Python 3.11.2 puts what it raises into a group, which no caller expects."""
    assert list(raised_from_groups()) == []


# What a person who starts a server is told and shown.


async def test_open_starts_a_browser_at_the_dashboard() -> None:
    browser = 'sh -c "echo opened $0" %s'
    async with serving(
        "--open", "--host", "0.0.0.0", "--public-url", "https://probe.example", BROWSER=browser
    ) as server:
        told = await server.program.said("Dashboard")
        assert told.endswith("Dashboard: https://probe.example/dashboard"), "for whoever reads it, who may be elsewhere"
        opened = await server.program.said("opened")
    assert opened.endswith(f"opened http://127.0.0.1:{server.port}/dashboard"), "from this machine"


async def test_where_no_browser_starts_the_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    told: list[str] = []
    await app._open_browser("http://127.0.0.1:1/dashboard", told.append)
    assert told == ["no browser could be started here; open http://127.0.0.1:1/dashboard"]
