"""A member of a message by its JSON pointer (RFC 6901), never one that is hidden in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...views.values import Message
from .findings import Hidden

MISSING: Final = object()
"""Stands for a member that a message does not have."""


def names_in(pointer: str) -> Sequence[str]:
    """The names that a JSON pointer leads along."""
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


def member(message: Message, pointer: str, *, below: bool = False) -> Any:
    """The value of a member, `MISSING` without it. Raises `Hidden` where it is hidden at or above the pointer.

    With `below` also where something inside of it is hidden, so that its content is not known.
    """
    if below and message.hides(pointer):
        raise Hidden
    return member_of(message, names_in(pointer), pointer)


def member_of(message: Message, names: Sequence[str], pointer: str) -> Any:
    """The same, with the names in the pointer."""
    if any(path == pointer or pointer.startswith(path + "/") for path, _ in message.hidden):
        raise Hidden
    value = message.value
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value
