"""Labels of modern clients: the address, name and version in each request make the label. It is not an identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

from ...log.bounded import Newest
from ...log.context import Recorder
from ...log.events import ClientSeen
from ...log.redaction import MOST_CAPABILITIES, bounded
from ...wire.jsonrpc import clip
from ...wire.v2026.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

_Key: TypeAlias = tuple[str, str, str, str]

# As many as sessions by default. A client that was dropped gets a new label with its next request.
_MOST = 1000
# Programs with the same label may alternate between this many sets of capabilities before one is recorded twice.
_MOST_DECLARED = 8


@dataclass(slots=True)
class _LabelledClient:
    label: str
    declared: bytes | None = None
    earlier: Newest[bytes, None] = field(default_factory=lambda: Newest(_MOST_DECLARED))

    def declares(self, capabilities: bytes) -> bool:
        if capabilities == self.declared:
            return False
        self.declared, digest = capabilities, blake2b(capabilities, digest_size=8).digest()
        known = digest in self.earlier
        self.earlier.store(digest, None)
        return not known


class ClientLabels:
    """The modern clients of one engine: the latest `most` of them."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: Newest[_Key, _LabelledClient] = Newest(most)
        self._count = 0

    def label(self, recorder: Recorder, address: str, message: Any, transport: str = "http") -> str:
        """The label of the client at an address, from a message of any JSON value, also a malformed one.

        `recorder` is that of the HTTP request, or of the connection.
        """
        meta = _members(_members(message).get("params")).get("_meta")
        about = _members(meta)
        info = _members(about.get(CLIENT_INFO))
        key = (transport, address, _text(info.get("name")), _text(info.get("version")))
        client = self._known.get(key)
        if client is None:
            client = _LabelledClient(self.next_label())
            self._known.store(key, client)
        else:
            self._known.move_to_end(key)
        declared = bounded(_members(about.get(CLIENT_CAPABILITIES)), MOST_CAPABILITIES)
        if client.declares(declared):
            revision = _text(about.get(PROTOCOL_VERSION))
            recorder.bind(session=client.label).append(ClientSeen(address, revision, *key[2:], declared, transport))
        return client.label

    def next_label(self) -> str:
        self._count += 1
        return f"m{self._count}"


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return clip(value) if isinstance(value, str) else ""
