"""`mcp-probe settings [WORD]...`: what can be set, in groups, as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import click

from ...settings import Described
from ...settings.description import did_you_mean
from .options import every_setting

# longer lines are hard to read, and narrower ones have no room for a flag
_WIDEST = 100
_NARROWEST = 40


def _text(value: Any) -> str:
    # bounds are floats also for whole numbers; :g alone would print a mebibyte as 1.04858e+06
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


def _bounds(spec: Described) -> str:
    if spec.low is None:
        return ""
    low = _text(spec.low)
    return f", at least {low}" if spec.high is None else f", {low} to {_text(spec.high)}"


def _about(spec: Described, words: Iterable[str]) -> bool:
    whole = f"{spec.flag} {spec.variable} {spec.unit} {spec.reason} {spec.group}".lower()
    return all(word.lower() in whole for word in words)


def _lines(spec: Described, width: int) -> Iterator[str]:
    default = f"{spec.flag} {_text(spec.default)}".rstrip()
    yield from _wrapped(f"{default}  ({spec.unit}{_bounds(spec)})", width, first="  ")
    yield from _wrapped(f"{spec.reason} [{spec.variable}]", width, first="      ")


def _wrapped(text: str, width: int, first: str) -> list[str]:
    # Names with hyphens are copied, and have to stay whole.
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent="      ", break_on_hyphens=False)


def _unknown(words: Sequence[str]) -> click.ClickException:
    names = [spec.name.replace("_", "-") for spec in every_setting()]
    wanted = "-".join(words).lower().strip("-").replace("_", "-")
    hint = did_you_mean(wanted, names) or "; `mcp-probe settings` lists all"
    return click.ClickException(f"no setting is about {' '.join(words)!r}{hint}")


@click.command("settings")
@click.argument("words", metavar="[WORD]...", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """List all settings, or those about WORD.

    A setting is about a word that stands in its name, its unit, its reason or its heading; of several words, about all.
    """
    found = [spec for spec in every_setting() if _about(spec, words)]
    if not found:
        raise _unknown(words)
    width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 0)).columns))
    for group, specs in groupby(found, key=lambda spec: spec.group):
        click.echo("\n" + click.style("\n".join(textwrap.wrap(group, width)), bold=True) + "\n")
        for spec in specs:
            click.echo("\n".join(_lines(spec, width)))
