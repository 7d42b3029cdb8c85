"""Rules `lifecycle.*`: initialize, and what follows it."""

from __future__ import annotations

import re
from typing import Any, Final

from ....log.bounded import Newest
from ....wire.jsonrpc import clip
from ....wire.revisions import MODERN
from ...projection.views import Exchange, Message, Pipe, Session, members
from ...values import shown
from ..predicate import Predicate, Wait, judges

_MOST_SESSIONS: Final = 1_000
_INITIALIZED: Final = "notifications/initialized"
# May come at any time: "before the server has responded", too.
_FREE: Final = frozenset({"ping", "initialize"})
_SESSION_HEADER: Final = "mcp-session-id"


@judges("lifecycle.initialize-first")
class LifecycleInitializeFirst(Predicate):
    """Begins with initialize.

    A message without any word of its era may be of a modern client that forgot its `_meta`. So what came first is held
    until the client says which era it speaks: then it is a fault of this rule, or one of `meta.protocol-version`.
    A request with the id of a session belongs to that session, be it one of an earlier run.
    """

    any_revision = True

    def setup(self) -> None:
        # The message that came first on a pipe, or by HTTP (None), perhaps too early; None once that is decided.
        self._held: Newest[str | None, Message | None] = Newest(_MOST_SESSIONS)

    def on_message(self, message: Message) -> None:
        place = None if message.pipe is None else message.pipe.label
        if message.session is not None:
            return
        held = self._held.get(place)
        if message.method == "initialize":
            self._held.store(place, None)
            self._begins(message, held)
        elif held is None and place in self._held:
            return
        elif message.era == "modern":
            self._held.store(place, None)
        elif held is None and message.method != "ping" and message.rpc != "invalid" and not _names_session(message):
            self._held.store(place, message)
            if message.method == _INITIALIZED:
                self._held.store(place, None)
                self._accuse(message)

    def _begins(self, message: Message, held: Message | None) -> None:
        if held is not None:
            self._accuse(held, message.seq)
        elif message.pipe is not None or self.life.kind != "nothing":
            self.ok(message)

    def on_pipe_end(self, pipe: Pipe) -> None:
        self._settle(pipe.label)

    def on_end(self) -> None:
        for place in list(self._held):
            self._settle(place)

    def _settle(self, place: str | None) -> None:
        held = self._held.get(place)
        if held is not None:
            self._held.store(place, None)
            self._accuse(held)

    def _accuse(self, message: Message, *more: int) -> None:
        what = message.method or f"a {message.rpc}"
        if not self.life.whole:
            self.unclear(message, f"entries of the log are missing; {what} came before any initialize", *more)
        elif message.pipe is None and not self.life.is_one_process:
            whose = self.life.several or "nothing says that this is one client"
            self.unclear(message, f"{whose}; {what} came before any initialize", *more)
        elif message.is_limited:
            self.unclear(message, f"{what} was refused for a limit", *more)
        else:
            self.fail(message, f"{what} came before any initialize", *more)


def _names_session(message: Message) -> bool:
    exchange = message.exchange
    return exchange is not None and (_SESSION_HEADER in exchange.headers or exchange.session_in_query)


@judges("lifecycle.initialize-complete")
class LifecycleInitializeComplete(Predicate):
    """Says version, capabilities and its name and version in initialize."""

    methods = frozenset({"initialize"})

    def on_request(self, message: Message) -> None:
        params = message.params
        info = params.get("clientInfo")
        names = members(info)
        wrong = [
            what
            for what, good in (
                ("protocolVersion", isinstance(params.get("protocolVersion"), str)),
                ("capabilities", isinstance(params.get("capabilities"), dict)),
                ("clientInfo", isinstance(info, dict)),
                ("clientInfo.name", isinstance(names.get("name"), str)),
                ("clientInfo.version", isinstance(names.get("version"), str)),
            )
            if not good and not message.hides("/params/" + what.replace(".", "/"))
        ]
        if wrong:
            self.fail(message, f"{wrong[0]} is {_missing_or_wrong(params, wrong[0])}")
        elif names.get("name") and names.get("version"):
            self.ok(message)
        else:
            self.warn(message, f"clientInfo.{'version' if names.get('name') else 'name'} is empty")


def _missing_or_wrong(params: Any, path: str) -> str:
    value = params
    for name in path.split("."):
        if name not in members(value):
            return "missing"
        value = value[name]
    return clip(repr(value))


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@judges("lifecycle.version-known")
class LifecycleVersionKnown(Predicate):
    """Asks for a protocol version that exists; one newer than this program is a date like the others."""

    methods = frozenset({"initialize"})

    def on_request(self, message: Message) -> None:
        version = message.params.get("protocolVersion")
        if not isinstance(version, str):
            return
        if version in MODERN:
            self.warn(message, f"initialize asks for {version}, which has no initialize")
        elif _DATE.fullmatch(version):
            self.ok(message)
        elif version.upper().startswith("DRAFT") or _DATE.match(version):
            self.warn(message, f"protocolVersion is {shown(version)}, a version before its release")
        else:
            self.fail(message, f"protocolVersion is {shown(version)}")


