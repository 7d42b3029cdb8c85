"""Rules `meta.*` and `logging.*`: the members of `_meta`, and log levels, which stand there in 2026-07-28."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ....views.retention import members
from ....views.values import Message
from ....wire.revisions import LEGACY
from ....wire.v2026.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from ...clients.moments import lacks_session
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASSED, Finding
from ...trace.opportunities import MESSAGE, REQUEST
from ...trace.rules import form, rule
from ...trace.trace import Trace
from ...values import pointer, shown

_PREFIX: Final = "io.modelcontextprotocol/"


def is_modern(request: Message, trace: Trace) -> bool:
    """True for a request of 2026-07-28, by its `_meta`, a header or others on its pipe.

    Another request on a pipe may be the first of a client of the legacy era; it is judged at the end of the connection,
    if there was no initialize on it. Params that are no object are left to `jsonrpc.params-object`.
    """
    pipe = request.pipe
    if request.in_session is not None or lacks_session(request) or request.method == "initialize":
        return False
    if not isinstance(members(request.value).get("params", {}), dict):
        return False
    if request.era == "modern" or PROTOCOL_VERSION in request.meta:
        return True
    if pipe is None:
        return request.exchange is not None and "mcp-method" in request.exchange.headers
    if trace.nth(pipe.label) > 1:
        return False
    end = trace.sure.ended(pipe)
    return pipe.session is None and pipe.modern is not None and not trace.gap_in(NEVER, end)


def says_version(request: Message, trace: Trace) -> bool:
    """True for a modern request with a version; one without is left to the rule about that."""
    return isinstance(request.meta.get(PROTOCOL_VERSION), str) and is_modern(request, trace)


def is_object(value: Any) -> bool:
    """True for a JSON object; an empty one is complete."""
    return isinstance(value, dict)


def is_text(value: Any) -> bool:
    """True for a string; any text is a version."""
    return isinstance(value, str)


form(
    "meta.protocol-version",
    each=REQUEST,
    where=is_modern,
    member=pointer("params", "_meta", PROTOCOL_VERSION),
    must=is_text,
    needed=True,
    any_revision=True,
    sessionless=True,
)
form(
    "meta.client-capabilities",
    each=REQUEST,
    where=says_version,
    member=pointer("params", "_meta", CLIENT_CAPABILITIES),
    must=is_object,
    needed=True,
    any_revision=True,
    sessionless=True,
)


@rule("meta.client-info", each=REQUEST, any_revision=True, sessionless=True)
def client_info(request: Message, trace: Trace) -> Finding | None:
    """A client may be configured not to, so it is reported once."""
    if not says_version(request, trace):
        return None
    info = members(request.meta.get(CLIENT_INFO))
    if isinstance(info.get("name"), str) and isinstance(info.get("version"), str):
        return PASSED
    if CLIENT_INFO in request.meta or trace.nth("told") > 1:
        return None
    return FAIL(f"_meta has no {CLIENT_INFO}")


# The capabilities in the schema of each revision; others may hold anything.
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    LEGACY[0]: ("experimental", "roots", "sampling"),
    LEGACY[1]: ("elicitation", "experimental", "roots", "sampling"),
    LEGACY[2]: ("elicitation", "experimental", "roots", "sampling", "tasks"),
    "2026-07-28": ("elicitation", "experimental", "extensions", "roots", "sampling"),
}


@rule("meta.capability-objects", each=REQUEST, methods={"initialize"})
def capability_objects(request: Message, trace: Trace) -> Finding | None:
    return _are_objects(request, request.params.get("capabilities"), "params", "capabilities")


@rule("meta.capability-objects", each=REQUEST, with_meta=True)
def modern_capability_objects(request: Message, trace: Trace) -> Finding | None:
    if request.era != "modern":
        return None
    return _are_objects(request, request.meta.get(CLIENT_CAPABILITIES), "params", "_meta", CLIENT_CAPABILITIES)


def _are_objects(request: Message, declared: Any, *names: str) -> Finding | None:
    values = members(declared)
    known = [name for name in _KNOWN.get(request.revision or "", ()) if name in values]
    for name in known:
        if not isinstance(values[name], dict) and not request.hides(pointer(*names, name)):
            return FAIL(f"the capability {name} is {shown(values[name])}")
    return PASSED if known else None


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


def keys_of(message: Message) -> frozenset[str] | set[str]:
    """The keys of the `_meta` of a message, which may have one in its params or in its result."""
    meta = message.meta if message.method is not None else members(members(message.result).get("_meta"))
    return set(meta) if meta else _NONE


@rule("meta.key-names", each=MESSAGE, with_meta=True)
def key_names(message: Message, trace: Trace) -> Finding | None:
    own = keys_of(message) - _DEFINED
    wrong = sorted(key for key in own if _KEY.fullmatch(key) is None)
    if wrong:
        return FAIL(f"the _meta key {shown(wrong[0])}")
    return PASSED if own else None


@rule("meta.reserved-keys", each=MESSAGE, with_meta=True)
def reserved_keys(message: Message, trace: Trace) -> Finding | None:
    """Later revisions and official extensions may define more of them."""
    keys = keys_of(message)
    unknown = sorted(key for key in keys - _DEFINED if _is_reserved(key))
    if unknown:
        return FAIL(f"the reserved _meta key {shown(unknown[0])} is none that this program knows")
    return PASSED if keys & _RESERVED_KEYS else None


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


def _is_parent(value: Any) -> bool:
    found = _PARENT.fullmatch(value) if isinstance(value, str) else None
    return found is not None and (found[1] != "00" or found[2] is None)


def _parts(value: Any) -> list[str]:
    return [part.strip(" \t") for part in value.split(",")] if isinstance(value, str) else []


def _is_state(value: Any) -> bool:
    parts = _parts(value)
    return bool(parts) and len(parts) <= _MOST_STATES and all(not part or _STATE.fullmatch(part) for part in parts)


def _is_baggage(value: Any) -> bool:
    parts = _parts(value)
    return bool(parts) and all(not part or _BAGGAGE.fullmatch(part) for part in parts)


form("meta.trace-context", each=MESSAGE, member="/params/_meta/traceparent", must=_is_parent)
form("meta.trace-context", each=MESSAGE, member="/params/_meta/tracestate", must=_is_state)
form("meta.trace-context", each=MESSAGE, member="/params/_meta/baggage", must=_is_baggage)

_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def _is_level(value: Any) -> bool:
    return value in _LEVELS


def _has_level_in_params(request: Message, trace: Trace) -> bool:
    return request.era == "legacy"


def _has_level_in_meta(request: Message, trace: Trace) -> bool:
    return request.era == "modern"


_META_LEVEL: Final = pointer("params", "_meta", "io.modelcontextprotocol/logLevel")

form(
    "logging.level",
    each=REQUEST,
    methods={"logging/setLevel"},
    where=_has_level_in_params,
    member="/params/level",
    must=_is_level,
)
form("logging.level", each=REQUEST, where=_has_level_in_meta, member=_META_LEVEL, must=_is_level)
