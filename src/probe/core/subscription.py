"""One `subscriptions/listen`: which changes it gets, and when it ends.

    state     a change it did not ask for   one it asked for          the queue is full   end
    OPEN      not sent                      sent                      ENDED               ENDED
    ENDED     not sent                      not sent                  -                   -

2026-07-28 basic/patterns/subscriptions: "The server MUST NOT send notification types the client has not explicitly
requested." A reader that falls behind by a whole queue is told the end (the final result follows what is queued) rather
than given a stream with holes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

ChangeKind = Literal["tools", "prompts", "resources", "resource", "task"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something changed: a list, or the resource or task named by `key`."""

    kind: ChangeKind
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter that a subscription asks for, or the server agreed to; order is kept, as the client sees it again."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def changes(self) -> frozenset[Change]:
        """Every change that passes."""
        lists = {Change("tools"): self.tools, Change("prompts"): self.prompts, Change("resources"): self.resources}
        named = {Change("resource", uri) for uri in self.uris} | {Change("task", id) for id in self.tasks}
        return frozenset(named | {change for change, asked in lists.items() if asked})


class ChangeFate(Enum):
    """The fate of a change: sent, left out, or the end of the subscription."""

    SEND = auto()
    IGNORE = auto()
    END = auto()


class Subscription:
    """The machine of one subscription. `honoured` is what the acknowledgement said."""

    def __init__(self, honoured: Filter, *, max_queue: int) -> None:
        self.honoured = honoured
        self.changes = honoured.changes
        self.ended = False
        self._max_queue = max_queue

    def offer(self, change: Change, queued: int, *, room: bool = True) -> ChangeFate:
        """Judge a change while `queued` messages wait for the reader; `room`: whether their bytes leave any."""
        if self.ended or change not in self.changes:
            return ChangeFate.IGNORE
        if queued >= self._max_queue or not room:
            self.ended = True
            return ChangeFate.END
        return ChangeFate.SEND

    def end(self) -> bool:
        """The server ends it. False: it had ended before."""
        before, self.ended = self.ended, True
        return not before
