"""Rules `lifecycle.*`: what was negotiated is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ....log.bounded import Newest
from ...projection.views import Message, members
from ..predicate import Predicate, judges

_MOST: Final = 1_000
_OF_METHOD: Final[Mapping[str, str]] = {
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "tasks": "tasks",
    "logging": "logging",
    "tools": "tools",
}
_DISCOVER: Final = "server/discover"
# The side that works on a task sends it. A client works on tasks that the server asks it for, and declares that.
_STATUS: Final = "notifications/tasks/status"

_Url: TypeAlias = tuple[str, str]


@judges("lifecycle.capabilities-respected")
class LifecycleCapabilitiesRespected(Predicate):
    """Uses only what was declared: by the server, and for the status of tasks of its own by the client itself.

    A client of 2026-07-28 need not ask for that, so only the result of a server/discover that it got at the same URL
    or on the same pipe counts. Tasks are left to the extension and to `jsonrpc.methods-of-revision` where the revision
    has none. tools/list at a server without tools is common and harmless.
    """

    def setup(self) -> None:
        # The answer to server/discover, and when it was delivered.
        self._discovered: Newest[_Url, tuple[float, Message]] = Newest(_MOST)

    def on_answered(self, request: Message) -> None:
        if request.method != _DISCOVER or request.answered is None or request.answer is None:
            return
        if isinstance(request.answer.result.get("capabilities"), dict):
            self._discovered.store(_url(request), (request.answered, request))

    def on_request(self, message: Message) -> None:
        capability = _OF_METHOD.get((message.method or "").partition("/")[0])
        if capability is None or (capability == "tasks" and message.revision != "2025-11-25"):
            return
        source = self._source(message)
        if source is None:
            return
        had, request = source
        if message.at < had + self.allowances.settle_s and message.pipe is not None and not _is_ready(message):
            return
        offered = members(request.answer.result.get("capabilities")) if request.answer is not None else {}
        if capability in offered:
            self.ok(message, request.seq)
        elif capability == "tools":
            self.warn(message, f"{message.method}, and the server did not declare tools", request.seq)
        else:
            self.fail(message, f"{message.method}, and the server did not declare {capability}", request.seq)

    def on_notification(self, message: Message) -> None:
        session = message.session
        if message.method != _STATUS or message.revision != "2025-11-25" or session is None:
            return
        evidence = () if session.initialize is None else (session.initialize.seq,)
        if "tasks" in session.capabilities:
            self.ok(message, *evidence)
        else:
            self.fail(message, f"{_STATUS}, and the client did not declare tasks", *evidence)

    def _source(self, message: Message) -> tuple[float, Message] | None:
        session = message.session
        if session is None:
            return self._discovered.get(_url(message))
        if session.had is None or session.initialize is None:
            return None
        return session.had, session.initialize


def _url(message: Message) -> _Url:
    if message.pipe is not None:
        return message.pipe.label, ""
    return ("", "") if message.exchange is None else (message.exchange.path, message.exchange.query)


def _is_ready(message: Message) -> bool:
    """Whether the client has said that it has read the answer to initialize."""
    return message.session is not None and message.session.initialized is not None
