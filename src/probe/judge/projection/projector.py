"""From the entries of a log to the views of each subject, and to the moments that predicates hear of.

An entry belongs to a subject by its client label; else by its pipe, its session, or the exchange that it is part of.
The first entries of an exchange can come before it is known whose it is: `initialize` has no session yet. They are held
until an entry of the exchange says so; where its response does not, they belong to nobody, and so to the subject
`unattributed`.

    http.request       held, unless it has a label or names a session
    message.received   held with it
    session.opened     says whose they are: both are taken now, and this entry after them

An entry that causes may name is remembered for as long as another entry can name it, the newest 20,000 at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic_core import from_json

from ...log import events
from ...log.event_log import Entry
from . import views
from .known import MOST_OF_EXCHANGE, UNATTRIBUTED, Held, KnownViews, Takers, reads
from .life import Life
from .speakers import count_agent, count_name
from .views import Exchange, Pipe, Scope, ServerStream, Session, Transport, members

# Entries of one exchange that wait for its subject.
_MOST_HELD: Final = 50


class Projector:
    """Fed with every entry in order. `known` are the views so far, `messages` takes the facts about messages.

    `tell` gets a subject, a moment and its arguments.
    """

    def __init__(self, known: KnownViews, tell: Callable[..., None], messages: Takers) -> None:
        self._known = known
        self._tell = tell
        self._takers: Takers = {
            **messages,
            events.HttpRequest: self._http_request,
            events.HttpResponse: self._http_response,
            events.HttpClosed: self._http_closed,
            events.ConnectionOpened: self._connection_opened,
            events.ConnectionClosed: self._connection_closed,
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
            self._attribute(held, self._known.life(UNATTRIBUTED))
        elif life is not None:
            if held is not None and held.life is None:
                self._attribute(held, life)
            taker(life, entry, entry.fact)

    def _attribute(self, held: Held, life: Life) -> None:
        """Take the entries that were held until it was known whose they are."""
        held.life, entries = life, held.entries
        held.entries = []
        for each in entries:
            self._takers[type(each.fact)](life, each, each.fact)

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
        count_agent(life, view)
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
            reads(stream, exchange)
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
            self._attribute(held, life)
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

    def _session_opened(self, life: Life, entry: Entry, fact: events.SessionOpened) -> None:
        label = entry.context.session
        if label is None:
            return
        asked = self._known.asked(entry)
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
        asked = self._known.asked(entry)
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
        asked = self._known.asked(entry)
        session = self._known.session(context.session)
        stream = ServerStream(context.stream, fact.purpose, entry.seq, entry.mono, session, asked)
        if asked is not None:
            asked.stream = stream
        reads(stream, self._known.exchange(context))
        self._known.streams.store((context.session, context.stream), stream)

    def _stream_ended(self, life: Life, entry: Entry, fact: events.StreamEnded) -> None:
        stream = self._known.stream(entry.context)
        if stream is not None:
            stream.ended = entry.mono

    def _stream_control(self, life: Life, entry: Entry, fact: events.StreamControl) -> None:
        exchange, stream = self._known.exchange(entry.context), self._known.stream(entry.context)
        if stream is None and exchange is not None:
            stream = exchange.stream
        if stream is None or exchange is None:
            return
        reads(stream, exchange)
        control = views.Control(entry.seq, entry.mono, fact.what, fact.event_id, fact.retry_ms)
        if len(stream.controls) < MOST_OF_EXCHANGE:
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
