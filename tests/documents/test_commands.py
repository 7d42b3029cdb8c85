"""Every command that the documents and the help name exists, with its options; every shell takes a pasted block."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from probe.cli.program import COMMANDS

from .markdown import PAGES, ROOT, examples, name

# what is called so in the changelog was called so then
TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]
_COMMAND = re.compile(r"(?:^|(?<=[`(\s'\"]))(?:uvx |pipx run )?mcp-probe(?:-server)? ([a-z-]+)((?: [^`|&;\n'\")]*)?)")
_SESSION = re.compile(r"nox -s ([a-z_]+)")
# in running text "mcp-probe" is also the name of a product, an image and a version
_NO_COMMAND = {"wrote", "--orderby"}


def unknown(text: str) -> Iterator[str]:
    """The commands of a text that do not exist, and the options that a command does not have."""
    for command, words in _COMMAND.findall(text):
        if command in _NO_COMMAND:
            continue
        if command not in COMMANDS:
            yield command
            continue
        options = {option for each in COMMANDS[command].params for option in (*each.opts, *each.secondary_opts)}
        # what follows -- is the command of a client
        for option in re.findall(r"(?<!\S)--[a-z-]+", words.partition(" -- ")[0]):
            if option not in options | {"--help"}:
                yield f"{command} {option}"


def sessions() -> set[str]:
    """The names of the sessions of noxfile.py."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {
        function.name for function in functions if any("session" in ast.unparse(d) for d in function.decorator_list)
    }


@pytest.mark.parametrize("page", TODAY, ids=name)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    assert [*unknown(page.read_text())] == []


def test_every_command_of_the_help_exists_with_its_options() -> None:
    for command in COMMANDS.values():
        with click.Context(command, info_name=command.name) as context:
            assert [*unknown(command.get_help(context))] == []


def test_an_unknown_command_and_an_unknown_option_are_found() -> None:
    assert [*unknown("`mcp-probe jugde -- x`")] == ["jugde"]
    assert [*unknown("mcp-probe judge --srtict --for 5 -- client --url={url}")] == ["judge --srtict"]


@pytest.mark.parametrize("page", TODAY, ids=name)
def test_every_session_of_a_page_exists(page: Path) -> None:
    assert {*_SESSION.findall(page.read_text())} <= sessions()


def test_every_session_has_a_row() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(sessions())


def test_no_block_for_a_shell_has_a_comment() -> None:
    """At its prompt zsh takes `#` for a word: a pasted line with a comment fails."""
    blocks = [example for page in TODAY for example in examples(page) if example.language == "sh"]
    assert len(blocks) > 20
    assert [(name(block.page), block.code) for block in blocks if re.search(r"(?:^|\s)#", block.code)] == []


def test_every_block_that_begins_with_a_command_is_for_a_shell() -> None:
    """So that no command is left out of the tests of such blocks. A line after `$` has what it prints below it."""
    commands = re.compile(r"(?:[A-Z_]+=\S+ )?(?:mcp-probe|python3?|curl|docker|az|sudo|\.nox|uvx|git) ")
    for page in TODAY:
        for example in examples(page):
            assert example.language or not commands.match(example.code), f"{name(page)}: {example.code}"
