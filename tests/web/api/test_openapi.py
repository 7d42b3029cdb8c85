"""The description of the API: it is valid, it is committed as it is, and what holds answers to it is strict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urljoin

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from probe.log import query
from probe.log.context import Context
from probe.log.events import Event, HostConnected
from probe.views.search import call_filter
from probe.views.tables import TABLES
from probe.web.api import listing, openapi
from probe.web.feed import feed_pieces

from ...support import openapi as held
from ...support.api import LOCAL
from ...support.http import exchange
from ...support.legacy import RpcError
from ...support.probe import Probe, running

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"
JSON = {"content-type": "application/json", "x-content-type-options": "nosniff"}


def test_it_is_a_valid_description() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    OpenAPIV31SpecValidator(openapi.document()).validate()


@pytest.mark.parametrize("base", ["http://127.0.0.1:8000", "https://gateway.example/tools/probe"])
def test_its_server_is_where_it_was_got_from_also_below_a_path(base: str) -> None:
    (server,) = openapi.document()["servers"]
    resolved = urljoin(f"{base}{listing.OPENAPI.path}", server["url"])
    assert f"{resolved.rstrip('/')}{listing.SERVER.path}" == f"{base}/api/server"


def test_the_committed_one_is_not_stale() -> None:
    """Else: python -m probe.web.api.openapi > docs/openapi.json."""
    assert COMMITTED.read_text(encoding="utf-8") == openapi.encoded(openapi.document())


@pytest.mark.parametrize("of", ["judge", "gateway"])
def test_the_committed_schema_of_reports_is_not_stale(of: str) -> None:
    """Else: python -m probe.web.api.openapi judge > docs/judge.schema.json, likewise gateway."""
    assert COMMITTED.with_name(f"{of}.schema.json").read_text() == openapi.encoded(openapi.report_schema(of))


def test_the_program_prints_it() -> None:
    command = [sys.executable, "-W", "error", "-m", "probe.web.api.openapi"]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.run(command, check=True, capture_output=True, timeout=60, env=env)
    assert printed.stdout == COMMITTED.read_bytes()


async def test_the_server_gives_it(probe: Probe) -> None:
    async with exchange(probe.app, "GET", "/api/openapi.json", LOCAL) as answer:
        assert await answer.body() == COMMITTED.read_bytes()


def test_every_kind_of_event_is_told_apart_by_its_kind() -> None:
    entry = openapi.document()["components"]["schemas"]["Entry"]
    assert list(entry["discriminator"]["mapping"]) == [kind.kind for kind in get_args(Event)]


def test_every_member_of_an_answer_is_required() -> None:
    """So that what is generated from it need not ask whether a member is there."""
    for name, schema in openapi.document()["components"]["schemas"].items():
        optional = set(schema.get("properties", {})) - set(schema.get("required", []))
        # What a query has to ask for is there where it was asked for.
        assert optional <= ({"known"} if name == "Problem" else {"view", "exchanges"}), name


def test_every_filter_is_described() -> None:
    paths = openapi.document()["paths"]

    def names(path: str) -> set[str]:
        return {item["name"] for item in paths[path]["get"]["parameters"]}

    assert set(query.NAMES) < names("/api/events")
    assert set(query.NAMES) < names("/dashboard/events")
    assert set(call_filter.NAMES) | {"arguments", "result"} < names("/api/calls")


def test_the_feed_takes_what_is_described() -> None:
    assert [item.name for item in listing.FEED.own] == list(feed_pieces.OWN)


async def test_what_the_feed_sends_is_as_described(autojump_clock: MockClock) -> None:
    schemas = {"": "Entry", "hello": "FeedHello", "gap": "FeedGap", "rows": "FeedRows"}
    seen: set[str] = set()
    async with running() as probe:
        probe.engine.log.append(HostConnected("127.0.0.1:5"), Context(connection="h1", exchange=9))
        client = await probe.client()
        await client.tool("simple_tool")
        task = {"name": "pure_task", "arguments": {"durationMs": 1000}, "task": {"ttl": 60_000}}
        await client.call("tools/call", task)
        with pytest.raises(RpcError):
            await client.call("no/such")
        target = f"/dashboard/events?tables={','.join(TABLES)}&since=other-1"
        text = b""
        async with exchange(probe.app, "GET", target, LOCAL) as answer:
            with trio.move_on_after(10):
                async for part in answer.parts():
                    text += part
    for block in text.decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n"))
        if "data" not in fields:
            continue
        kind, value = fields.get("event", ""), json.loads(fields["data"])
        seen.add(kind + value.get("table", ""))
        errors = held.validator(json.dumps({"$ref": f"#/components/schemas/{schemas[kind]}"})).iter_errors(value)
        assert not [error.message for error in errors]
    assert seen == {"", "hello", "gap", *(f"rows{table}" for table in TABLES)}


def entry(**fields: Any) -> bytes:
    known = {"seq": 1, "at": 1.0, "mono": 1.0, "cause": None, "kind": "server.state", "state": "ready"}
    return json.dumps({**known, **structs.asdict(Context()), **fields}).encode()


def test_what_is_as_described_passes() -> None:
    held.check("GET", "/api/events/1", 200, JSON, entry())


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/api/events/1", 200, entry(state=1)),
        ("/api/events/1", 200, entry(kind="other")),
        ("/api/events/1", 200, entry(kind="limit.reached")),
        ("/api/events/1", 200, entry(more=1)),
        ("/api/events/1", 200, b'{"seq":1}'),
        ("/api/events/1", 200, b"null"),
        ("/api/events/1", 202, entry()),
        ("/api/none", 200, b"{}"),
        ("/api/events", 200, b'{"events":[]}'),
    ],
)
def test_what_is_not_as_described_fails(path: str, status: int, body: bytes) -> None:
    with pytest.raises(AssertionError):
        held.check("GET", path, status, JSON, body)


def test_another_content_type_than_described_fails() -> None:
    with pytest.raises(AssertionError):
        held.check("GET", "/api/events/1", 200, {**JSON, "content-type": "text/html"}, entry())
