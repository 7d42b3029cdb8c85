"""From the entries of a log to the views of each subject, and to the moments that predicates hear of.

An entry belongs to a subject by its client label; else by its pipe, its session, or the exchange that it is part of.
The first entries of an exchange can come before it is known whose it is: `initialize` has no session yet. They are held
until an entry of the exchange says so; where its response does not, they belong to nobody, and so to the subject
`unattributed`.

    http.request       held, unless it has a label or names a session
    message.received   held with it
    session.opened     says whose they are: both are taken now, and this entry after them

Whatever a cause names is remembered for as long as another entry can name it, and no longer than the newest 20,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json

from ..observe import events
from ..observe.log import Entry
from . import views
from .contents import Contents
from .known import UNATTRIBUTED, Held, Key, KnownViews
from .life import Life
from .listings import CHANGES, LISTS, Pages
from .speakers import count_name, note_name, spoken, spoken_on
from .views import Exchange, ForgottenError, Message, Pipe, Scope, Sent, ServerStream, Session, Transport, members

# Entries of one exchange that wait for its subject.
_MOST_HELD: Final = 50
# Messages of one exchange, and exchanges that read one stream.
_MOST_OF_EXCHANGE: Final = 200


class Projector:
    """Fed with every entry in order. `tell` gets a subject, a moment and its arguments; `life` is for `KnownViews`."""

    def __init__(self, life: Callable[[Key], Life], tell: Callable[..., None]) -> None:
        self._known = KnownViews(life)
        self._tell = tell
        self._contents = Contents()
        # Most clients get the same lists.
        self._lists = Pages()
        self._takers: Mapping[type, Callable[[Life, Entry, Any], None]] = {
            events.HttpRequest: self._http_request,
            events.HttpResponse: self._http_response,
            events.HttpClosed: self._http_closed,
            events.ConnectionOpened: self._connection_opened,
            events.ConnectionClosed: self._connection_closed,
            events.MessageReceived: self._message_received,
            events.MessageUnreadable: self._message_unreadable,
            events.MessageRefused: self._message_refused,
            events.MessageEmitted: self._message_emitted,
            events.MessagesDelivered: self._messages_delivered,
            events.SessionOpened: self._session_opened,
            events.SessionClosed: self._session_closed,
            events.ClientSeen: self._client_seen,
            events.CallStarted: self._call_started,
            events.TaskChanged: self._task_changed,
            events.StreamOpened: self._stream_opened,
            events.StreamEnded: self._stream_ended,
            events.StreamControl: self._stream_control,
            events.WebSocketFrame: self._frame,
            events.StdioChanged: self._stdio_changed,
            events.ClientProcess: self._client_process,
            events.LimitReached: self._limit_reached,
        }

    def take(self, entry: Entry) -> None:
        """One more entry."""
        taker = self._takers.get(type(entry.fact))
        if taker is None:
            return
        number = entry.context.exchange
        held = None if number is None or entry.context.pipe is not None else self._known.exchanges.get(number)
        if held is None and number is not None and type(entry.fact) is events.HttpRequest:
            held = Held(None)
            self._known.exchanges.store(number, held)
        life = self._known.life_of(entry, held)
        if life is None and held is not None:
            if len(held.entries) < _MOST_HELD:
                held.entries.append(entry)
            if type(entry.fact) not in (events.HttpResponse, events.HttpClosed):
                return
            life, entries = self._known.life(UNATTRIBUTED), held.entries
            held.life, held.entries = life, []
            for each in entries:
                self._takers[type(each.fact)](life, each, each.fact)
        elif life is not None:
            if held is not None and held.life is None:
                held.life, entries = life, held.entries
                held.entries = []
                for each in entries:
                    self._takers[type(each.fact)](life, each, each.fact)
            taker(life, entry, entry.fact)

    def _http_request(self, life: Life, entry: Entry, fact: events.HttpRequest) -> None:
        number = entry.context.exchange
        if number is None:
            return
        headers: dict[str, tuple[str, ...]] = {}
        for name, value in fact.headers:
            headers[name] = (*headers.get(name, ()), value)
        view = Exchange(
            number,
            entry.seq,
            entry.mono,
            entry.context.connection,
            fact.method,
            fact.path,
            fact.query,
            headers,
            frozenset(fact.hidden),
            fact.client,
            fact.peer,
            fact.named,
            fact.session_in_query,
            self._known.session(fact.named),
        )
        self._known.exchanges[number].view = view
        life.exchanges += 1
        life.transports.add("http")
        life.act(entry.mono, entry.seq, view.session, None)
        self._tell(life, "on_exchange", view)
        if "/interaction/" in view.path:
            self._page_requested(view)

    def _page_requested(self, exchange: Exchange) -> None:
        """Somebody asks for a page of this server: a browser, or the client that was given its address."""
        given = self._known.pages.get(exchange.path.rpartition("/")[2])
        if given is not None:
            question, life = given
            self._tell(life, "on_page", question, exchange)

    def _http_response(self, life: Life, entry: Entry, fact: events.HttpResponse) -> None:
        exchange = self._known.exchange(entry.context)
        if exchange is None:
            return
        exchange.status, exchange.response_seq, exchange.responded = fact.status, entry.seq, entry.mono
        exchange.content_type, exchange.refusal, exchange.problem = fact.content_type, fact.refusal, fact.problem
        exchange.told = dict(fact.headers)
        stream = self._known.stream(entry.context)
        if stream is not None:
            self._reads(stream, exchange)
        self._tell(life, "on_response", exchange)

    def _http_closed(self, life: Life, entry: Entry, fact: events.HttpClosed) -> None:
        exchange = self._known.exchange(entry.context)
        if exchange is None:
            return
        exchange.left, exchange.by = entry.mono, fact.by
        for message in exchange.messages:
            if fact.by == "client" and message.rpc == "request" and message.answered is None:
                message.dropped = entry.mono
        self._tell(life, "on_left", exchange)

    def _connection_opened(self, life: Life, entry: Entry, fact: events.ConnectionOpened) -> None:
        label = entry.context.pipe
        if label is None:
            return
        transport: Transport = "websocket" if fact.transport == "websocket" else "stdio"
        pipe = Pipe(label, transport, entry.seq, entry.mono, Scope("pipe", certain=True))
        open_pipes = [each for each in life.pipes.values() if each.closed is None and each.transport == "stdio"]
        if transport == "stdio" and open_pipes:
            life.several = "two processes on standard streams at the same time have this name"
        life.pipes.store(label, pipe)
        life.transports.add(transport)
        self._known.pipes.store(label, (pipe, life))
        # The HTTP request that became a WebSocket waits for its subject.
        held = None if entry.context.exchange is None else self._known.exchanges.get(entry.context.exchange)
        if held is not None and held.life is None:
            held.life, entries = life, held.entries
            held.entries = []
            for each in entries:
                self._takers[type(each.fact)](life, each, each.fact)
        self._tell(life, "on_pipe", pipe)

    def _connection_closed(self, life: Life, entry: Entry, fact: events.ConnectionClosed) -> None:
        pipe = self._known.pipe(entry.context)
        if pipe is None:
            return
        pipe.closed, pipe.by, pipe.code = entry.mono, fact.by, fact.code
        if fact.by == "client":
            for message in pipe.scope.requests.values():
                if message.answered is None:
                    message.dropped = entry.mono
        self._tell(life, "on_pipe_end", pipe)

    def _message_received(self, life: Life, entry: Entry, fact: events.MessageReceived) -> None:
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
        if exchange is not None and len(exchange.messages) < _MOST_OF_EXCHANGE:
            exchange.messages.append(message)
        if pipe is not None and pipe.first is None:
            pipe.first = message
        if question is not None and len(question.answers) < _MOST_OF_EXCHANGE:
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

    def _message_unreadable(self, life: Life, entry: Entry, fact: events.MessageUnreadable) -> None:
        exchange, pipe = self._known.exchange(entry.context), self._known.pipe(entry.context)
        life.act(entry.mono, entry.seq, None if exchange is None else exchange.session, pipe)
        view = views.Unreadable(
            entry.seq, entry.mono, fact.fault, fact.problem, fact.head, fact.size, fact.declared, exchange, pipe
        )
        if exchange is not None:
            exchange.unreadable = view
        self._tell(life, "on_unreadable", view)

    def _message_refused(self, life: Life, entry: Entry, fact: events.MessageRefused) -> None:
        message = None if entry.cause is None else self._known.messages.get(entry.cause)
        if message is not None:
            message.refusal, message.problem = fact.refusal, fact.problem
            self._tell(life, "on_refused", message)

    def _message_emitted(self, life: Life, entry: Entry, fact: events.MessageEmitted) -> None:
        context = entry.context
        answers = fact.rpc in ("response", "error")
        asked = self._known.messages.get(entry.cause) if answers and entry.cause is not None else None
        if asked is None and context.call is not None:
            asked = self._known.calls.get(context.call)
        session, pipe = self._known.session(context.session), self._known.pipe(context)
        stream = None if context.stream is None else self._known.streams.get((context.session, context.stream))
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

    def _messages_delivered(self, life: Life, entry: Entry, fact: events.MessagesDelivered) -> None:
        context = entry.context
        stream = None if context.stream is None else self._known.streams.get((context.session, context.stream))
        exchange = self._known.exchange(context)
        if stream is not None:
            self._reads(stream, exchange)
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
                self._delivered(life, sent)

    def _delivered(self, life: Life, sent: Sent) -> None:
        if sent.rpc in ("response", "error"):
            request = sent.request
            if request is not None and request.answer is sent:
                session = request.session
                if session is not None and session.initialize is request:
                    session.had = sent.delivered
                if request.method in LISTS and sent.rpc == "response":
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
        """Tell the moments of a dialogue. What it has to read may have made room: then it is missing as in a gap."""
        try:
            for moment, about in moments:
                self._tell(life, moment, about)
        except ForgottenError:
            self._tell(life, "on_forgotten")

    @staticmethod
    def _reads(stream: ServerStream, exchange: Exchange | None) -> None:
        if exchange is None:
            return
        if exchange.stream is None:
            exchange.stream = stream
        if exchange not in stream.readers[-1:] and len(stream.readers) < _MOST_OF_EXCHANGE:
            stream.readers.append(exchange)

    def _session_opened(self, life: Life, entry: Entry, fact: events.SessionOpened) -> None:
        label = entry.context.session
        if label is None:
            return
        asked = None if entry.cause is None else self._known.messages.get(entry.cause)
        pipe = self._known.pipe(entry.context)
        capabilities = members(from_json(fact.capabilities))
        session = Session(
            label,
            entry.seq,
            entry.mono,
            pipe.transport if pipe is not None else "http",
            fact.revision,
            fact.client_name,
            fact.client_version,
            capabilities,
            Scope("session", certain=True),
            asked,
            last_act=entry.mono,
        )
        if asked is not None:
            asked.session, asked.scope, asked.revision = session, session.scope, session.revision
            if asked.id is not None:
                session.scope.requests.store(asked.id, asked)
        if pipe is not None:
            pipe.session = session
        life.sessions.store(label, session)
        life.revisions.add(fact.revision)
        self._known.sessions.store(label, (session, life))
        count_name(life, fact.client_name, fact.client_version, capabilities)
        self._tell(life, "on_session", session)

    def _session_closed(self, life: Life, entry: Entry, fact: events.SessionClosed) -> None:
        session = self._known.session(entry.context.session)
        if session is not None:
            session.closed, session.why = entry.mono, fact.why
            self._tell(life, "on_session_end", session)

    def _client_seen(self, life: Life, entry: Entry, fact: events.ClientSeen) -> None:
        if fact.client_name:
            count_name(life, fact.client_name, fact.client_version, members(from_json(fact.capabilities)))

    def _call_started(self, life: Life, entry: Entry, fact: events.CallStarted) -> None:
        asked = None if entry.cause is None else self._known.messages.get(entry.cause)
        if asked is not None and entry.context.call is not None:
            self._known.calls.store(entry.context.call, asked)

    def _task_changed(self, life: Life, entry: Entry, fact: events.TaskChanged) -> None:
        if entry.context.task is not None:
            news = views.TaskNews(entry.seq, entry.mono, entry.context.task, fact.tool, fact.status)
            life.dialogue.changed(news)
            self._tell(life, "on_task", news)

    def _stream_opened(self, life: Life, entry: Entry, fact: events.StreamOpened) -> None:
        context = entry.context
        if context.stream is None:
            return
        asked = None if entry.cause is None else self._known.messages.get(entry.cause)
        session = self._known.session(context.session)
        stream = ServerStream(context.stream, fact.purpose, entry.seq, entry.mono, session, asked)
        if asked is not None:
            asked.stream = stream
        self._reads(stream, self._known.exchange(context))
        self._known.streams.store((context.session, context.stream), stream)

    def _stream_ended(self, life: Life, entry: Entry, fact: events.StreamEnded) -> None:
        context = entry.context
        stream = None if context.stream is None else self._known.streams.get((context.session, context.stream))
        if stream is not None:
            stream.ended = entry.mono

    def _stream_control(self, life: Life, entry: Entry, fact: events.StreamControl) -> None:
        context, exchange = entry.context, self._known.exchange(entry.context)
        stream = None if context.stream is None else self._known.streams.get((context.session, context.stream))
        if stream is None and exchange is not None:
            stream = exchange.stream
        if stream is None or exchange is None:
            return
        self._reads(stream, exchange)
        control = views.Control(entry.seq, entry.mono, fact.what, fact.event_id, fact.retry_ms)
        if len(stream.controls) < _MOST_OF_EXCHANGE:
            stream.controls.append(control)
        self._tell(life, "on_control", stream, exchange, control)

    def _frame(self, life: Life, entry: Entry, fact: events.WebSocketFrame) -> None:
        pipe = self._known.pipe(entry.context)
        if pipe is not None:
            frame = views.Frame(entry.seq, entry.mono, fact.direction, fact.opcode, fact.size, fact.refused, pipe)
            self._tell(life, "on_frame", frame)

    def _stdio_changed(self, life: Life, entry: Entry, fact: events.StdioChanged) -> None:
        pipe = self._known.pipe(entry.context)
        if pipe is not None and fact.what == "end_of_input":
            pipe.ended_input = entry.mono
        change = views.ProcessChange(entry.seq, entry.mono, "server", fact.what, fact.pid, fact.status, pipe)
        self._tell(life, "on_process", change)

    def _client_process(self, life: Life, entry: Entry, fact: events.ClientProcess) -> None:
        change = views.ProcessChange(entry.seq, entry.mono, "client", fact.what, fact.pid, fact.status, None)
        self._tell(life, "on_process", change)

    def _limit_reached(self, life: Life, entry: Entry, fact: events.LimitReached) -> None:
        self._tell(life, "on_limit", entry.seq)
