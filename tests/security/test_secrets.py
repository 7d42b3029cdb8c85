"""Secrets: each is compared in constant time or not compared at all, and none can be read from a page."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from probe.engine.modern.rounds import RequestStates
from probe.engine.streams import draft_streams
from probe.server.endpoints import websocket
from probe.wire.errors import McpError

from ..support.api import LOCAL
from ..support.hosts import SECRET
from ..support.http import exchange
from ..support.probe import Probe, running
from .endpoints import HOST, PAGES, SOCKETS, Endpoint, ask

WRONG = [
    None,
    "",
    SECRET,
    "Bearer",
    "Bearer ",
    f"Basic {SECRET}",
    f"Bearer {SECRET[:-1]}",
    f"Bearer {SECRET}x",
    f"Bearer x{SECRET}",
    f"Bearer {SECRET.upper()}",
    f"Bearer {SECRET} {SECRET}",
    f"Bearer {SECRET},{SECRET}",
    f"Bearer {SECRET}\xa0",
    f"Bearer\t{SECRET}",
]


def handshake(credentials: str | None) -> Endpoint:
    return Endpoint("", "/toolhost", socket=True, headers={} if credentials is None else {"authorization": credentials})


@pytest.mark.parametrize("credentials", WRONG)
async def test_only_the_whole_secret_lets_a_tool_host_in(credentials: str | None) -> None:
    async with running(toolhost_secret=SECRET) as probe:
        answer = await ask(probe.app, handshake(credentials), [("host", HOST)])
        assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="toolhost"')
        assert SECRET.encode() not in answer.body
        assert (await ask(probe.app, handshake(f"Bearer {SECRET}"), [("host", HOST)])).status == 101


class Compared:
    """`hmac.compare_digest`, and what it was given."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []

    def __call__(self, given: Any, wanted: Any) -> bool:
        self.pairs.append((given, wanted))
        return hmac_compare(given, wanted)


hmac_compare = hmac.compare_digest


@pytest.mark.parametrize("given", [SECRET, "x", "x" * len(SECRET)])
async def test_the_secret_of_tool_hosts_is_compared_in_constant_time(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = Compared()
    monkeypatch.setattr(websocket.hmac, "compare_digest", compared)
    async with running(toolhost_secret=SECRET) as probe:
        await ask(probe.app, handshake(f"Bearer {given}"), [("host", HOST)])
    assert compared.pairs == [(given.encode(), SECRET.encode())]


def test_what_proves_a_stream_is_kept_and_looked_for_as_a_digest() -> None:
    """So the time of a comparison tells of a digest, which nobody can choose, and not of the secret."""
    assert len(draft_streams._NOBODY) == 32
    assert "compare_digest" in draft_streams.DraftStreams._belongs.__code__.co_names


@pytest.mark.parametrize("at", [0, 3, 4, 15, 16, 20, -1])
def test_a_request_state_with_one_other_bit_opens_nothing_and_says_no_more_than_any(at: int) -> None:
    from base64 import urlsafe_b64decode, urlsafe_b64encode

    states = RequestStates([b"k" * 32], lambda: b"n" * 12)
    token = states.seal({"step": 1}, binding={"tool": "x"}, expires_at=10)
    raw = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[at] ^= 1
    said = []
    for bad, binding, now in (
        (urlsafe_b64encode(raw).rstrip(b"=").decode(), {"tool": "x"}, 0),
        (token, {"tool": "y"}, 0),
        (token, {"tool": "x"}, 11),
        ("", {"tool": "x"}, 0),
    ):
        with pytest.raises(McpError) as refused:
            states.open(bad, binding=binding, now=now)
        said.append((refused.value.code, refused.value.message))
    assert len(set(said)) == 1


async def test_no_page_tells_a_secret_or_a_whole_session_id() -> None:
    keys = "ab" * 32
    async with running(toolhost_secret=SECRET, request_state_keys=keys) as probe:
        client = await probe.client()
        client.headers["authorization"] = "Bearer of-a-client"
        await client.tool("simple_tool")
        await ask(probe.app, SOCKETS[1], [("host", HOST)])
        session = client.headers["mcp-session-id"]
        for path in PAGES:
            told = await first_part(probe, path)
            assert [text for text in (SECRET, keys, session, "of-a-client") if text.encode() in told] == [], path


async def first_part(probe: Probe, path: str) -> bytes:
    """The body, or what a stream has for who comes to it."""
    feed = path == "/dashboard/events"
    async with exchange(probe.app, "GET", f"{path}?tail=1000" if feed else path, LOCAL) as answer:
        if answer.headers["content-type"] == "text/event-stream":
            body, parts = b"", answer.parts()
            while b"call.settled" not in body if feed else not body:
                body += await anext(parts)
            return body
        return await answer.body()
