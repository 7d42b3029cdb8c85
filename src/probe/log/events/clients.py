"""Legacy sessions, modern clients, and what a client does wrong."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class SessionOpened(Struct, frozen=True):
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


class SessionClosed(Struct, frozen=True):
    """The session ended, and its requests and tasks were cancelled. Cause: the `http.request` of a DELETE, else none.

    `why` is `deleted`, `idle`, `shutdown`, or that its connection was lost.
    """

    kind: ClassVar[str] = "session.closed"
    why: str


class ClientSeen(Struct, frozen=True):
    """A modern client sent its first request, or declares capabilities that it has not declared before.

    Programs that share a label may declare different ones in turn: of a label the latest eight sets are remembered.
    Cause: the `http.request` or the `connection.opened`. `transport` is what carried that request: `http`,
    `websocket` or `stdio`.
    """

    kind: ClassVar[str] = "client.seen"
    client: str
    revision: str
    client_name: str
    client_version: str
    capabilities: bytes
    transport: str = "http"


class ClientMisuse(Struct, frozen=True):
    """The client did something that a revision forbids, or that cannot have an effect; `clause` names the rule.

    Cause: the `message.received` or the `http.request` that did it.
    """

    kind: ClassVar[str] = "client.misuse"
    what: str
    clause: str
    detail: str


def is_session(label: str | None) -> bool:
    """Whether a label is that of a session, where ids are of one client, and not of whoever says to be the same one."""
    return label is not None and label.startswith("s")
