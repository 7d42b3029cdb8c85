"""What a host says in the moment in which its call ends, before the call's own task has run again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.call import Cause
from probe.engine.host_tools.connection import HostConnection

from ..support.hosts import Host, calling
from ..support.probe import Probe


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[HostConnection]:
    """The connections of hosts, in the order in which they came."""
    came: list[HostConnection] = []
    serve = HostConnection.serve

    async def served(self: HostConnection, wire: Any) -> None:
        came.append(self)
        await serve(self, wire)

    monkeypatch.setattr(HostConnection, "serve", served)
    return came


@pytest.mark.parametrize("what", ["progress", "result"])
async def test_what_comes_between_a_cancellation_and_its_effect_is_late(
    probe: Probe, connections: list[HostConnection], host: Host, what: str, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        (scope,) = probe.engine.modern.running
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": dispatch, "result": {"text": "done"}}
        if what == "progress":
            params = {"dispatch": dispatch, "progress": 1}
            said = {"jsonrpc": "2.0", "method": "tool.progress", "params": params}
        (connection,) = connections
        # In one step, so that the call's task cannot run in between.
        scope.cancel(Cause.SHUTDOWN)
        connection._take(json.dumps(said).encode())
        assert (await host.cancelled())["cause"] == "shutdown"
        await wait_all_tasks_blocked()
    assert call.progress == []
    (late,) = probe.events("dispatch.late")
    assert (late["dispatch"], late["what"]) == (dispatch, what)
    assert len(probe.events("dispatch.cancelled")) == 1