@judges("lifecycle.initialized-sent")
class LifecycleInitializedSent(Predicate):
    """Sends notifications/initialized.

    The notification may travel on another connection than the first request, and a slow client may send it late, so its
    absence is certain at the end of the session only. One that was refused, and one that came without the session,
    counts as sent; and so may a POST whose body nobody has read.
    """

    any_revision = True

    def setup(self) -> None:
        # The first request of each session that owes the notification; None once that is decided.
        self._owing: Newest[str, tuple[Session, Message] | None] = Newest(_MOST_SESSIONS)

    def on_request(self, message: Message) -> None:
        session = message.session
        if session is None or session.had is None or session.initialized is not None or message.method in _FREE:
            return
        if session.label not in self._owing:
            self._owing.store(session.label, (session, message))
            self.give_time(message.at + self.allowances.answer_s, self._look, session, message, of=message)

    def on_message(self, message: Message) -> None:
        session = message.session
        if message.method == _INITIALIZED:
            if session is None:
                self._forgive()
            else:
                self._owing.store(session.label, None)
                self.ok(message)
        elif message.method == "initialized" and session is not None:
            self._owing.store(session.label, None)
            self.fail(message, 'the notification is named "initialized"')

    def on_response(self, exchange: Exchange) -> None:
        if not self._owing or exchange.method != "POST" or exchange.messages or (exchange.status or 0) < 400:
            return
        if exchange.session is None:
            self._forgive()
        elif exchange.session.label in self._owing:
            self._owing[exchange.session.label] = None

    def on_session_end(self, session: Session) -> None:
        self._accuse(session.label)

    def on_gap(self) -> None:
        self._forgive()

    def is_decided_at_end(self, wait: Wait) -> bool:
        # `on_end` decides.
        return True

    def on_end(self) -> None:
        for label in list(self._owing):
            self._accuse(label)

    def _forgive(self) -> None:
        """A message that came unseen, or without a session, may have been the notification of any session so far."""
        for label in self._owing:
            self._owing[label] = None
        for session in self.life.sessions.values():
            if session.initialized is None:
                self._owing.store(session.label, None)

    def _look(self, session: Session, message: Message) -> None:
        if self._owing.get(session.label) is not None and not message.is_limited:
            self.unclear(message, "a request came, and notifications/initialized has not come yet", session.seq)

    def _accuse(self, label: str) -> None:
        owing = self._owing.get(label)
        if owing is None or owing[1].is_limited:
            return
        self._owing[label] = None
        session, message = owing
        remark = "a request came, and notifications/initialized did not"
        # A client that was killed behind its first request may have been about to send it.
        pipe, allowed = message.pipe, self.allowances
        held = 0 if pipe is None else (pipe.closed or self.now) - message.at
        if session.last_act - message.at >= allowed.arrival_s or session.why == "deleted" or held >= allowed.answer_s:
            self.fail(message, remark, session.seq)
        else:
            self.unclear(message, remark, session.seq)


@judges("lifecycle.initialized-before-requests")
class LifecycleInitializedBeforeRequests(Predicate):
    """Sends notifications/initialized before its first request.

    Two connections may change the places of two messages; on a pipe their order is certain.
    """

    def setup(self) -> None:
        self._early: Newest[str, Message | None] = Newest(_MOST_SESSIONS)

    def on_request(self, message: Message) -> None:
        session = message.session
        if session is None or message.method in _FREE or session.label in self._early or message.is_limited:
            return
        if session.initialized is None:
            self._early.store(session.label, message)
        else:
            self._early.store(session.label, None)
            self.ok(message, session.initialized.seq)

    def on_notification(self, message: Message) -> None:
        session = message.session
        if session is None or session.initialized is not message:
            return
        early = self._early.get(session.label)
        if early is None:
            return
        ahead = message.at - early.at
        if message.pipe is None and ahead <= self.allowances.arrival_s:
            self.ok(message, early.seq)
        elif not early.is_limited:
            self.warn(early, f"{early.method} came {ahead:.1f} s before notifications/initialized", message.seq)


@judges("lifecycle.waits-for-initialize")
class LifecycleWaitsForInitialize(Predicate):
    """Waits for the answer to initialize before its other requests.

    Without a session id a request over HTTP belongs to an initialize only where both have the label of one client.
    """

    any_revision = True

    def setup(self) -> None:
        self._pending: Newest[str | None, Message] = Newest(_MOST_SESSIONS)
        self._after: Newest[str, bool] = Newest(_MOST_SESSIONS)

    def on_request(self, message: Message) -> None:
        place = None if message.pipe is None else message.pipe.label
        if message.method == "initialize":
            self._pending.store(place, message)
        elif message.method == "ping" or message.era == "modern":
            return
        else:
            self._judge(message, place)

    def _judge(self, message: Message, place: str | None) -> None:
        session = message.session
        pending = self._pending.get(place) if session is None or message.pipe is not None else session.initialize
        if pending is not None and pending.answered is None and _waits(pending):
            if message.pipe is None and (not self.life.is_one_process or _names_session(message)):
                return
            self.fail(message, f"{message.method} came before the answer to initialize", pending.seq)
        elif session is not None and session.had is not None and session.label not in self._after:
            self._after.store(session.label, True)
            self.ok(message, session.seq)


def _waits(request: Message) -> bool:
    exchange = request.exchange
    return request.dropped is None and (exchange is None or exchange.left is None)


@judges("lifecycle.initialized-once")
class LifecycleInitializedOnce(Predicate):
    """Sends notifications/initialized once per session; a POST that a transport repeats at once does not count."""

    def on_notification(self, message: Message) -> None:
        if message.method != _INITIALIZED or message.session is None:
            return
        first = message.session.initialized
        if first is None or first is message:
            self.ok(message)
        elif message.at - first.at >= self.allowances.arrival_s and not _has_no_response(first):
            self.warn(message, "notifications/initialized came again", first.seq)


def _has_no_response(message: Message) -> bool:
    return message.exchange is not None and message.exchange.status is None
