"""One way to the probe: the messages of both eras as a client sends them on it, and what it offers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

import trio

from ..wire.jsonrpc import Json, notification, request
from ..wire.revisions import V2025_11_25, V2026_07_28
from ..wire.v2026.headers import encode as header_value
from ..wire.v2026.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROGRESS_TOKEN, PROTOCOL_VERSION
from .breaker import Plan
from .client.live import Live, Sending, Target, exchange, exchanging, message_sending
from .client.records import ClientExchange
from .client.response import Headers
from .marks import client_name

Way: TypeAlias = Literal["direct", "through"]
WAYS: Final[tuple[Way, ...]] = ("direct", "through")
Era: TypeAlias = Literal["modern", "legacy"]
ERAS: Final[tuple[Era, ...]] = ("modern", "legacy")
"""By preference: steps use the first one that both ways offer."""

ACCEPT: Final = ("Accept", "application/json, text/event-stream")
JSON_TYPE: Final = ("Content-Type", "application/json")
# For requests without arguments. The log has it if the gateway passes headers on.
MARK_HEADER: Final = "X-Probe-Mark"
ANSWER_S = 10.0
CAPABILITIES: Final[Json] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}}}
"""The client's capabilities: more than it needs, to show whether the gateway passes them on."""

# By method, the parameter repeated in the header Mcp-Name.
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId"}


@dataclass
class Side:
    """A way to the probe. `names` are its names of our tools, `offers` its features, such as "tool:fail".

    The first phase fills `offers` and `era`; `era` is the same on both ways if they have a common one. `doubt` is set
    after two exchanges in a row without an answer, and replaced after the next answer.
    """

    way: Way
    mcp: Target
    names: dict[str, str] = field(default_factory=dict)
    offers: set[str] = field(default_factory=set)
    era: Era = "modern"
    websocket: Target | None = None
    breaker: Plan | None = None
    doubt: trio.Event = field(default_factory=trio.Event)
    _unanswered: int = 0

    def tool(self, name: str) -> str:
        return self.names.get(name, name)

    async def ask(self, sending: Sending, seconds: float | None = None) -> ClientExchange:
        """`seconds` are `ANSWER_S` by default."""
        answer = await exchange(self.mcp, sending, ANSWER_S if seconds is None else seconds)
        self._unanswered = self._unanswered + 1 if answer.status is None else 0
        if self._unanswered == 2:
            self.doubt.set()
        elif self._unanswered == 0 and self.doubt.is_set():
            self.doubt = trio.Event()
        return answer

    def asking(self, sending: Sending) -> AbstractAsyncContextManager[Live]:
        return exchanging(self.mcp, sending)


@dataclass(frozen=True, slots=True)
class LegacySession:
    """A legacy session: its opening exchanges, and its id or None."""

    opened: tuple[ClientExchange, ...]
    id: str | None
    revision: str
    mark: int

    @property
    def headers(self) -> Headers:
        named = () if self.id is None else (("Mcp-Session-Id", self.id),)
        return (JSON_TYPE, ACCEPT, *named, ("MCP-Protocol-Version", self.revision), (MARK_HEADER, str(self.mark)))


def client_info(mark: int) -> Json:
    """The client of a trial. Its name has the mark, and some gateways pass it on."""
    return {"name": client_name(mark), "version": "1"}


def initialize(mark: int, revision: str = V2025_11_25, capabilities: Json | None = None) -> Json:
    """The first request of a session."""
    params = {
        "protocolVersion": revision,
        "capabilities": CAPABILITIES if capabilities is None else capabilities,
        "clientInfo": client_info(mark),
    }
    return request(0, "initialize", params)


async def open_session(
    side: Side, mark: int, revision: str = V2025_11_25, *, name: str = "", capabilities: Json | None = None
) -> LegacySession:
    """`initialize` and `notifications/initialized`."""
    marked = (JSON_TYPE, ACCEPT, (MARK_HEADER, str(mark)))
    hello = initialize(mark, revision, capabilities)
    first = await side.ask(message_sending(f"{name}initialize", hello, marked))
    agreed = first.result.get("protocolVersion", revision)
    session = LegacySession((first,), first.header("mcp-session-id"), str(agreed), mark)
    if "protocolVersion" not in first.result:
        return session
    initialized = notification("notifications/initialized", None)
    second = await side.ask(message_sending(f"{name}initialized", initialized, session.headers))
    return replace(session, opened=(first, second))


