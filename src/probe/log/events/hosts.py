"""Tool hosts and their connections."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ...wire.jsonrpc import RequestId, Rpc


class HostConnected(Struct, frozen=True):
    """A tool host gave the secret and is connected; it has not registered yet. Cause: the `http.request`.

    `client` and `peer` are those of the request.
    """

    kind: ClassVar[str] = "host.connected"
    client: str
    peer: str | None = None


class HostRegistered(Struct, frozen=True):
    """A tool host has a name and offers tools. `replaced` is its older connection, which it takes over from."""

    kind: ClassVar[str] = "host.registered"
    host: str
    version: str | None
    library: str | None
    tools: tuple[str, ...]
    replaced: str | None


class HostUpdated(Struct, frozen=True):
    """A tool host offers these tools from now on."""

    kind: ClassVar[str] = "host.updated"
    host: str
    tools: tuple[str, ...]


class HostMessage(Struct, frozen=True):
    """One message between this server and a tool host; `tool.progress` is counted instead, and `ping` left out.

    `direction` is `received` or `sent` (handed to the connection's writer). Cause of an answer: the message that it
    answers; of another message about a call, its `call.started`; else the `host.connected`.
    """

    kind: ClassVar[str] = "host.message"
    direction: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


class HostMisuse(Struct, frozen=True):
    """A tool host broke the rules of docs/tool-hosts.md; `detail` says how. Noted up to a number per connection."""

    kind: ClassVar[str] = "host.misuse"
    what: str
    detail: str


class HostClosed(Struct, frozen=True):
    """A tool host's connection is over. `by` is `client` when the host went first, else why the server ended it.

    `host` is None where it never registered. `failed` is how many calls failed with it, `late` what was dropped in all.
    """

    kind: ClassVar[str] = "host.closed"
    host: str | None
    code: int | None
    by: str
    failed: int
    late: int
