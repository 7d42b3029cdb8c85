"""Logs of a real client, direct and through a gateway, compared by `mcp-probe judge --against`."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from probe.cli.program import main

from ...gateway.proxy import Gateway, Reply, Request, Rules, gateway
from ...gateway.runs import probe
from .scripted.client import MODERN, Client
from .scripted.wire import Http
from .scripted.wire import Reply as Answer


class Traced(Http):
    """Each request says which trace it is of."""

    def send(self, message: Any, headers: Mapping[str, str | None]) -> Answer:
        return super().send(
            message, {**headers, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        )


class Forgetful(Rules):
    """Drops a header and a member of `_meta`."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        request.headers = [(name, value) for name, value in request.headers if name.lower() != "traceparent"]
        meta = request.message.get("params", {}).get("_meta", {})
        if meta.pop("acme/trail", None) is not None:
            request.body = json.dumps(request.message).encode()
        return None


def talk(url: str, revision: str) -> None:
    client = Client(Traced(f"{url}?client=acme"), revision)
    client.connect()
    client.lists()
    for steps in (1, 2):
        client.call("progress", {"steps": steps, "step_ms": 1}, _meta={"progressToken": steps, "acme/trail": "x"})
    client.end()


async def logged(path: Path, revision: str, rules: Rules | None) -> str:
    """The log of a probe to which the client has talked."""
    async with probe() as direct:
        if rules is None:
            await trio.to_thread.run_sync(talk, direct.url, revision)
        else:
            async with gateway(rules, direct.port) as before:
                await trio.to_thread.run_sync(talk, before.url, revision)
        await trio.to_thread.run_sync(_save, direct.url.replace("/mcp", "/api/events.ndjson"), path)
    return str(path)


def _save(url: str, path: Path) -> None:
    with urllib.request.urlopen(url) as answer:
        path.write_bytes(answer.read())


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_a_gateway_drops_is_named(revision: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    direct = await logged(tmp_path / "direct.ndjson", revision, None)
    through = await logged(tmp_path / "through.ndjson", revision, Forgetful())
    again = await logged(tmp_path / "again.ndjson", revision, Rules())

    async def said(one: str, other: str) -> list[str]:
        # it opens an event loop of its own
        await trio.to_thread.run_sync(main, ["judge", "--log", one, "--against", other])
        return capfd.readouterr().out.splitlines()

    _, _, paired, *facts = (await said(through, direct))[-5:]
    requests = paired.split()[1]
    assert facts == [
        f"    {requests} of {requests} requests lost the header `traceparent`",
        "    2 of 2 requests lost the key of `_meta` `acme/trail`",
    ]
    assert (await said(again, direct))[-1] == "    Nothing that a gateway should keep differs in these."
