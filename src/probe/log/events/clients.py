"""Legacy sessions, modern clients, and the mistakes of clients."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class SessionOpened(Struct, frozen=True, gc=False):
    """`initialize` was answered. Cause: its `message.received`. `session_id` is the beginning of the id of the session.

    `transport` is `http`, `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "session.opened"
    session_id: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


class SessionClosed(Struct, frozen=True, gc=False):
    """The session ended, and its requests and tasks were cancelled. Cause: the `http.request` of a DELETE, else none.

    `why` is `deleted`, `idle`, `shutdown`, or the loss of its connection.
    """

    kind: ClassVar[str] = "session.closed"
    why: str


class ClientSeen(Struct, frozen=True, gc=False):
    """A modern client sent its first request, or declares other capabilities than before.

    Programs that share a label may declare different ones in turn, so the latest eight sets of a label count as
    declared. Cause: the `http.request` or the `connection.opened`. `transport` carried that request: `http`,
    `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "client.seen"
    client: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


class ClientMisuse(Struct, frozen=True, gc=False):
    """The client did something forbidden by a revision, or without any effect. `clause` names the rule.

    Cause: the `message.received` or the `http.request` with the mistake.
    """

    kind: ClassVar[str] = "client.misuse"
    what: str
    clause: str
    detail: str


def is_session(label: str | None) -> bool:
    """True for the label of a session, such as `s7`. Only there do all request ids come from one client."""
    return label is not None and label.startswith("s")
