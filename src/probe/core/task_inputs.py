"""The questions of one task that its client answers by `tasks/update`.

    a key          ask            update                                                        withdraw
    never used     outstanding    ignored: "keys that were never issued"                        -
    outstanding    violation      answered                                                      withdrawn
    answered       violation      ignored: "keys that have already been answered"               answered
    withdrawn      violation      ignored: "keys whose corresponding request has been superseded"   withdrawn

Tasks extension, Task Update Requests: "Each request key in `inputRequests` MUST be unique over the lifetime of a single
task", so asking again under a key is a defect of this server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..wire.jsonrpc import Json


class TaskInputsViolationError(RuntimeError):
    """A key was used for a second question: a defect of this server, never of a client."""


class TaskInputs:
    """The questions of a task, and their answers."""

    def __init__(self) -> None:
        self._outstanding: dict[str, Json] = {}
        self._answers: dict[str, Json] = {}
        self._withdrawn: set[str] = set()

    @property
    def outstanding(self) -> Mapping[str, Json]:
        """The requests without an answer, by key, in the order in which they were asked."""
        return dict(self._outstanding)

    def ask(self, requests: Mapping[str, Json]) -> None:
        """Put questions. Raises `TaskInputsViolationError` for a key used before; then none is put."""
        used = sorted(requests.keys() & (self._outstanding.keys() | self._answers.keys() | self._withdrawn))
        if used:
            raise TaskInputsViolationError(f"the task has asked under {', '.join(used)} before")
        self._outstanding.update(requests)

    def update(self, responses: Mapping[str, Json]) -> int:
        """Take the answers to what is outstanding, ignore the others; returns how many were taken."""
        taken = [key for key in responses if key in self._outstanding]
        for key in taken:
            del self._outstanding[key]
            self._answers[key] = responses[key]
        return len(taken)

    def withdraw(self, keys: Iterable[str]) -> int:
        """Forget these questions; returns the number of those without an answer."""
        given_up = [key for key in keys if key in self._outstanding]
        for key in given_up:
            del self._outstanding[key]
            self._withdrawn.add(key)
        return len(given_up)

    def answers(self, keys: Iterable[str]) -> Mapping[str, Json] | None:
        """The answers under these keys; None until the last of them is there."""
        wanted = list(keys)
        return {key: self._answers[key] for key in wanted} if all(key in self._answers for key in wanted) else None
