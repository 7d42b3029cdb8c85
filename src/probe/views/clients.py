"""Clients, and where their ids count."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from ..log.event_log import Entry
from ..wire.jsonrpc import RequestId

if TYPE_CHECKING:
    from .values import Connection, Message, Session


class Scope(Struct, eq=False):
    """A scope of request ids and progress tokens: a legacy session, a pipe, or a modern client over HTTP.

    `requests` are the client's by the numbers of their entries, `ids` the newest of each typed id (`Message.same_id` is
    the one before it). `running` have no answer that was delivered; `answered` had one, in the order of the deliveries.
    `forgot` counts requests let go.
    """

    kind: Literal["session", "pipe", "client"] = "client"
    requests: dict[int, Message] = field(default_factory=dict)
    ids: dict[RequestId, Message] = field(default_factory=dict)
    running: dict[int, Message] = field(default_factory=dict)
    answered: dict[int, Message] = field(default_factory=dict)
    forgot: int = 0


class Client(Struct, eq=False):
    """Who acts: everything under one label; without a label a session, a pipe, or a modern client by its own label.

    `kind` says which. `nothing` holds what could not be attributed. A `label` may be given to two processes.
    """

    kind: Literal["label", "session", "pipe", "client", "nothing"]
    label: str
    began: Entry
    sessions: OrderedDict[str, Session] = field(default_factory=OrderedDict)
    connections: OrderedDict[str, Connection] = field(default_factory=OrderedDict)
    processes: OrderedDict[int, Process] = field(default_factory=OrderedDict)
    scope: Scope = field(default_factory=Scope)


class Process(Struct, eq=False):
    """A client's process that `mcp-probe judge` runs, or this one on standard streams: its changes, oldest first."""

    pid: int
    changes: list[Entry] = field(default_factory=list)

    @property
    def ended(self) -> Entry | None:
        """Its exit."""
        return next((each for each in self.changes if getattr(each.fact, "what", "") in ("exited", "exit")), None)
