"""The era and the revision that a message is of, as far as it says so."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from ...core.modern_inbound import era_of_head
from ...views.clients import Session
from ...views.retention import members
from ...views.values import Exchange, Message
from ...wire.jsonrpc import is_id
from ...wire.revisions import LEGACY, MODERN, negotiate
from ...wire.v2026.meta import PROTOCOL_VERSION

Era: TypeAlias = Literal["legacy", "modern"]

_VERSION_HEADER: Final = "mcp-protocol-version"


def era_of(revision: str | None) -> Era | None:
    """The era of a revision that this server knows."""
    if revision in LEGACY:
        return "legacy"
    return "modern" if revision in MODERN else None


def note_speech(message: Message) -> None:
    """Note the era, the revision, `_meta` and the progress token of a message of the client, in their order."""
    value, pipe = message.value, message.pipe
    session = message.opened or message.session
    if session is None or not session.is_legacy:
        session = None if pipe is None else pipe.session
    era, revision = _spoken(message.method, value, message.exchange, session)
    if pipe is not None:
        if era == "modern":
            pipe.modern = revision or pipe.modern
        elif era is None and message.rpc in ("notification", "response", "error") and pipe.modern is not None:
            # Answers and notifications without a session name no revision themselves.
            era, revision = "modern", pipe.modern
    message.era, message.spoken = era, revision
    if message.method is None:
        return
    meta = message.meta
    message.has_meta = bool(meta)
    if meta and message.rpc == "request":
        token = meta.get("progressToken")
        if is_id(token) and not message.hides("/params/_meta/progressToken"):
            message.token = token


def _spoken(
    method: str | None, value: Any, exchange: Exchange | None, session: Session | None
) -> tuple[Era | None, str | None]:
    params = members(members(value).get("params"))
    if method == "initialize":
        asked = params.get("protocolVersion")
        return "legacy", negotiate(asked) if isinstance(asked, str) else LEGACY[-1]
    version = members(params.get("_meta")).get(PROTOCOL_VERSION)
    named = () if exchange is None else exchange.fields.each(_VERSION_HEADER)
    by_head = None if exchange is None else era_of_head(exchange.fields)
    if isinstance(version, str) and by_head != "legacy" and (era_of(version) == "modern" or by_head != "modern"):
        return "modern", version if era_of(version) == "modern" else None
    if by_head == "modern":
        return "modern", next(each for each in named if each in MODERN)
    if session is not None:
        return "legacy", session.revision
    return next(((era_of(each), each) for each in named[:1] if era_of(each) is not None), (None, None))
