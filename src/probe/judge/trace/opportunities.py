"""The kinds of opportunity of a rule: `@rule("ping.answered", each=ASKED)`.

Each names the entry that makes the opportunity, and the view that the rule gets. Functions about a kind that is
`about_messages` are asked at the revisions and transports of their rule only.
"""

from __future__ import annotations

from typing import Final

from ...views.clients import Connection, Session
from ...views.values import Exchange, Message
from ..clients.listings import CHANGES
from ..clients.moments import ClientEnd, Control, Frame, ProcessChange, TaskNews, Unreadable
from ..clients.questions import PageVisit, Question, Reply
from ..clients.rounds import Retry
from ..clients.series import Kind
from ..clients.tasks import Told

EXCHANGE: Final = Kind[Exchange]("exchange", about_exchanges=True)
"""The head of an HTTP request arrived."""
RESPONSE: Final = Kind[Exchange]("response", about_exchanges=True, found="by method")
"""The head of the HTTP response was handed to the socket."""
DENIED: Final = Kind[Exchange]("denied", about_exchanges=True, found="never", remembered=True)
"""The response has a status from 400 on; comes after `RESPONSE`."""
UNREAD: Final = Kind[Exchange]("unread")
"""A POST was refused before anything of its body was read; comes after `DENIED`."""
LEFT: Final = Kind[Exchange]("left")
"""An event stream, or an exchange without a response, is over (`exchange.closed`)."""
UNREADABLE: Final = Kind[Unreadable]("unreadable")
"""Bytes came that were not read as JSON."""
MESSAGE: Final = Kind[Message]("message", about_messages=True, in_scope="all")
"""The client sent a JSON value: a message, or something that is none (`rpc` is `invalid`)."""
REQUEST: Final = Kind[Message]("request", about_messages=True, in_scope="all", within=MESSAGE)
"""The client sent a request."""
FIRST: Final = Kind[Message]("first", about_messages=True, found="never")
"""The client sent the first request of a session, beside initialize and pings; comes after `REQUEST`."""
NOTIFICATION: Final = Kind[Message]("notification", about_messages=True, in_scope="all", within=MESSAGE)
"""The client sent a notification."""
ANSWER: Final = Kind[Message]("answer", about_messages=True, found="never", within=MESSAGE)
"""The client sent a response or an error; `message.question` is what it answers, where that is known."""
REFUSED: Final = Kind[Message]("refused", about_messages=True, found="never")
"""A message of the client was refused before any method handled it."""
ANSWERED: Final = Kind[Message]("answered", about_messages=True, in_scope="by method")
"""The socket took the answer to a request, which is the view; `request.answer` is the answer."""
FAILED: Final = Kind[Message]("failed", about_messages=True, found="never")
"""The answer is an error; comes after `ANSWERED`."""
LARGEST: Final = 1_000_000
LARGE: Final = Kind[Message]("large", about_messages=True, found="never", remembered=True)
"""The answer has more than a million bytes; comes after `ANSWERED`."""
ASKED: Final = Kind[Message]("asked", about_messages=True)
"""The socket took a request of the server."""
_NAMED: Final = frozenset(
    {
        *CHANGES,
        "notifications/cancelled",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
    }
)
TOLD: Final = Kind[Message]("told", about_messages=True, in_scope="by method", methods=_NAMED, remembered=True)
"""The socket took a notification of the server. No function is asked about one without such a method."""
FURTHER: Final = Kind[Message]("further", found="never", remembered=True)
"""The answer is a list that has a further page. No function is asked about it, but some `after` it."""
CHANGED: Final = Kind[Message]("changed", about_messages=True, found="never", remembered=True)
"""The notification says that a list has changed; comes after `TOLD`."""
QUESTION: Final = Kind[Question]("question", about_messages=True)
"""The client has a question of the server, in a request of its own, in a result or in a task."""
REPLY: Final = Kind[Reply]("reply", about_messages=True)
"""The client answered a question, one of several perhaps; comes before the message that brought it."""
RETRY: Final = Kind[Retry]("retry", about_messages=True, found="never")
"""The client sent a request with `inputResponses` or `requestState`; comes before the request itself."""
TASK_TOLD: Final = Kind[Told]("task told", about_messages=True)
"""The socket took a message that says how a task stands."""
TASK_NEWS: Final = Kind[TaskNews]("task news", found="never")
"""A task has a new status at the server; the client need not know it yet."""
PAGE: Final = Kind[PageVisit]("page")
"""Somebody asked for the page of an elicitation in URL mode."""
CONTROL: Final = Kind[Control]("control", found="never", remembered=True)
"""The socket took something of an event stream that is no message."""
SESSION: Final = Kind[Session]("session")
"""A legacy session was opened."""
SESSION_END: Final = Kind[Session]("session end", found="never", remembered=True)
"""A legacy session is over."""
PIPE: Final = Kind[Connection]("pipe")
"""A WebSocket or a pair of standard streams is open."""
PIPE_END: Final = Kind[Connection]("pipe end")
"""A WebSocket or a pair of standard streams is closed."""
FRAME: Final = Kind[Frame]("frame")
"""A control frame of a WebSocket, or a frame that was refused."""
PROCESS: Final = Kind[ProcessChange]("process")
"""Something happened to the server on standard streams, or to the client's process."""
END: Final = Kind[ClientEnd]("end", found="never")
"""The log is over and whole to its end, and the client has ended; once for each client."""

OF_MESSAGES: Final = (MESSAGE, REQUEST, NOTIFICATION, ANSWER)
"""What a message of the client is: one of the last three, or none of them."""
