"""Rules `meta.*`: the members of `_meta`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ....log.bounded import Newest
from ....wire.revisions import LEGACY
from ...projection.views import META_VERSION, Message, Pipe, members
from ...values import shown
from ..predicate import Predicate, judges

_PREFIX: Final = "io.modelcontextprotocol/"
_INFO: Final = _PREFIX + "clientInfo"
_CAPABILITIES: Final = _PREFIX + "clientCapabilities"
_MOST: Final = 1_000


class ModernRequests(Predicate):
    """Hears of the requests of 2026-07-28 that say so: by their `_meta`, by a header, or by others on their pipe.

    A request on a pipe that says nothing may be the first of a client of the legacy era; it is judged at the end of the
    connection, if there was no initialize on it. Params that are no object are left to `jsonrpc.params-object`.
    """

    any_revision: ClassVar[bool] = True

    def setup(self) -> None:
        self._modern: Newest[str, bool] = Newest(_MOST)
        self._silent: Newest[str, Message] = Newest(_MOST)

    def judge(self, message: Message) -> None:
        """Judge a request that is known to be a modern one."""
        raise NotImplementedError

    def on_request(self, message: Message) -> None:
        pipe = message.pipe
        if message.session is not None or message.method == "initialize":
            return
        if not isinstance(members(message.value).get("params", {}), dict):
            return
        says_so = message.era == "modern" or META_VERSION in message.meta
        if pipe is None:
            if says_so or (message.exchange is not None and "mcp-method" in message.exchange.headers):
                self.judge(message)
        elif says_so:
            if pipe.label not in self._modern:
                self._modern.store(pipe.label, True)
            self.judge(message)
        elif pipe.label not in self._silent:
            self._silent.store(pipe.label, message)

    def on_pipe_end(self, pipe: Pipe) -> None:
        message = self._silent.pop(pipe.label, None)
        if message is not None and pipe.session is None and pipe.label in self._modern and self.life.whole:
            self.judge(message)

    def on_end(self) -> None:
        for message in list(self._silent.values()):
            if message.pipe is not None:
                self.on_pipe_end(message.pipe)


@judges("meta.protocol-version")
class MetaProtocolVersion(ModernRequests):
    """Says its version in each request's _meta."""

    def judge(self, message: Message) -> None:
        """Judge the member; any text is a version."""
        version = message.meta.get(META_VERSION)
        if isinstance(version, str):
            self.ok(message)
        elif META_VERSION in message.meta:
            self.fail(message, f"{META_VERSION} is {shown(version)}")
        else:
            self.fail(message, f"_meta has no {META_VERSION}")


@judges("meta.client-capabilities")
class MetaClientCapabilities(ModernRequests):
    """Says its capabilities in each request's _meta; a request without a version is left to the rule about that."""

    def judge(self, message: Message) -> None:
        """Judge the member; an empty object is complete."""
        meta = message.meta
        if not isinstance(meta.get(META_VERSION), str):
            return
        if isinstance(meta.get(_CAPABILITIES), dict):
            self.ok(message)
        elif _CAPABILITIES in meta:
            self.fail(message, f"{_CAPABILITIES} is {shown(meta[_CAPABILITIES])}")
        else:
            self.fail(message, f"_meta has no {_CAPABILITIES}")


@judges("meta.client-info")
class MetaClientInfo(ModernRequests):
    """Says who it is in each request's _meta.

    A client may be configured not to, so it is told once. A value of another form is left to `jsonrpc.wire-schema`.
    """

    _is_told = False

    def judge(self, message: Message) -> None:
        """Judge the member."""
        if not isinstance(message.meta.get(META_VERSION), str):
            return
        info = members(message.meta.get(_INFO))
        if isinstance(info.get("name"), str) and isinstance(info.get("version"), str):
            self.ok(message)
        elif _INFO not in message.meta and not self._is_told:
            self._is_told = True
            self.fail(message, f"_meta has no {_INFO}")


# The capabilities whose values the schema of each revision knows; others may hold anything.
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    LEGACY[0]: ("experimental", "roots", "sampling"),
    LEGACY[1]: ("elicitation", "experimental", "roots", "sampling"),
    LEGACY[2]: ("elicitation", "experimental", "roots", "sampling", "tasks"),
    "2026-07-28": ("elicitation", "experimental", "extensions", "roots", "sampling"),
}


