"""`params._meta` of a modern request, which describes the request, since no session remembers anything.

2026-07-28 basic/index, Per-request protocol fields: "A request missing any required field is malformed; the server
MUST reject it with JSON-RPC error code -32602 (Invalid params)."
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from msgspec import Struct

from ..client_messages import LoggingLevel
from ..errors import Code, McpError
from ..jsonrpc import Json, ProgressToken, is_id

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - a key, no secret
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"

_CAPABILITIES = ("elicitation", "experimental", "roots", "sampling", "extensions")

# A tuple, not a set: what a client sends as its level may be unhashable.
_LEVELS = get_args(LoggingLevel)


class RequestMeta(Struct, frozen=True):
    """The `_meta` of one request. `client_info` and `capabilities` are as sent; members of others are unchecked."""

    version: str
    client_info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any]
    log_level: LoggingLevel | None
    progress_token: ProgressToken | None

    @property
    def tasks(self) -> bool:
        """Declarations of earlier requests do not count."""
        return self.declares(TASKS_EXTENSION)

    def declares(self, extension: str) -> bool:
        """True with an object of settings for the extension."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and isinstance(extensions.get(extension), dict)


def read_meta(params: Mapping[str, Any] | None) -> RequestMeta:
    """The metadata of a request; keys this revision does not define are left alone.

    Raises `McpError` -32602 for what is missing or has the wrong type.
    """
    meta = (params or {}).get("_meta")
    # `Mapping` costs ten times as much, and JSON has no other mappings.
    if not isinstance(meta, dict):
        problem = "is required" if meta is None else "must be an object"
        raise _invalid(f"params._meta {problem}: it carries {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}")
    return RequestMeta(
        version=_member(meta, PROTOCOL_VERSION, str, "a string"),
        client_info=_client_info(meta),
        capabilities=_capabilities(meta),
        log_level=_log_level(meta),
        progress_token=_progress_token(meta),
    )


def _member(meta: Mapping[str, Any], key: str, kind: type, words: str) -> Any:
    if key not in meta:
        raise _invalid(f"params._meta[{key!r}] is required")
    if not isinstance(meta[key], kind):
        raise _invalid(f"params._meta[{key!r}] must be {words}")
    return meta[key]


def _client_info(meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if CLIENT_INFO not in meta:
        return None
    info: Mapping[str, Any] = _member(meta, CLIENT_INFO, dict, "an object")
    for name in ("name", "version"):
        if not isinstance(info.get(name), str):
            raise _invalid(f"params._meta[{CLIENT_INFO!r}].{name} must be a string")
    return info


def _capabilities(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object, with an object for each capability of this revision.

    Only the settings of a known extension are checked.
    """
    declared: Mapping[str, Any] = _member(meta, CLIENT_CAPABILITIES, dict, "an object")
    for name in _CAPABILITIES:
        if name in declared and not isinstance(declared[name], dict):
            raise _invalid(f"params._meta[{CLIENT_CAPABILITIES!r}].{name} must be an object")
    if "extensions" in declared and not isinstance(declared["extensions"].get(TASKS_EXTENSION, {}), dict):
        raise _invalid(f"params._meta[{CLIENT_CAPABILITIES!r}].extensions[{TASKS_EXTENSION!r}] must be an object")
    return declared


def _log_level(meta: Mapping[str, Any]) -> LoggingLevel | None:
    level = meta.get(LOG_LEVEL)
    if LOG_LEVEL in meta and level not in _LEVELS:
        raise _invalid(f"params._meta[{LOG_LEVEL!r}] must be one of {', '.join(_LEVELS)}")
    return level


def _progress_token(meta: Mapping[str, Any]) -> ProgressToken | None:
    token = meta.get(PROGRESS_TOKEN)
    if PROGRESS_TOKEN in meta and not is_id(token):
        raise _invalid("params._meta.progressToken must be a string or an integer")
    return token


def _invalid(why: str) -> McpError:
    return McpError(Code.INVALID_PARAMS, f"Invalid params: {why}")


def required_capabilities(names: Iterable[str]) -> Json:
    """The `data` of error -32021, and of the legacy -32602 about a capability.

    Extensions have a prefix in their name; `elicitation.url` is a mode.
    """
    required: Json = {}
    for name in names:
        path = ("extensions", name) if "/" in name else tuple(name.split("."))
        place = required
        for part in path:
            place = place.setdefault(part, {})
    return {"requiredCapabilities": required}
