"""Rules `refused.*`: what the server answered with an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ....log.bounded import Newest
from ....settings.limits import Limits
from ....wire.errors import CLIENT_CODES, Code, Refusal
from ....wire.jsonrpc import clip
from ...projection.views import LIMIT_REFUSALS, Exchange, Message, members
from ..predicate import Predicate, Wait, judges

_MOST_METHODS: Final = 200
# A refusal under another name that comes of a limit ends with the name of its setting.
_SETTING: Final = re.compile(r"\((\w+)\)$")
_SETTINGS: Final = frozenset(field.name for field in fields(Limits))
_LONGEST: Final = 200

# Refusals that a limit of the server caused; one of them is how long it keeps the events of a stream.
_LIMITS: Final = LIMIT_REFUSALS | {Refusal.EVENTS_GONE.name}
# Refusals that need not be the client's doing, and why.
_EXCUSED: Final[Mapping[str, str]] = {
    Refusal.UNKNOWN_SESSION.name: "the session may have ended without the client's doing",
    Refusal.FORBIDDEN_HOST.name: "whoever set up the server says which hosts it serves",
    Refusal.FORBIDDEN_ORIGIN.name: "whoever set up the server says which origins it serves",
    Refusal.UNKNOWN_TOOLS.name: "whoever wrote the URL named the tools",
    Refusal.CLIENT_LABEL.name: "whoever wrote the URL named the client",
    Refusal.UNSUPPORTED_VERSION.name: "a client may try a version that this server does not have",
    Refusal.UNSUPPORTED_PROTOCOL_VERSION.name: "a client may try a version that this server does not have",
    Refusal.MISSING_CAPABILITY.name: "a client learns by it what the request needs",
    Refusal.PARSE_ERROR.name: "this server does not read all that may be JSON",
}
# So the server refuses what a client sends as if it had a session.
_WITHOUT_SESSION: Final = frozenset({Refusal.MISSING_SESSION.name, Refusal.INVALID_META.name})
# These name things that a model or a person chose, or that have ended meanwhile.
_NAMING: Final = frozenset(
    {"tools/call", "prompts/get", "completion/complete", "resources/read", "resources/subscribe"}
    | {"resources/unsubscribe", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update", "stream/resume"}
    | {"stream/poll"}
)
_BY_NAME: Final = frozenset({Code.INVALID_PARAMS, Code.RESOURCE_NOT_FOUND, Code.METHOD_NOT_FOUND})
# By these a client asks whether the server offers something; so do browsers and the health checks of proxies.
_ASKING: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


@judges("refused.by-server")
class RefusedByServer(Predicate):
    """Sends nothing that the server refuses.

    This is the rule for refusals that no other rule explains, so it comes last, and waits for rules that wait. A
    message over HTTP is judged with its response, as other rules may see the fault there only. A refusal that
    a limit or the end of the server caused is none; one that a model, a person or a restart may have caused, and that
    of a method that is tried once, is not decided.
    """

    general = True

    def setup(self) -> None:
        self._unknown: Newest[str, int] = Newest(_MOST_METHODS)
        self._initialize: Message | None = None

    def on_request(self, message: Message) -> None:
        if message.method == "initialize":
            self._initialize = message

    def on_refused(self, message: Message) -> None:
        if message.exchange is None or message.exchange.status is not None:
            self._refused(message)

    def is_decided_at_end(self, wait: Wait) -> bool:
        # It waits for other rules only, and these have decided now.
        wait.call(*wait.arguments)
        return True

    def on_response(self, exchange: Exchange) -> None:
        refused = [message for message in exchange.messages if message.refusal is not None]
        for message in refused:
            self._refused(message)
        if refused or exchange.refusal is None or exchange.refusal in _LIMITS or exchange.found is not None:
            return
        unreadable = exchange.unreadable
        if unreadable is None or unreadable.found is None:
            self._judge_exchange(exchange, exchange.refusal)

    def on_answered(self, request: Message) -> None:
        answer = request.answer
        if request.refusal is not None or answer is None or answer.rpc != "error" or _is_found(request):
            return
        code, said = answer.error.get("code"), f"{answer.error.get('message')}"
        if code not in CLIENT_CODES or _names_limit(said):
            return
        words = _words(said)
        if code == Code.MISSING_CLIENT_CAPABILITY:
            self.unclear(request, f"{_EXCUSED[Refusal.MISSING_CAPABILITY.name]}: {words}", answer.seq)
        elif code in _BY_NAME and request.method in _NAMING:
            self.unclear(request, f"a model or a person may have named it: {words}", answer.seq)
        elif code == Code.METHOD_NOT_FOUND:
            self._method(request, words)
        elif code == Code.RESUMED_TOO_EARLY and self._is_in_tolerance(answer.error.get("data")):
            self.unclear(request, f"a timer may be early by a little: {words}", answer.seq)
        else:
            self._fault(request, words, answer.seq)

    def _is_in_tolerance(self, data: Any) -> bool:
        early_ms = members(data).get("retryAfterMs")
        return isinstance(early_ms, (int, float)) and early_ms <= self.allowances.retry_tolerance_ms

    def _refused(self, message: Message) -> None:
        name = message.refusal or ""
        if name in _LIMITS or message.is_limited or _names_limit(message.problem) or _is_found(message):
            return
        words = _words(message.problem)
        if message.rpc in ("response", "error") and message.session is not None:
            # An answer without its question: `jsonrpc.response-id` sees that later.
            return
        if name == Refusal.METHOD_NOT_FOUND.name:
            self._method(message, words)
        elif name in _EXCUSED:
            self.unclear(message, f"{_EXCUSED[name]}: {words}")
        elif name in _WITHOUT_SESSION and message.era != "modern" and self._was_initialize_refused():
            self.unclear(message, f"the server had refused initialize, so there was no session: {words}")
        elif message.method == "ping" and message.pipe is not None and message.session is None:
            # 2025-11-25 basic/lifecycle: no "requests other than pings" before the answer to `initialize`.
            self.unclear(message, f"a ping may come before initialize: {words}")
        elif name == Refusal.INVALID_PARAMS.name and message.method in _NAMING:
            self.unclear(message, f"a model or a person may have named it: {words}")
        else:
            self._fault(message, words)

    def _was_initialize_refused(self) -> bool:
        asked = self._initialize
        answer = None if asked is None else asked.answer
        return asked is not None and (asked.refusal is not None or (answer is not None and answer.rpc == "error"))

    def _method(self, message: Message, words: str) -> None:
        """A method that the server does not have may be tried once: that is how a client learns of it."""
        method = message.method or ""
        first = self._unknown.get(method)
        if first is None:
            self._unknown.store(method, message.seq)
            self.unclear(message, f"a client may try a method once: {words}")
        else:
            self._fault(message, f"the method was tried before: {words}", first)

    def _fault(self, of: Message | Exchange, words: str, *more: int) -> None:
        self.let_cross(self.now + self.allowances.settle_s, self._unexplained, of, words, more, of=of, also=more)

    def _unexplained(self, of: Message | Exchange, words: str, more: tuple[int, ...]) -> None:
        if not (_is_found(of) if isinstance(of, Message) else _is_explained(of)):
            self.fail(of, words, *more)

    def _judge_exchange(self, exchange: Exchange, name: str) -> None:
        problem = exchange.problem or f"HTTP status {exchange.status}"
        words = _words(problem)
        if _names_limit(problem):
            return
        if name in _EXCUSED:
            self.unclear(exchange, f"{_EXCUSED[name]}: {words}")
        elif exchange.method in _ASKING and name != Refusal.UNKNOWN_EVENT_ID.name:
            self.unclear(exchange, f"{exchange.method} may ask what the server offers: {words}")
        else:
            self._fault(exchange, words)


def _is_found(message: Message) -> bool:
    """Whether another rule has looked into the message, its HTTP request, or the array that it was part of."""
    exchange = message.exchange
    if exchange is None or _is_explained(message):
        return _is_explained(message)
    return _is_explained(exchange) or any(map(_is_explained, exchange.messages))


def _is_explained(of: Message | Exchange) -> bool:
    """Whether another rule has found a fault, or could not decide."""
    return of.found is not None or of.doubted


def _names_limit(problem: str) -> bool:
    found = _SETTING.search(problem)
    return found is not None and found[1] in _SETTINGS


def _words(text: str) -> str:
    return f"the server refused it: {clip(text, _LONGEST)}"
