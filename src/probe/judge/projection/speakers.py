"""The sender of a message, as far as it says so, and the era and revision that the message is of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from ...log import events
from ...wire.jsonrpc import clip
from ...wire.revisions import LEGACY, negotiate
from .life import Life
from .views import META_VERSION, Era, Exchange, Message, Pipe, Session, era_of, members

# Different names of clients, and of capabilities, that one subject is told of: clients choose both.
_MOST_NAMES: Final = 100
# Characters of what a client calls itself, where two are told apart by it.
_LONGEST_NAME: Final = 60
_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
_VERSION_HEADER: Final = "mcp-protocol-version"
_SESSION_HEADER: Final = "mcp-session-id"

_Name = TypeVar("_Name", str, tuple[str, str])


def count_name(life: Life, name: str, version: str, capabilities: Mapping[str, Any]) -> None:
    """The server was told who a client is and what it can."""
    _count_one(life.names, (name, version))
    if len(life.names) > 1 and life.several is None:
        life.several = _two(*islice(life.names, 2))
    for capability in capabilities:
        _count_one(life.capabilities, capability)


def _count_one(counts: dict[_Name, int], name: _Name) -> None:
    if name in counts or len(counts) < _MOST_NAMES:
        counts[name] = counts.get(name, 0) + 1


def count_agent(life: Life, exchange: Exchange) -> None:
    """A request for the protocol's endpoint may say by which program it was made."""
    agent = exchange.header("user-agent")
    if agent and exchange.is_endpoint:
        _count_one(life.agents, clip(agent, _LONGEST_NAME))


def note_name(life: Life, message: Message) -> None:
    """Two names under one label are those of two clients, also where the server has met both before."""
    if message.era == "modern":
        info = message.meta.get(_CLIENT_INFO)
    elif message.method == "initialize":
        info = message.params.get("clientInfo")
    else:
        return
    if isinstance(info, dict) and isinstance(info.get("name"), str):
        said = (info["name"], info.get("version"))
        if life.said is None:
            life.said = said
        elif life.said != said and life.several is None:
            life.several = _two(life.said, said)


def _two(*names: tuple[str, Any]) -> str:
    first, second = (clip(" ".join([name, str(version or "")]).strip(), _LONGEST_NAME) for name, version in names)
    return f"two clients use this name, {first} and {second}"


def spoken(
    fact: events.MessageReceived, value: Any, exchange: Exchange | None, session: Session | None
) -> tuple[Era | None, str | None]:
    """The era and the revision of a message; of one that says neither, as the session or the header has it."""
    params = members(members(value).get("params"))
    if fact.method == "initialize":
        asked = params.get("protocolVersion")
        return "legacy", negotiate(asked) if isinstance(asked, str) else LEGACY[-1]
    version = members(params.get("_meta")).get(META_VERSION)
    header = None if exchange is None else exchange.header(_VERSION_HEADER)
    # The server sees it the same way: what is sent in a session and names a revision of sessions is of that one.
    in_session = exchange is not None and _SESSION_HEADER in exchange.headers and era_of(header) == "legacy"
    if isinstance(version, str) and not in_session and (era_of(version) == "modern" or era_of(header) != "modern"):
        return "modern", version if era_of(version) == "modern" else None
    if header is not None and era_of(header) == "modern":
        return "modern", header
    if session is not None:
        return "legacy", session.revision
    return era_of(header), header if era_of(header) is not None else None


def spoken_on(
    pipe: Pipe, fact: events.MessageReceived, era: Era | None, revision: str | None
) -> tuple[Era | None, str | None]:
    """The era and the revision on a pipe, where answers and notifications without a session name none themselves."""
    if era == "modern":
        pipe.modern = revision or pipe.modern
    elif era is None and fact.rpc in ("notification", "response", "error") and pipe.modern is not None:
        return "modern", pipe.modern
    return era, revision
