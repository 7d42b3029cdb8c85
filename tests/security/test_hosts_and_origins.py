"""Every endpoint looks at Host and Origin: no page of a stranger, under whatever name, gets beyond a refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ..support.hosts import SECRET
from ..support.probe import Probe, running
from ..support.rows import each
from .endpoints import CONFIRMING, GUARDED, HOST, MCP, OPEN, SIDE, SOCKETS, Endpoint, ask

FOREIGN = {
    "rebound name": [("host", "evil.example")],
    "rebound name with its own page": [("host", "evil.example:8000"), ("origin", "http://evil.example:8000")],
    "no name": [],
    "page of a stranger": [("host", HOST), ("origin", "https://evil.example")],
    "page without an origin": [("host", HOST), ("origin", "null")],
    "file": [("host", HOST), ("origin", "file://")],
    "extension": [("host", HOST), ("origin", "chrome-extension://abcdefghijklmnop")],
    "name that begins like ours": [("host", HOST), ("origin", "http://127.0.0.1.evil.example")],
}


@pytest.fixture
async def with_hosts() -> AsyncIterator[Probe]:
    async with running(toolhost_secret=SECRET) as probe:
        yield probe


def states(probe: Probe) -> tuple[int, int, int]:
    return len(list(probe.engine.sessions)), len(probe.engine.records), len(probe.app.feed.open)


@pytest.mark.proves("2025-11-25/transports/5", "2025-11-25/transports/6")
@each("foreign", FOREIGN)
@each("endpoint", GUARDED)
async def test_a_stranger_is_refused_and_learns_nothing(endpoint: Endpoint, foreign: str, with_hosts: Probe) -> None:
    before = states(with_hosts)
    answer = await ask(with_hosts.app, endpoint, FOREIGN[foreign])
    assert answer.status == 403
    assert "json" in answer.headers["content-type"]
    assert with_hosts.engine.run.encode() not in answer.body
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert states(with_hosts) == before


@each("endpoint", GUARDED)
async def test_the_same_request_from_the_right_place_is_judged_by_what_it_asks(
    endpoint: Endpoint, with_hosts: Probe
) -> None:
    """Else the test above would hold for a server that refuses everything."""
    answer = await ask(with_hosts.app, endpoint, [("host", HOST)])
    assert answer.status not in (401, 403)


@each("endpoint", [*MCP, *SIDE, SOCKETS[0], CONFIRMING])
async def test_a_page_of_the_server_itself_may_ask(endpoint: Endpoint, probe: Probe) -> None:
    answer = await ask(probe.app, endpoint, [("host", HOST), ("origin", f"http://{HOST}")])
    assert answer.status != 403


@pytest.mark.parametrize("origin", [f"http://{HOST}", "https://app.example"])
async def test_no_page_is_a_tool_host_not_even_with_the_secret(origin: str) -> None:
    async with running(toolhost_secret=SECRET, allowed_origins="https://app.example") as probe:
        answer = await ask(probe.app, SOCKETS[1], [("host", HOST), ("origin", origin)])
        assert answer.status == 403


@each("headers", FOREIGN.values())
@each("endpoint", OPEN)
async def test_health_is_for_anybody_and_says_one_word(
    endpoint: Endpoint, headers: list[tuple[str, str]], probe: Probe
) -> None:
    answer = await ask(probe.app, endpoint, headers)
    assert (answer.status, answer.body in (b'{"status":"alive"}', b'{"status":"ready"}')) == (200, True)
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/ws", "/toolhost"])
async def test_what_is_no_handshake_gets_the_same_sentence_under_any_name(path: str, probe: Probe) -> None:
    plain = Endpoint(path, path)
    usual = await ask(probe.app, plain, [("host", HOST)])
    assert usual.status in (404, 426)
    for headers in FOREIGN.values():
        assert (await ask(probe.app, plain, headers)).body == usual.body


PUBLIC = {
    "allowed_hosts": {"host": "0.0.0.0", "allowed_hosts": "probe.example, other.example"},
    "public_url": {"host": "0.0.0.0", "public_url": "https://probe.example"},
    "public_url with a port": {"host": "0.0.0.0", "public_url": "https://Probe.Example:8443/"},
}


@pytest.mark.parametrize("settings", PUBLIC.values(), ids=PUBLIC)
async def test_a_public_name_is_served_once_it_is_named(settings: dict[str, str]) -> None:
    async with running(toolhost_secret=SECRET, **settings) as probe:
        for endpoint in GUARDED:
            assert (await ask(probe.app, endpoint, [("host", "probe.example")])).status != 403, endpoint
            assert (await ask(probe.app, endpoint, [("host", "third.example")])).status == 403, endpoint
            assert (await ask(probe.app, endpoint, [("host", "0.0.0.0:8000")])).status == 403, endpoint


async def test_a_public_address_is_served() -> None:
    async with running(public_url="https://[2001:db8::7]") as probe:
        assert (await ask(probe.app, GUARDED[0], [("host", "[2001:db8::7]")])).status != 403
        assert (await ask(probe.app, GUARDED[0], [("host", "[2001:db8::8]")])).status == 403


EMBEDS = [
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "object"},
    {"sec-fetch-site": "cross-site"},
]


@each("embed", EMBEDS)
@each("endpoint", SIDE)
async def test_a_page_of_another_site_embeds_nothing(endpoint: Endpoint, embed: dict[str, str], probe: Probe) -> None:
    """An image has no Origin; fifty of them in a stranger's page would be all the readers that the feed may have."""
    before = states(probe)
    answer = await ask(probe.app, endpoint, [("host", HOST), *embed.items()])
    assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json")
    assert states(probe) == before


ALLOWED = [
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    {},
]


@each("allowed", ALLOWED)
async def test_a_link_and_the_pages_own_requests_are_followed(allowed: dict[str, str], probe: Probe) -> None:
    for endpoint in SIDE:
        assert (await ask(probe.app, endpoint, [("host", HOST), *allowed.items()])).status != 403


async def test_a_form_of_another_site_confirms_nothing(probe: Probe) -> None:
    """A browser that says no Origin for it says at least where it comes from."""
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = await ask(probe.app, CONFIRMING, [("host", HOST), *link.items()])
    assert answer.status == 403