@judges("meta.capability-objects")
class MetaCapabilityObjects(Predicate):
    """Declares capabilities as objects."""

    def on_request(self, message: Message) -> None:
        if message.method == "initialize":
            self._judge(message, message.params.get("capabilities"), "/params/capabilities/")
        elif message.era == "modern":
            self._judge(message, message.meta.get(_CAPABILITIES), f"/params/_meta/{_CAPABILITIES.replace('/', '~1')}/")

    def _judge(self, message: Message, declared: Any, at: str) -> None:
        values = members(declared)
        known = [name for name in _KNOWN.get(message.revision or "", ()) if name in values]
        wrong = [name for name in known if not isinstance(values[name], dict) and not message.hides(at + name)]
        if wrong:
            self.fail(message, f"the capability {wrong[0]} is {shown(values[wrong[0]])}")
        elif known:
            self.ok(message)


_FREE: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
_DEFINED: Final = _FREE | {
    _PREFIX + name
    for name in (
        "protocolVersion",
        "clientInfo",
        "clientCapabilities",
        "logLevel",
        "subscriptionId",
        "serverInfo",
        "related-task",
        "model-immediate-response",
        "tasks",
        "ui",
        "oauth-client-credentials",
    )
}
"""Keys that a revision, or an official extension that this program knows, defines."""

_NONE: Final[frozenset[str]] = frozenset()
_RESERVED_KEYS: Final = _DEFINED - _FREE

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp"})


def _keys(message: Message) -> frozenset[str] | set[str]:
    """The keys of the `_meta` of a message, which may have one in its params or in its result."""
    meta = message.meta if message.method is not None else members(members(message.result).get("_meta"))
    return set(meta) if meta else _NONE


@judges("meta.key-names")
class MetaKeyNames(Predicate):
    """Names its own _meta keys as the rules say."""

    def on_message(self, message: Message) -> None:
        own = _keys(message) - _DEFINED
        if not own:
            return
        wrong = sorted(key for key in own if _KEY.fullmatch(key) is None)
        if wrong:
            self.fail(message, f"the _meta key {shown(wrong[0])}")
        else:
            self.ok(message)


@judges("meta.reserved-keys")
class MetaReservedKeys(Predicate):
    """Leaves reserved _meta prefixes alone; later revisions and official extensions may define more of them."""

    def on_message(self, message: Message) -> None:
        keys = _keys(message)
        own = keys - _DEFINED
        unknown = sorted(key for key in own if _is_reserved(key)) if own else []
        if unknown:
            self.fail(message, f"the reserved _meta key {shown(unknown[0])} is none that this program knows")
        elif keys & _RESERVED_KEYS:
            self.ok(message)


def _is_reserved(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    labels = prefix.split(".")
    return bool(slash) and len(labels) > 1 and labels[1] in _RESERVED


# W3C Trace Context, 3.2 and 3.3, and W3C Baggage, 3.2. The keys of tracestate are those of level 2, which has more.
_PARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_STATE_KEY: Final = r"[a-z0-9][a-z0-9_\-*/]{0,255}(?:@[a-z][a-z0-9_\-*/]{0,13})?"
_STATE: Final = re.compile(rf"{_STATE_KEY}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_OCTETS: Final = r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
_BAGGAGE: Final = re.compile(rf"{_NAME}[ \t]*=[ \t]*{_OCTETS}(?:[ \t]*;[ \t]*{_NAME}(?:[ \t]*=[ \t]*{_OCTETS})?)*")
_MOST_STATES: Final = 32


def _is_parent(value: str) -> bool:
    found = _PARENT.fullmatch(value)
    return found is not None and (found[1] != "00" or found[2] is None)


def _is_state(value: str) -> bool:
    parts = [part.strip(" \t") for part in value.split(",")]
    return len(parts) <= _MOST_STATES and all(not part or _STATE.fullmatch(part) for part in parts)


def _is_baggage(value: str) -> bool:
    parts = [part.strip(" \t") for part in value.split(",")]
    return all(not part or _BAGGAGE.fullmatch(part) for part in parts)


_GRAMMARS: Final = {"traceparent": _is_parent, "tracestate": _is_state, "baggage": _is_baggage}


@judges("meta.trace-context")
class MetaTraceContext(Predicate):
    """Writes trace context as W3C says."""

    def on_message(self, message: Message) -> None:
        meta = message.meta
        for name, fits in _GRAMMARS.items():
            if name not in meta or message.hides(f"/params/_meta/{name}"):
                continue
            value = meta[name]
            if isinstance(value, str) and fits(value):
                self.ok(message)
            else:
                self.fail(message, f"{name} is {shown(value)}")
