"""From the entries of one log to the opportunities of each client.

An entry belongs to a client by its label; else by its pipe, its session, or its exchange. The first entries of an
exchange can come before its client is known: `initialize` has no session yet. They are held until an entry of the
exchange shows it; otherwise they belong to no client (`views.clients.Client`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry
from ...views.clients import Client
from ...views.fold import Views
from ...views.retention import ForgottenError, members
from ...views.values import Exchange, Message
from ...wire.errors import Code
from ..clients.dialogue import NEWS
from ..clients.given_up import CANCELLED
from ..clients.listings import CHANGES, Pages
from ..clients.moments import Control, Frame, ProcessChange, TaskNews, Unreadable, note_speech
from ..clients.questions import PageVisit, Question, Reply
from ..clients.rounds import Retry
from ..clients.series import Kind
from ..clients.subject import Subject
from ..clients.tasks import Told
from ..clients.tokens import is_in_flight
from ..retention import BOUNDS
from . import opportunities as each

# The first status that says no.
_REFUSED: Final = 400
_TOLD: Final = frozenset(each.TOLD.methods or ())
# Notifications of the server that a rule is about. Most others are progress reports.
_HEARD: Final = _TOLD | NEWS

Opportunity: TypeAlias = tuple[Subject, Kind[Any], Any, float]
"""Whose it is, of which kind, the view, and when it came."""

_OF_DIALOGUE: Final[Mapping[type, Kind[Any]]] = {
    Question: each.QUESTION,
    Reply: each.REPLY,
    Retry: each.RETRY,
    Told: each.TASK_TOLD,
}

_Taker: TypeAlias = Callable[[Subject, Entry, Any, Exchange | None], None]


class Finder:
    """Takes every entry of one log. `views` are its views; `subject_of` gives the subject of a client.

    `found` has the opportunities that were not taken yet, in the order of the log. A request counts as over `grace_s`
    before the delivery of its answer. `settings` are those of the server.
    """

    def __init__(
        self, views: Views, subject_of: Callable[[Client], Subject], grace_s: float, settings: Mapping[str, Any]
    ) -> None:
        self._grace_s = grace_s
        self._settings = settings
        self.views = views
        self.found: list[Opportunity] = []
        self._subject_of = subject_of
        self._held: Newest[int, list[Entry]] = Newest(BOUNDS.waiting)
        self._pages: Newest[str, tuple[Question, Subject]] = Newest(BOUNDS.waiting)
        # Most clients get the same lists.
        self._lists = Pages()
        self._takers: Mapping[type, _Taker] = {
            events.HttpRequest: self._requested,
            events.HttpResponse: self._responded,
            events.HttpClosed: self._left,
            events.MessageReceived: self._received,
            events.MessageUnreadable: self._unreadable,
            events.MessageRefused: self._refused,
            events.MessageEmitted: self._emitted,
            events.MessagesDelivered: self._delivered,
            events.ConnectionOpened: self._pipe_opened,
            events.ConnectionClosed: self._pipe_closed,
            events.SessionOpened: self._session_opened,
            events.SessionClosed: self._session_closed,
            events.ClientSeen: self._client_seen,
            events.TaskChanged: self._task_changed,
            events.StreamControl: self._control,
            events.WebSocketFrame: self._frame,
            events.StdioChanged: self._process,
            events.ClientProcess: self._process,
            events.LimitReached: self._limit_reached,
        }

    def take(self, entry: Entry) -> None:
        """One more entry, which the views have taken already."""
        exchange = self.views.exchange
        if self._held and exchange is not None and exchange.client is not None:
            subject = self._subject_of(exchange.client)
            for each_held in self._held.pop(exchange.number, ()):
                self._takers[type(each_held.fact)](subject, each_held, each_held.fact, exchange)
        fact = entry.fact
        taker = self._takers.get(type(fact))
        if taker is None:
            return
        # Nothing may say whose the request was that became a WebSocket: its connection has a client all the same.
        client = self.views.client_of(entry) if exchange is None or entry.context.pipe is not None else exchange.client
        if client is not None:
            taker(self._subject_of(client), entry, fact, exchange)
        elif exchange is not None:
            held = self._held.get(exchange.number)
            if held is None:
                held = []
                self._held.store(exchange.number, held)
            if len(held) < BOUNDS.parts:
                held.append(entry)

    def _note(self, subject: Subject, kind: Kind[Any], view: Any, entry: Entry, method: str | None = None) -> None:
        subject.note(kind, method, entry.mono, view)
        self.found.append((subject, kind, view, entry.mono))

    # -- exchanges and connections

    def _requested(self, subject: Subject, entry: Entry, fact: events.HttpRequest, exchange: Exchange | None) -> None:
        if exchange is None:
            return
        exchange.read_head()
        subject.count_exchange(exchange)
        session = exchange.session if exchange.session is not None and exchange.session.is_legacy else None
        subject.act(entry.mono, entry.seq, session)
        # Few are anything else than a POST, and those are looked for.
        self._note(subject, each.EXCHANGE, exchange, entry, None if fact.method == "POST" else fact.method)
        if "/interaction/" in fact.path:
            given = self._pages.get(fact.path.rpartition("/")[2])
            if given is not None:
                question, asked = given
                visit = PageVisit(question, exchange)
                asked.dialogue.visited(visit)
                self._note(asked, each.PAGE, visit, entry)

    def _responded(self, subject: Subject, entry: Entry, fact: events.HttpResponse, exchange: Exchange | None) -> None:
        if exchange is None or exchange.head is None:
            return
        subject.alike.refuse(exchange, entry.mono)
        is_refused = fact.status >= _REFUSED
        self._note(subject, each.RESPONSE, exchange, entry, str(fact.status) if is_refused else None)
        if is_refused:
            self._note(subject, each.DENIED, exchange, entry)
            if exchange.request.method == "POST" and not exchange.messages:
                self._note(subject, each.UNREAD, exchange, entry)

    def _left(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        if exchange is not None and exchange.head is not None:
            subject.given_up.leave(exchange, entry.mono, self._settings)
            self._note(subject, each.LEFT, exchange, entry)

    def _pipe_opened(
        self, subject: Subject, entry: Entry, fact: events.ConnectionOpened, exchange: Exchange | None
    ) -> None:
        pipe = self.views.connections.get(entry.context.pipe or "")
        if pipe is None:
            return
        subject.transports.add(pipe.transport)
        self._note(subject, each.PIPE, pipe, entry)

    def _pipe_closed(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        pipe = self.views.connections.get(entry.context.pipe or "")
        if pipe is not None and pipe.opened is not None:
            subject.busy.discard(pipe)
            subject.lines.close(pipe, entry.mono)
            subject.beginnings.end(pipe)
            self._note(subject, each.PIPE_END, pipe, entry)

    def _frame(self, subject: Subject, entry: Entry, fact: events.WebSocketFrame, exchange: Exchange | None) -> None:
        pipe = self.views.connections.get(entry.context.pipe or "")
        if pipe is not None:
            self._note(subject, each.FRAME, Frame(entry, pipe), entry, f"{fact.direction} {fact.opcode}")

    def _process(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        pipe = self.views.connections.get(entry.context.pipe or "")
        of = "server" if isinstance(fact, events.StdioChanged) else "client"
        if pipe is not None and fact.what == "no_final_newline":
            # It comes before the line that has no end.
            subject.lines.end(pipe, entry.mono, is_cut=True)
        self._note(subject, each.PROCESS, ProcessChange(entry, of, pipe), entry)  # type: ignore[arg-type]

    def _control(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        subject.remember(each.CONTROL)
        context = entry.context
        stream = None if context.stream is None else self.views.streams.get((context.session, context.stream))
        if stream is None and exchange is not None:
            stream = exchange.stream
        if stream is not None and exchange is not None and exchange.head is not None:
            self._note(subject, each.CONTROL, Control(entry, stream, exchange), entry)

    def _limit_reached(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        subject.limit(entry.mono)

    # -- sessions and tasks

    def _session_opened(
        self, subject: Subject, entry: Entry, fact: events.SessionOpened, exchange: Exchange | None
    ) -> None:
        session = self.views.sessions.get(entry.context.session or "")
        if session is None:
            return
        if session.opened is entry:
            subject.sessions += 1
            if session.initialize is not None:
                session.initialize.revision = session.revision
        subject.revisions.add(fact.revision)
        subject.named(fact.client_name, fact.client_version, members(from_json(fact.capabilities)), entry.mono)
        self._note(subject, each.SESSION, session, entry)

    def _session_closed(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        session = self.views.sessions.get(entry.context.session or "")
        if session is not None and session.is_legacy:
            self._note(subject, each.SESSION_END, session, entry)

    def _client_seen(self, subject: Subject, entry: Entry, fact: events.ClientSeen, exchange: Exchange | None) -> None:
        if fact.client_name:
            subject.named(fact.client_name, fact.client_version, members(from_json(fact.capabilities)), entry.mono)

    def _task_changed(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        task = self.views.tasks.get(entry.context.task or "")
        if task is not None:
            news = TaskNews(entry, task)
            subject.dialogue.changed(news)
            self._note(subject, each.TASK_NEWS, news, entry)

    # -- messages

    def _received(
        self, subject: Subject, entry: Entry, fact: events.MessageReceived, exchange: Exchange | None
    ) -> None:
        message = self.views.messages.get(entry.seq)
        if message is None or message.is_forgotten:
            # It was held for longer than its content was kept.
            subject.miss(entry.mono)
            return
        note_speech(message)
        subject.act(entry.mono, entry.seq, message.in_session, message.pipe)
        subject.says_name(message)
        subject.note_stranger(message)
        is_first = subject.count_message(message)
        subject.beginnings.add(message)
        if message.token is not None:
            subject.tokens.add(message, self._grace_s)
        if message.pipe is not None and message.transport == "stdio":
            subject.says_line(message, message.pipe, is_bad=fact.rpc == "invalid")
        # Before the message itself, so that what is found in an answer is known to the general rules.
        self._note_all(subject, entry, subject.dialogue.received(message))
        subject.note(each.MESSAGE, None, entry.mono, message)
        if fact.rpc == "request":
            subject.known.asked(message)
            subject.alike.ask(message)
            first = message.same_id
            if first is not None and is_in_flight(first, message.at, self._grace_s):
                subject.reused_ids.store(message.seq, first)
            self._note(subject, each.REQUEST, message, entry, fact.method)
            if is_first:
                self._note(subject, each.FIRST, message, entry)
        elif fact.rpc == "notification":
            subject.tokens.report(message)
            if fact.method == CANCELLED:
                subject.given_up.cancel(message, self._settings)
            self._note(subject, each.NOTIFICATION, message, entry, fact.method)
        elif fact.rpc in ("response", "error"):
            self._note(subject, each.ANSWER, message, entry)
        else:
            self.found.append((subject, each.MESSAGE, message, entry.mono))

    def _unreadable(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        pipe = self.views.connections.get(entry.context.pipe or "")
        over_http = exchange if pipe is None else None
        subject.act(entry.mono, entry.seq, None if over_http is None else over_http.session, pipe)
        unreadable = Unreadable(entry, over_http, pipe)
        if pipe is not None and pipe.transport == "stdio":
            subject.says_line(unreadable, pipe, is_bad=unreadable.fault in ("syntax", "encoding"))
        self._note(subject, each.UNREADABLE, unreadable, entry)

    def _refused(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        message = None if entry.cause is None else self.views.messages.get(entry.cause)
        if message is not None and message.received:
            self._note(subject, each.REFUSED, message, entry)

    def _emitted(self, subject: Subject, entry: Entry, fact: Any, exchange: Exchange | None) -> None:
        if fact.rpc == "notification" and fact.method not in _HEARD:
            return
        sent = self.views.messages.get(entry.seq)
        if sent is None:
            return
        if sent.session is not None and sent.session.is_legacy:
            sent.revision = sent.session.revision
        elif sent.request is not None:
            sent.revision = sent.request.revision
        if sent.rpc == "notification" and sent.method not in NEWS:
            return
        try:
            if sent.rpc == "request":
                subject.tokens.give(sent)
            questions = subject.dialogue.emitted(sent)
        except ForgottenError:
            subject.miss(entry.mono)
            return
        for question in questions:
            url = question.url
            # The first question is the one that is answered, where a later round names the page again.
            if url is not None and url.rpartition("/")[2] not in self._pages:
                self._pages.store(url.rpartition("/")[2], (question, subject))

    def _delivered(
        self, subject: Subject, entry: Entry, fact: events.MessagesDelivered, exchange: Exchange | None
    ) -> None:
        for sent in self.views.delivered_by(entry):
            request, rpc = sent.request, sent.rpc
            if rpc == "notification":
                if sent.method in _TOLD:
                    self._note(subject, each.TOLD, sent, entry, sent.method)
                else:
                    # Most are progress reports. No function is asked about them.
                    subject.note(each.TOLD, None, entry.mono, sent)
                if sent.method in CHANGES:
                    self._note(subject, each.CHANGED, sent, entry, sent.method)
            elif rpc == "request":
                self._note(subject, each.ASKED, sent, entry, sent.method)
            elif request is not None and request.answer is sent:
                self._answered(subject, request, sent)
                self._note(subject, each.ANSWERED, request, entry, request.method)
                if rpc == "error":
                    self._note(subject, each.FAILED, request, entry, request.method)
                if sent.size > each.LARGEST:
                    self._note(subject, each.LARGE, request, entry, request.method)
            if rpc != "notification" or sent.method in NEWS:
                self._note_all(subject, entry, subject.dialogue.delivered(sent))

    def _answered(self, subject: Subject, request: Message, sent: Message) -> None:
        if sent.had is not None:
            try:
                subject.known.answered(request, sent, sent.had, self._lists)
                if subject.known.errors.get(request.seq) == Code.MISSING_CLIENT_CAPABILITY:
                    subject.alike.lack(request, members(sent.error), sent.had)
                if subject.known.first_pages:
                    subject.remember(each.FURTHER)
            except ForgottenError:
                subject.miss(sent.had)

    def _note_all(self, subject: Subject, entry: Entry, found: Iterator[Question | Reply | Retry | Told]) -> None:
        """Note the views of a dialogue. A message that made room for others is missing, as in a gap."""
        try:
            for view in found:
                self._note(subject, _OF_DIALOGUE[type(view)], view, entry, view.method)
        except ForgottenError:
            subject.miss(entry.mono)
