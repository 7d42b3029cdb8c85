"""A step: a few requests on one way, and their record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..client.records import ClientExchange
from ..side import Side

Profile: TypeAlias = Literal["quick", "full", "idle"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a step: its exchanges, the client's moments in seconds since the epoch, and other facts."""

    exchanges: tuple[ClientExchange, ...]
    moments: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `run` takes the way, and the mark for the arguments of its calls.

    It is done `turns` times on each way, in turn, if the way offers all of its `needs`, such as "tool:fail". Steps that
    mostly wait run `beside` the others. `settles_s` is the time after it for the probe to end its calls. Steps that may
    break the gateway are `last`. `profiles` are the profiles that include it.
    """

    name: str
    phase: str
    run: Callable[[Side, int], Awaitable[Taken]]
    needs: frozenset[str] = frozenset()
    turns: int = 1
    beside: bool = False
    last: bool = False
    settles_s: float = 3.0
    profiles: tuple[Profile, ...] = ("quick", "full", "idle")
