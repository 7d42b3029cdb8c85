"""`/health` and `/ready`."""

from __future__ import annotations

import pytest

from ...support.api import LOCAL, get
from ...support.http import exchange
from ...support.probe import Probe, running


@pytest.mark.parametrize("headers", [LOCAL, {"host": "10.0.0.7:8000"}, {}])
async def test_health_and_readiness_are_told_to_whoever_asks(headers: dict[str, str], probe: Probe) -> None:
    """A prober of an orchestrator calls by address, which is no name of this server."""
    assert await get(probe, "/health", headers) == (200, "application/json", {"status": "alive"})
    assert await get(probe, "/ready", headers) == (200, "application/json", {"status": "ready"})


async def test_while_draining_the_server_is_alive_but_not_ready_and_takes_no_new_work() -> None:
    async with running(grace_s=0) as probe:
        client = await probe.client()
        await probe.engine.drain()
        assert (await get(probe, "/ready"))[0] == 503
        assert (await get(probe, "/health"))[0] == 200
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        del client.headers["mcp-session-id"]
        async with client.post(client.request("initialize", params)) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_health_is_read_only(method: str, probe: Probe) -> None:
    async with exchange(probe.app, method, "/health", LOCAL) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
