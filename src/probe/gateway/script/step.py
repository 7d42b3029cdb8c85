"""A step does one thing on one way, and brings back what was seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..client.records import Exchange
from ..side import Side

Profile: TypeAlias = Literal["quick", "full", "idle"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a step: its exchanges, the client's moments in seconds since the epoch, and other facts."""

    exchanges: tuple[Exchange, ...]
    moments: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `run` is given the way and the mark that goes into the arguments of its calls.

    It is done `turns` times on each way, in turn, and only where the way offers all that it `needs`. A step with
    `beside` runs beside the others, as it waits most of its time. `settles_s` is how long after it the probe may take
    to end its calls. A step that is `last` is done when all others are over: a gateway that breaks by it then spoils
    nothing else. It belongs to the `profiles` named.
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
