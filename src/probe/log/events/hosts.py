"""Tool hosts and their connections."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ...wire.jsonrpc import RequestId, Rpc


class HostConnected(Struct, frozen=True):
    """A tool host is connected with the right secret, and has not registered yet. Cause: the `http.request`.

    `client` and `peer` are those of the request.
    """

    kind: ClassVar[str] = "host.connected"
    client: str
    peer: str | None = None


class HostRegistered(Struct, frozen=True):
    """A tool host has registered with a name and tools.

    `replaced` is its older connection, now replaced by this one.
    """

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

    `direction` is `received` or `sent` (passed to the connection's writer). Cause of an answer: the message it answers;
    of another message about a call, its `call.started`; else the `host.connected`.
    """

    kind: ClassVar[str] = "host.message"
    direction: str
    rpc: Rpc
    method: str | None
    id: RequestId | None
    message: bytes


class HostMisuse(Struct, frozen=True):
    """A tool host broke the rules of docs/tool-hosts.md, as `detail` describes.

    Only the first per connection are recorded.
    """

    kind: ClassVar[str] = "host.misuse"
    what: str
    detail: str


class HostClosed(Struct, frozen=True):
    """A tool host's connection is over. `by` is `client` if the host closed first, else why the server ended it.

    `host` is None if it never registered. `failed` calls failed with it; `late` messages were dropped in all.
    """

    kind: ClassVar[str] = "host.closed"
    host: str | None
    code: int | None
    by: str
    failed: int
    late: int
