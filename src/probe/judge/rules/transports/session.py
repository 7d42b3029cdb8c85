"""Rules `session.*`: sessions over HTTP."""

from __future__ import annotations

from collections import deque
from typing import Final

from ....log.bounded import Newest
from ...projection.views import Exchange, Message, ProcessChange, Session
from ..predicate import Predicate, Wait, judges
from .heads import NO_IDS, SESSION, speaks_modern

_MOST: Final = 200
_GONE: Final = 404


def _id(exchange: Exchange) -> str | None:
    """The name of the session of a request: its label, else the beginning of its id; None where there is none."""
    value = exchange.header(SESSION)
    if value in _NOTHING or not exchange.is_endpoint or exchange.is_hidden(SESSION):
        return None
    return exchange.named or value


_NOTHING: Final = NO_IDS | {None}


@judges("session.reinitialize-without-id")
class SessionReinitializeWithoutId(Predicate):
    """Sends no session id with initialize.

    The sentence is about the `initialize` that follows a 404. One before it that carries an id, of an earlier run
    perhaps, breaks no rule; it cannot begin a session.
    """

    methods = frozenset({"initialize"})
    _refused = False

    def on_response(self, exchange: Exchange) -> None:
        if exchange.status == _GONE and _id(exchange) is not None:
            self._refused = True

    def on_request(self, message: Message) -> None:
        exchange = message.exchange
        if exchange is None:
            return
        if SESSION not in exchange.headers:
            self.ok(message)
        elif exchange.header(SESSION) in NO_IDS:
            # No id either; another rule says that the header stands for nothing.
            return
        elif self._refused:
            self.fail(message, "initialize with a session id after a 404 (client or gateway)")
        else:
            self.warn(message, "initialize with a session id (client or gateway)")


@judges("session.dead-id-abandoned")
class SessionDeadIdAbandoned(Predicate):
    """Leaves a dead session id alone.

    Several workers of a client may each hold the old id for a moment, so the first seconds do not count; a DELETE does
    no harm.
    """

    one_process = True

    def setup(self) -> None:
        self._dead: Newest[str, float] = Newest(_MOST)
        self._began: tuple[float, Session] | None = None
        self._wait: Wait | None = None

    def on_response(self, exchange: Exchange) -> None:
        name = _id(exchange) if exchange.status == _GONE else None
        if name is not None and name not in self._dead:
            self._dead.store(name, exchange.responded or exchange.at)

    def on_answered(self, request: Message) -> None:
        session = request.session
        if request.method != "initialize" or session is None or request.exchange is None or not self._dead:
            return
        self._began = (request.answered or request.at, session)
        if self._wait is None or self._wait.over:
            self._wait = self.give_time(self.now + self.allowances.alive_s, self._look, session, of=session)

    def on_exchange(self, exchange: Exchange) -> None:
        if self._began is None or exchange.method == "DELETE":
            return
        name, (began, session) = _id(exchange), self._began
        died = None if name is None else self._dead.get(name)
        if died is None or died > began or exchange.at <= began + self.allowances.settle_s:
            return
        if self._wait is not None:
            self._wait.cancel()
        self.fail(exchange, f"{exchange.method} with the id of a session that was answered 404", session.seq)

    def _look(self, session: Session) -> None:
        if session.last_act > session.opened + self.allowances.settle_s:
            self.ok(session)