@asynccontextmanager
async def session(side: Side, mark: int, **wanted: Any) -> AsyncIterator[LegacySession]:
    """A session for as long as the block; it is ended by DELETE."""
    opened = await open_session(side, mark, **wanted)
    yield opened
    if opened.id is not None:
        await side.ask(Sending("delete", "DELETE", opened.headers), 5.0)


def call(
    side: Side, tool: str, arguments: Mapping[str, Any], *, id: int | str = 1, token: int | str | None = None
) -> Json:
    """`tools/call` for a legacy session."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(id, "tools/call", {"name": side.tool(tool), "arguments": dict(arguments), **meta})


def in_session(name: str, message: Any, opened: LegacySession, *more: tuple[str, str]) -> Sending:
    """A POST in a legacy session."""
    return message_sending(name, message, (*opened.headers, *more))


def modern(
    name: str,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    mark: int,
    id: int | str = 1,
) -> Sending:
    """A POST of the modern era. Members of `_meta` in `params` are added to its own, or replace them."""
    given = dict(params or {})
    meta: Json = {
        PROTOCOL_VERSION: V2026_07_28,
        CLIENT_CAPABILITIES: {},
        CLIENT_INFO: client_info(mark),
        **given.pop("_meta", {}),
    }
    body = request(id, method, {**given, "_meta": meta})
    named = _NAMED.get(method)
    own: list[tuple[str, str]] = [JSON_TYPE, ACCEPT, ("MCP-Protocol-Version", V2026_07_28), ("Mcp-Method", method)]
    if named is not None and params is not None:
        own.append(("Mcp-Name", header_value(str(params[named]))))
    return message_sending(name, body, (*own, (MARK_HEADER, str(mark))))


def modern_call(
    side: Side, name: str, tool: str, arguments: Mapping[str, Any], *, mark: int, token: int | str | None = None
) -> Sending:
    """`tools/call` of the modern era, with progress where there is a token."""
    meta = {} if token is None else {PROGRESS_TOKEN: token}
    params = {"name": side.tool(tool), "arguments": dict(arguments), "_meta": meta}
    return modern(name, "tools/call", params, mark=mark)


def with_headers(sending: Sending, *more: tuple[str, str]) -> Sending:
    """A copy with more headers; they replace headers of the same name."""
    names = {name.lower() for name, _ in more}
    kept = [(name, value) for name, value in sending.headers if name.lower() not in names]
    return replace(sending, headers=(*kept, *more))


@dataclass(frozen=True, slots=True)
class EraClient:
    """A client in the era of its way. `session` is None in the modern era."""

    side: Side
    mark: int
    session: LegacySession | None

    @property
    def opened(self) -> tuple[ClientExchange, ...]:
        return () if self.session is None else self.session.opened

    def listing(self, name: str, *, id: int) -> Sending:
        if self.session is None:
            return modern(name, "tools/list", mark=self.mark, id=id)
        return in_session(name, request(id, "tools/list", None), self.session)

    def call(
        self, name: str, tool: str, arguments: Mapping[str, Any], *, id: int = 1, token: int | str | None = None
    ) -> Sending:
        """`tools/call`, with progress where there is a token. Only a session needs different ids."""
        if self.session is None:
            return modern_call(self.side, name, tool, arguments, mark=self.mark, token=token)
        return in_session(name, call(self.side, tool, arguments, id=id, token=token), self.session)


@asynccontextmanager
async def era_client(side: Side, mark: int) -> AsyncIterator[EraClient]:
    """A conversation for as long as the block; its session, where it has one, is ended by DELETE."""
    if side.era == "modern":
        yield EraClient(side, mark, None)
        return
    async with session(side, mark) as opened:
        yield EraClient(side, mark, opened)
