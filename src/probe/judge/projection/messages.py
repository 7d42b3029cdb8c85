"""The messages of both sides: of the client as they came, and of the server as they were made and delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic_core import from_json

from ...log import events
from ...log.event_log import Entry
from . import views
from .contents import Contents
from .known import MOST_OF_EXCHANGE, KnownViews, Takers, reads
from .life import Life
from .listings import CHANGES, PAGED, Pages
from .speakers import note_name, spoken, spoken_on
from .views import ForgottenError, Message, Sent


class MessageViews:
    """Takes the entries about messages. `known` are the views so far; `tell` is that of `Projector`."""

    def __init__(self, known: KnownViews, tell: Callable[..., None]) -> None:
        self._known = known
        self._tell = tell
        self._contents = Contents()
        # Most clients get the same lists.
        self._lists = Pages()

    @property
    def takers(self) -> Takers:
        """The method for each kind of fact about messages."""
        return {
            events.MessageReceived: self.received,
            events.MessageUnreadable: self.unreadable,
            events.MessageRefused: self.refused,
            events.MessageEmitted: self.emitted,
            events.MessagesDelivered: self.delivered,
        }

    def received(self, life: Life, entry: Entry, fact: events.MessageReceived) -> None:
        """A message came from the client."""
        message = self._message(life, entry, fact)
        self._remember(life, entry, message)
        # Before the message itself, so that what is found in an answer is known to the general rules.
        self._tell_all(life, life.dialogue.received(message))
        self._tell(life, "on_message", message)
        if fact.rpc == "request":
            life.count_request(fact.method)
            self._tell(life, "on_request", message)
            # A ping keeps a connection alive and says nothing of what the client does.
            if fact.method != "ping":
                life.last_request = message.at
                if message.session is not None:
                    message.session.last_request = message.at
            if message.id is not None:
                message.scope.requests.store(message.id, message)
        elif fact.rpc == "notification":
            session = message.session
            if fact.method == "notifications/initialized" and session is not None and session.initialized is None:
                session.initialized = message
            self._tell(life, "on_notification", message)
        elif fact.rpc in ("response", "error"):
            self._tell(life, "on_answer", message)

    def _remember(self, life: Life, entry: Entry, message: Message) -> None:
        exchange, pipe, question = message.exchange, message.pipe, message.question
        life.act(entry.mono, entry.seq, message.session, pipe)
        note_name(life, message)
        if message.era is not None:
            life.eras.add(message.era)
        if message.revision is not None:
            life.revisions.add(message.revision)
        if exchange is not None and len(exchange.messages) < MOST_OF_EXCHANGE:
            exchange.messages.append(message)
        if pipe is not None and pipe.first is None:
            pipe.first = message
        if question is not None and len(question.answers) < MOST_OF_EXCHANGE:
            question.answers.append(message)
        oldest = self._known.messages.store(entry.seq, message)
        if oldest is not None and oldest.id is not None and oldest.scope.requests.get(oldest.id) is oldest:
            # Sessions end, and all that was asked in them would be kept for as long as their client comes back.
            del oldest.scope.requests[oldest.id]
            oldest.scope.fell_out = True
        self._contents.keep(message, len(message.raw))

    def _message(self, life: Life, entry: Entry, fact: events.MessageReceived) -> Message:
        context = entry.context
        exchange, pipe, session = (
            self._known.exchange(context),
            self._known.pipe(context),
            self._known.session(context.session),
        )
        if session is None and pipe is not None:
            session = pipe.session
        value = from_json(fact.message)
        era, revision = spoken(fact, value, exchange, session)
        if pipe is not None:
            era, revision = spoken_on(pipe, fact, era, revision)
        if era == "modern":
            session = None
        around = session or pipe or life
        return Message(
            entry.seq,
            entry.mono,
            fact.rpc,
            fact.method,
            fact.id,
            value,
            fact.message,
            fact.batch,
            fact.hidden,
            "http" if pipe is None else pipe.transport,
            era,
            revision,
            around.scope,
            session,
            exchange,
            pipe,
            question=None if entry.cause is None else self._known.sent.get(entry.cause),
        )

    def unreadable(self, life: Life, entry: Entry, fact: events.MessageUnreadable) -> None:
        """Bytes came that are no message."""
        exchange, pipe = self._known.exchange(entry.context), self._known.pipe(entry.context)
        life.act(entry.mono, entry.seq, None if exchange is None else exchange.session, pipe)
        view = views.Unreadable(
            entry.seq, entry.mono, fact.fault, fact.problem, fact.head, fact.size, fact.declared, exchange, pipe
        )
        if exchange is not None:
            exchange.unreadable = view
        self._tell(life, "on_unreadable", view)

    def refused(self, life: Life, entry: Entry, fact: events.MessageRefused) -> None:
        """A message of the client was refused."""
        message = self._known.asked(entry)
        if message is not None:
            message.refusal, message.problem = fact.refusal, fact.problem
            self._tell(life, "on_refused", message)

    def emitted(self, life: Life, entry: Entry, fact: events.MessageEmitted) -> None:
        """A message was made for the client."""
        context = entry.context
        answers = fact.rpc in ("response", "error")
        asked = self._known.asked(entry) if answers else None
        if asked is None and context.call is not None:
            asked = self._known.calls.get(context.call)
        session, pipe = self._known.session(context.session), self._known.pipe(context)
        stream = self._known.stream(context)
        revision = session.revision if session is not None else None if asked is None else asked.revision
        sent = Sent(
            entry.seq,
            entry.mono,
            fact.rpc,
            fact.method,
            fact.id,
            fact.message,
            len(fact.message),
            fact.position,
            fact.hidden,
            asked,
            session,
            self._known.exchange(context),
            pipe,
            stream,
            context.task,
            revision,
        )
        if asked is not None and answers:
            asked.answer = sent
        if stream is not None and fact.position is not None:
            stream.sent.store(fact.position, sent)
        self._known.sent.store(entry.seq, sent)
        self._contents.keep(sent, sent.size)
        try:
            questions = life.dialogue.emitted(sent)
        except ForgottenError:
            self._tell(life, "on_forgotten")
            return
        for question in questions:
            url = question.params.get("url")
            # The first question is the one that is answered, where a later round names the page again.
            if question.is_url and isinstance(url, str) and url.rpartition("/")[2] not in self._known.pages:
                self._known.pages.store(url.rpartition("/")[2], (question, life))

    def delivered(self, life: Life, entry: Entry, fact: events.MessagesDelivered) -> None:
        """A socket took messages: from now on they count as had by the client."""
        context = entry.context
        stream = self._known.stream(context)
        exchange = self._known.exchange(context)
        if stream is not None:
            reads(stream, exchange)
            # A stream remembers no more than its newest messages, however wide the range is.
            if fact.last - fact.first < len(stream.sent):
                found = [stream.sent.get(position) for position in range(fact.first, fact.last + 1)]
            else:
                found = [sent for position, sent in stream.sent.items() if fact.first <= position <= fact.last]
        else:
            found = [None if entry.cause is None else self._known.sent.get(entry.cause)]
        for sent in found:
            if sent is not None and sent.delivered is None:
                sent.delivered, sent.delivered_seq = entry.mono, entry.seq
                self._had(life, sent)

    def _had(self, life: Life, sent: Sent) -> None:
        if sent.rpc in ("response", "error"):
            request = sent.request
            if request is not None and request.answer is sent:
                session = request.session
                if session is not None and session.initialize is request:
                    session.had = sent.delivered
                if request.method in PAGED and sent.rpc == "response":
                    self._listed(life, request, sent)
                self._tell(life, "on_answered", request)
        elif sent.rpc == "request":
            self._tell(life, "on_asked", sent)
        elif sent.rpc == "notification":
            if sent.method in CHANGES:
                life.change_list(sent)
            self._tell(life, "on_told", sent)
        self._tell_all(life, life.dialogue.delivered(sent))

    def _listed(self, life: Life, request: Message, sent: Sent) -> None:
        if request.method is None or sent.delivered is None:
            return
        try:
            digest, page = self._lists.read(request.method, sent.raw, lambda: sent.result)
        except ForgottenError:
            self._tell(life, "on_forgotten")
            return
        session = request.session
        label = None if session is None else session.label
        for lists in (life.lists, *(() if session is None else (session.lists,))):
            lists.deliver(digest, page, sent.delivered, request.revision, label)

    def _tell_all(self, life: Life, moments: Iterator[tuple[str, Any]]) -> None:
        """Tell the moments of a dialogue. A message that made room for others is missing, as in a gap."""
        try:
            for moment, about in moments:
                self._tell(life, moment, about)
        except ForgottenError:
            self._tell(life, "on_forgotten")
