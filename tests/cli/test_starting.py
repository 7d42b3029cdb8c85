"""How the modules of a server are loaded, and how an error at its start comes out on each Python."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import probe
from probe.cli.starting import loading

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