@judges("session.id-as-given")
class SessionIdAsGiven(Predicate):
    """Sends a session id the server gave.

    Ids of an earlier run are unknown and innocent; what a program writes that has no id is not.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        if SESSION not in exchange.headers or not exchange.is_endpoint or speaks_modern(exchange):
            return
        value = exchange.header(SESSION)
        if value in NO_IDS:
            self.fail(exchange, f"Mcp-Session-Id is {value or 'empty'}")
        elif exchange.named is not None:
            self.ok(exchange)

    def on_response(self, exchange: Exchange) -> None:
        # Known sessions were judged with the head.
        if exchange.status == _GONE and exchange.named is None and _id(exchange) is not None:
            self.ok(exchange)


@judges("session.deleted")
class SessionDeleted(Predicate):
    """Ends its session with DELETE.

    Only the runner of the client sees that it leaves by its own will: one that is killed, or crashes, decided nothing.
    Of a session that only falls silent the client may still be there; but one whose sessions are replaced by new ones
    again and again, and never named again, has left them.
    """

    def setup(self) -> None:
        self._killed = False
        self._left: ProcessChange | None = None
        self._silent: Newest[str, Session] = Newest(_MOST)
        self._tried: Newest[str, int] = Newest(_MOST)

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.named is None:
            return
        self._silent.pop(exchange.named, None)
        if exchange.method == "DELETE":
            self._tried.store(exchange.named, exchange.seq)

    def on_session(self, session: Session) -> None:
        if session.transport != "http" or len(self._silent) < self.allowances.survival_tries:
            return
        left = list(self._silent.values())
        self._silent.clear()
        remark = f"{len(left)} sessions were replaced without DELETE; {_what_to_send(*left)}"
        self.fail(session, remark, *(each.seq for each in left))

    def on_session_end(self, session: Session) -> None:
        if session.transport != "http":
            return
        if session.why == "deleted":
            self.ok(session, *self._evidence(session))
        elif session.why == "idle" and session.label not in self._tried:
            self._silent.store(session.label, session)
            self.unclear(session, "fell silent without DELETE; nothing says whether the client has gone")

    def on_process(self, change: ProcessChange) -> None:
        if change.of != "client":
            return
        if change.what in ("killed", "timed_out"):
            self._killed = True
        elif change.what == "started":
            self._killed = False
        elif change.what == "exited":
            for session in self._open():
                if self._killed:
                    told = "a signal was sent to the client's process, or to one that it had started, so that it ends"
                    self.unclear(session, told, change.seq)
                elif change.status != 0:
                    self.unclear(session, _crash(change), change.seq)
                elif not self.life.whole:
                    missing = "entries are missing: the DELETE may be one of them, or a signal to the client's process"
                    self.unclear(session, missing, change.seq)
                else:
                    due = change.at + self.allowances.end_after_s
                    self.let_cross(due, self._look, session, change, of=session, also=(change.seq,))

    def _open(self) -> list[Session]:
        sessions = self.life.sessions.values()
        return [each for each in sessions if each.transport == "http" and each.closed is None]

    def _look(self, session: Session, change: ProcessChange) -> None:
        if session.closed is None and session.label not in self._tried:
            self.fail(session, f"the client's process ended, and no DELETE came; {_what_to_send(session)}", change.seq)

    def _evidence(self, session: Session) -> tuple[int, ...]:
        seq = self._tried.get(session.label)
        return () if seq is None else (seq,)


def _what_to_send(*sessions: Session) -> str:
    """The request that each of these sessions lacks, such as `DELETE /mcp` with `Mcp-Session-Id`."""
    first = sessions[0].initialize
    path = "/mcp" if first is None or first.exchange is None else first.exchange.path
    labels = ", ".join(session.label for session in sessions)
    return f"right, before the client ends: `DELETE {path}` with the Mcp-Session-Id that the client got for {labels}"


def _crash(change: ProcessChange) -> str:
    how = "was ended by a signal" if change.status is None else f"ended with status {change.status}"
    return f"the client's process {how}; it may have crashed"


_UNDER_WAY_S: Final = 1.0
"""How long after the answer to DELETE a request may arrive that was sent before it."""


@judges("session.nothing-after-delete")
class SessionNothingAfterDelete(Predicate):
    """Does not use a session it has deleted.

    Requests may be under way; a second DELETE is harmless.
    """

    def setup(self) -> None:
        self._deleted: Newest[str, Exchange] = Newest(_MOST)

    def on_response(self, exchange: Exchange) -> None:
        if exchange.method != "DELETE" or exchange.status != 204 or exchange.named is None:
            return
        self._deleted.store(exchange.named, exchange)
        self.give_time(self.now + self.allowances.alive_s, self._look, exchange, of=exchange)

    def on_exchange(self, exchange: Exchange) -> None:
        if not self._deleted or exchange.named is None or exchange.method == "DELETE":
            return
        deleted = self._deleted.get(exchange.named)
        if deleted is not None and exchange.at >= (deleted.responded or deleted.at) + _UNDER_WAY_S:
            del self._deleted[exchange.named]
            self.fail(exchange, f"{exchange.method} with the id of a session that was deleted", deleted.seq)

    def on_end(self) -> None:
        for exchange in self._deleted.values():
            self.ok(exchange)
        self._deleted.clear()

    def _look(self, exchange: Exchange) -> None:
        if exchange.named is not None and self._deleted.get(exchange.named) is exchange:
            self.ok(exchange)


_WINDOW_S: Final = 600.0
"""The time in which sessions are counted."""

_MANY: Final = 5
"""The number of sessions in that time that can show that a client opens them for nothing."""


@judges("session.not-churned")
class SessionNotChurned(Predicate):
    """Opens sessions that it uses.

    Health checks have no label, and neither do several users behind one address.
    """

    one_process = True

    def setup(self) -> None:
        self._opened: deque[float] = deque(maxlen=_MOST)
        self._unused: Newest[str, Session] = Newest(_MOST)

    def on_session(self, session: Session) -> None:
        if session.transport == "http" and self.life.kind == "label":
            self._opened.append(session.opened)
            self._unused.store(session.label, session)
            self.give_time(session.opened + self.allowances.answer_s, self._look, session, of=session)

    def on_request(self, message: Message) -> None:
        if not self._unused or message.session is None or message.method == "initialize":
            return
        session = self._unused.pop(message.session.label, None)
        if session is not None and sum(opened > self.now - _WINDOW_S for opened in self._opened) >= _MANY:
            self.ok(session, message.seq)

    def is_decided_at_end(self, wait: Wait) -> bool:
        return len(self._unused) < _MANY

    def _look(self, session: Session) -> None:
        since = self.now - _WINDOW_S
        unused = [each for each in self._unused.values() if since < each.opened <= session.opened]
        if len(unused) >= _MANY:
            self._unused.clear()
            remark = f"{len(unused)} sessions within {_WINDOW_S / 60:g} minutes in which nothing was asked"
            self.fail(session, remark, *(each.seq for each in unused))
