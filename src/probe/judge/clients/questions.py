"""A question of the server to a client and the answer to it, whichever way they travel."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...views.retention import covers, members
from ...views.values import Exchange, Message
from ..retention import BOUNDS
from ..values import pointer

METHODS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The methods by which a server asks a client something. A ping asks nothing."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"

# A person cannot read an address and agree to it so soon, in seconds.
_AT_ONCE_S: Final = 1.0


@dataclass(slots=True, eq=False)
class Question:
    """A question of the server to the client: a form or a page, a completion, the roots.

    `sent` is the message that carried it first, `pointer` where its `params` stand in that. `declared` are the
    capabilities that the client had declared. `key` is its name in `inputRequests`, None in the legacy era. `task` is
    the task that asks. `delivered` is when a socket took it, `withdrawn` when the server cancelled it.
    """

    sent: Message
    method: str
    params: Mapping[str, Any]
    declared: Mapping[str, Any]
    pointer: str
    revision: str | None
    key: str | None = None
    task: str | None = None
    delivered: float | None = None
    withdrawn: float | None = None
    replies: deque[Reply] = field(default_factory=lambda: deque(maxlen=BOUNDS.parts))

    @property
    def seq(self) -> int:
        return self.sent.seq

    @property
    def had(self) -> float:
        """The time of its delivery; until that is in the log, of its emission."""
        return self.sent.at if self.delivered is None else self.delivered

    @property
    def related_task(self) -> str | None:
        """The task of 2025-11-25 in its `_meta`."""
        id = members(members(self.params.get("_meta")).get(RELATED_TASK)).get("taskId")
        return id if isinstance(id, str) else None

    @property
    def is_url(self) -> bool:
        """True for an elicitation in URL mode; one without a mode is a form."""
        return self.method == "elicitation/create" and self.params.get("mode") == "url"

    @property
    def url(self) -> str | None:
        """The page of an elicitation in URL mode."""
        url = self.params.get("url") if self.is_url else None
        return url if isinstance(url, str) else None

    @property
    def is_declared(self) -> bool:
        """True if the client declared that it answers it: an elicitation, in this mode.

        2025-11-25 client/elicitation: "an empty capabilities object is equivalent to declaring support for `form` mode
        only".
        """
        declared = self.declared.get(self.method.partition("/")[0])
        if not isinstance(declared, dict):
            return False
        if self.method != "elicitation/create":
            return True
        return "url" in declared if self.is_url else "form" in declared or "url" not in declared

    def replied_by(self, at: float) -> bool:
        return any(reply.at < at for reply in self.replies)

    def withdrawn_by(self, at: float) -> bool:
        return self.withdrawn is not None and self.withdrawn < at

    def given_up_by(self, at: float) -> bool:
        """True if the server had withdrawn it, or its request was answered or left by the client.

        The answer of a request that begins a task comes before the questions of the task.
        """
        request = self.sent.request if self.related_task is None else None
        return self.withdrawn_by(at) or (request is not None and (request.was_answered(at) or request.dropped_by(at)))

    def hides(self, *names: str) -> bool:
        """True if a part of a member of its `params` is hidden in the log; `names` lead to it."""
        return bool(self.sent.hidden) and covers(self.sent.hidden, self.pointer + pointer(*names))


@dataclass(frozen=True, slots=True)
class Reply:
    """The client's answer to a question: a result or an error, the other is None.

    `message` is the answer, the retry or the `tasks/update` that brought it, `pointer` where it stands in that.
    """

    question: Question
    message: Message
    value: Any
    error: Any
    pointer: str

    @property
    def seq(self) -> int:
        return self.message.seq

    @property
    def at(self) -> float:
        return self.message.at

    @property
    def method(self) -> str:
        return self.question.method

    @property
    def revision(self) -> str | None:
        return self.message.revision

    @property
    def is_wrapped(self) -> bool:
        """True for a JSON-RPC message where its result alone should stand."""
        value = members(self.value)
        if self.question.key is None or not value:
            return False
        return "jsonrpc" in value or value.keys() <= {"result", "error", "id"}

    def hides(self, *names: str) -> bool:
        """True if a part of it, or of a member that `names` lead to, is hidden in the log."""
        return bool(self.message.hidden) and covers(self.message.hidden, self.pointer + pointer(*names))


def input_questions(
    sent: Message, holder: Mapping[str, Any], place: str, declared: Mapping[str, Any], task: str | None = None
) -> dict[str, Question]:
    """The questions of the `inputRequests` of a result or a task, by their keys."""
    found = {}
    for key, value in members(holder.get("inputRequests")).items():
        method, params = str(members(value).get("method")), members(members(value).get("params"))
        where = place + pointer(key, "params")
        found[key] = Question(sent, method, params, declared, where, sent.revision, key, task)
    return found


@dataclass(frozen=True, slots=True)
class PageVisit:
    """A request for a page of this server that a question named, by a browser or the client itself."""

    question: Question
    exchange: Exchange

    @property
    def method(self) -> str:
        return self.question.method

    @property
    def seq(self) -> int:
        return self.exchange.seq

    @property
    def at(self) -> float:
        return self.exchange.began.mono

    @property
    def is_by_program(self) -> bool:
        """True without the Sec-Fetch headers of a browser, between the question and any answer."""
        exchange, had = self.exchange, self.question.delivered
        if exchange.request.method not in ("GET", "HEAD") or had is None or had >= self.at:
            return False
        browses = exchange.header("sec-fetch-mode") == "navigate" or exchange.header("sec-fetch-user") is not None
        return not browses and not self.question.replied_by(self.at)

    @property
    def is_at_once(self) -> bool:
        return self.at - self.question.had <= _AT_ONCE_S
