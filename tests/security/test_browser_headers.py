"""What every response tells a browser, and CORS: for `/mcp` alone, and for those alone that may call it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from probe.server.endpoints.browsers import Browsers
from probe.settings import build

from ..support.hosts import SECRET
from ..support.http import exchange, http_scope
from ..support.legacy import HEADERS
from ..support.probe import Probe, running
from ..support.rows import each
from .endpoints import GUARDED, HOST, MCP, OPEN, SIDE, SOCKETS, Endpoint, ask

APP = "https://app.example"
ALL = (*GUARDED, *OPEN)
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,mcp-session-id"}


def sharing(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control-")}


@each("endpoint", ALL)
@each("host", [HOST, "evil.example"])
async def test_nothing_is_taken_for_another_type_than_it_says(endpoint: Endpoint, host: str, probe: Probe) -> None:
    answer = await ask(probe.app, endpoint, [("host", host)])
    upgraded = (answer.status, host) == (101, HOST) and endpoint in SOCKETS
    assert upgraded or answer.headers["x-content-type-options"] == "nosniff"


@each("endpoint", [*SIDE, *OPEN, *SOCKETS])
@each("host", [HOST, "evil.example"])
async def test_no_page_runs_a_script_of_a_stranger_is_framed_or_embedded(
    endpoint: Endpoint, host: str, probe: Probe
) -> None:
    answer = await ask(probe.app, endpoint, [("host", host)])
    if answer.status == 101:
        assert host == HOST
        assert endpoint in SOCKETS
        return
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy.get("script-src", "'none'") in ("'none'", "'self'")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"


TELLING = [endpoint for endpoint in SIDE if endpoint.path.startswith(("/api", "/interaction"))]


@each("endpoint", TELLING)
async def test_what_clients_have_sent_is_kept_by_no_cache(endpoint: Endpoint, probe: Probe) -> None:
    answer = await ask(probe.app, endpoint, [("host", HOST)])
    assert answer.headers["cache-control"] in ("no-store", "no-cache", "no-cache, no-transform")


# CORS


@pytest.mark.parametrize("origin", [APP, "http://localhost:6274", f"http://{HOST}"])
async def test_a_preflight_of_an_allowed_page_is_answered(origin: str) -> None:
    async with running(allowed_origins=APP) as probe:
        answer = await ask(probe.app, MCP[3], [("host", HOST), ("origin", origin), *PREFLIGHT.items()])
        assert (answer.status, answer.body) == (204, b"")
        assert sharing(answer.headers) == {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": "*, Authorization",
            "access-control-max-age": "7200",
        }
        assert answer.headers["vary"] == "origin"
        [request], [response] = probe.events("http.request"), probe.events("http.response")
        assert (request["method"], response["status"]) == ("OPTIONS", 204), "a preflight is seen like any other"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{APP}:444", "http://app.example"])
async def test_a_preflight_of_another_page_is_refused(origin: str) -> None:
    async with running(allowed_origins=APP) as probe:
        answer = await ask(probe.app, MCP[3], [("host", HOST), ("origin", origin), *PREFLIGHT.items()])
        assert (answer.status, sharing(answer.headers)) == (403, {})


@pytest.mark.parametrize("missing", ["origin", "access-control-request-method"])
async def test_options_that_is_no_preflight_is_a_method_like_any_other(missing: str) -> None:
    async with running(allowed_origins=APP) as probe:
        headers = {"host": HOST, "origin": APP, **PREFLIGHT}
        del headers[missing]
        answer = await ask(probe.app, MCP[3], list(headers.items()))
        assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


async def test_a_page_reads_its_session_and_every_answer_of_both_eras() -> None:
    async with running(allowed_origins=APP) as probe:
        legacy, modern = await probe.client(), probe.modern()
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
        steps = legacy.request("tools/call", {"name": "progress", "arguments": {"steps": 1, "step_ms": 0}})
        listing = modern.request("tools/list")
        asked: list[tuple[int, Mapping[str, str], Any]] = [
            (200, HEADERS, legacy.request("initialize", hello)),
            (200, legacy.headers, legacy.request("tools/list")),
            (200, legacy.headers, steps),
            (200, modern.headers(listing), listing),
            # Refusals, too: a page that cannot read why cannot tell anybody.
            (400, HEADERS, {"jsonrpc": "2.0"}),
            (406, {**legacy.headers, "accept": "text/html"}, legacy.request("ping")),
            (404, {**legacy.headers, "mcp-session-id": "unknown"}, legacy.request("ping")),
            (400, {**modern.headers(listing), "mcp-method": "ping"}, listing),
        ]
        for status, headers, message in asked:
            body = json.dumps(message).encode()
            async with exchange(probe.app, "POST", "/mcp?tools=all", {**headers, "origin": APP}, body) as answer:
                assert (answer.status, answer.headers["vary"]) == (status, "origin")
                assert sharing(answer.headers) == {
                    "access-control-allow-origin": APP,
                    "access-control-expose-headers": "Mcp-Session-Id, Retry-After",
                }
                async for _ in answer.parts():
                    pass


async def test_a_rate_limited_page_learns_when_to_come_again() -> None:
    """The first to refuse knows nothing of origins; what it says can be read nevertheless."""
    settings = {"allowed_origins": APP, "trusted_proxies": "127.0.0.1", "request_burst": 1, "requests_per_second": 0.1}
    async with running(**settings) as probe:
        headers = [("host", HOST), ("origin", APP), ("x-forwarded-for", "192.0.2.1")]
        await ask(probe.app, MCP[0], headers)
        answer = await ask(probe.app, MCP[0], headers)
        assert (answer.status, "retry-after" in answer.headers) == (429, True)
        assert answer.headers["access-control-allow-origin"] == APP


async def test_no_page_is_shared_with_any_other_origin() -> None:
    """The dashboard needs none: it comes from the server that it asks."""
    async with running(allowed_origins=APP, toolhost_secret=SECRET) as probe:
        for endpoint, method, origin in product([*SIDE, *OPEN, *SOCKETS], ["GET", "OPTIONS"], [APP, f"http://{HOST}"]):
            asked = endpoint if endpoint.socket else Endpoint(endpoint.name, endpoint.path, method)
            answer = await ask(probe.app, asked, [("host", HOST), ("origin", origin), *PREFLIGHT.items()])
            assert sharing(answer.headers) == {}, (endpoint, method, origin)


async def test_a_client_that_is_no_page_is_told_nothing_of_cors(probe: Probe) -> None:
    client = await probe.client()
    async with client.post(client.request("ping")) as answer:
        assert sharing(answer.headers) == {}
        assert "vary" not in answer.headers


async def test_a_websocket_handshake_at_mcp_from_a_page_is_no_error_of_the_server(probe: Probe) -> None:
    answer = await ask(probe.app, Endpoint("", "/mcp", socket=True), [("host", HOST), ("origin", f"http://{HOST}")])
    assert (answer.status, sharing(answer.headers)) == (404, {})


async def test_two_origins_are_none(probe: Probe) -> None:
    answer = await ask(
        probe.app, MCP[0], [("host", HOST), ("origin", f"http://{HOST}"), ("origin", "http://localhost")]
    )
    assert (answer.status, sharing(answer.headers)) == (400, {})


# HSTS

PUBLIC = "https://probe.example"


@pytest.mark.parametrize(
    ("scheme", "host", "public_url", "strict"),
    [
        ("http", HOST, "", False),
        ("http", "probe.example", "", False),
        ("http", "probe.example", "http://probe.example", False),
        ("http", "probe.example", PUBLIC, True),
        ("http", "Probe.Example:443", PUBLIC, True),
        ("http", "127.0.0.1:8000", PUBLIC, False),
        ("http", "other.example", PUBLIC, False),
        ("http", "probe.example", "https://probe.example:8443", False),
        ("https", "probe.example", "", True),
        ("https", "probe.example:443", "", True),
        ("https", "probe.example:8443", "", False),
        ("https", "localhost", "", False),
        ("https", "[::1]", "", False),
        ("https", "", "", False),
    ],
)
async def test_tls_is_asked_for_where_a_name_is_ours_alone_and_has_it(
    scheme: str, host: str, public_url: str, strict: bool
) -> None:
    """On another port, or under another name, the promise would be made for the servers of others."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {**http_scope("GET", "/dashboard", [("host", host)] if host else []), "scheme": scheme}
    with_headers = Browsers(build({"public_url": public_url})).add_headers(scope, send)
    await with_headers({"type": "http.response.start", "status": 200, "headers": []})
    value = dict(sent[0]["headers"]).get(b"strict-transport-security")
    assert value == (b"max-age=31536000" if strict else None)


async def test_what_an_endpoint_says_itself_stays(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/dashboard", {"host": HOST}) as answer:
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    async with exchange(probe.app, "GET", "/interaction/nope", {"host": HOST}) as answer:
        # with `no-referrer` browsers would say `Origin: null` when the button is pressed, which is refused
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "form-action 'self'" in answer.headers["content-security-policy"]
