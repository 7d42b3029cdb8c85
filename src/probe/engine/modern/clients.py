"""Labels of modern clients, from the address, the name and the version in each request, as there is no session.

A label is no identity. Nothing but the event log depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeAlias

from ...observe.context import Recorder
from ...observe.events import ClientSeen
from ...observe.records import MOST_CAPABILITIES, bounded
from ...wire.jsonrpc import clip
from ...wire.v2026.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

_Key: TypeAlias = tuple[str, str, str, str]

# As many as sessions by default. A client that was pushed out gets a new label when it comes again.
_MOST = 1000


class Clients:
    """The modern clients of one engine, the latest of them."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: OrderedDict[_Key, tuple[str, bytes]] = OrderedDict()
        self._count = 0

    def label(self, recorder: Recorder, address: str, message: Any, transport: str = "http") -> str:
        """The label of the client at an address that sent this JSON value, however malformed that is.

        `recorder` is that of the HTTP request, or of the connection.
        """
        meta = _members(_members(message).get("params")).get("_meta")
        about = _members(meta)
        info = _members(about.get(CLIENT_INFO))
        key = (transport, address, _text(info.get("name")), _text(info.get("version")))
        label, before = self._known.get(key) or (self._next(), None)
        declared = bounded(_members(about.get(CLIENT_CAPABILITIES)), MOST_CAPABILITIES)
        if declared != before:
            revision = _text(about.get(PROTOCOL_VERSION))
            recorder.bind(session=label).append(ClientSeen(address, revision, *key[2:], declared, transport))
        self._known[key] = label, declared
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return label

    def _next(self) -> str:
        self._count += 1
        return f"m{self._count}"


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return clip(value) if isinstance(value, str) else ""
