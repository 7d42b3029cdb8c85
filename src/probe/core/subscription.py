"""One `subscriptions/listen`: the changes that it gets, and its end.

    state     a change it did not ask for   one it asked for          the queue is full   end
    OPEN      not sent                      sent                      ENDED               ENDED
    ENDED     not sent                      not sent                  -                   -

2026-07-28 basic/patterns/subscriptions: "The server MUST NOT send notification types the client has not explicitly
requested." The subscription of a slow reader ends when its queue is full: the final result follows the queued messages,
so the reader gets no stream with holes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

ChangeKind = Literal["tools", "prompts", "resources", "resource", "task"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a list, or of the resource or task with the name `key`."""

    kind: ChangeKind
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter that a client asked for, or that the server acknowledged, in the order of the client."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def changes(self) -> frozenset[Change]:
        lists = {Change("tools"): self.tools, Change("prompts"): self.prompts, Change("resources"): self.resources}
        named = {Change("resource", uri) for uri in self.uris} | {Change("task", id) for id in self.tasks}
        return frozenset(named | {change for change, asked in lists.items() if asked})


class ChangeFate(Enum):
    """The outcome for a change: sent, left out, or the end of the subscription."""

    SEND = auto()
    IGNORE = auto()
    END = auto()


class Subscription:
    """The machine of one subscription. `acknowledged` is the filter of the acknowledgement."""

    def __init__(self, acknowledged: Filter, *, max_queue: int) -> None:
        self.acknowledged = acknowledged
        self.changes = acknowledged.changes
        self.ended = False
        self._max_queue = max_queue

    def offer(self, change: Change, queued: int, *, room: bool = True) -> ChangeFate:
        """Decide about a change while `queued` messages wait. `room` is False if their bytes fill the limit."""
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
