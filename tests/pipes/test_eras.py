"""Both eras on one connection, from the first message on: how a client learns what it may speak."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from ..support.legacy import RpcError
from ..support.modern import PREFIX, VERSION
from ..support.pipes import Pipe, pipe
from ..support.probe import Probe
from ..support.shown import newest

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
CALL = {"name": "progress", "arguments": {"steps": 2, "step_ms": 1000}, "_meta": {"progressToken": 7}}


@pytest.mark.proves("2026-07-28/stdio/14", "2026-07-28/versioning/2", "2026-07-28/discover/1")
async def test_a_probe_by_discovery_is_answered_with_what_is_served(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        result = await client.call(client.modern("server/discover"))
        assert result["supportedVersions"] == [VERSION]
        assert (await client.call(client.modern("tools/list")))["tools"]


@pytest.mark.proves("2026-07-28/stdio/15", "2026-07-28/versioning/1")
@pytest.mark.parametrize("asked", ["2099-01-01", "2025-11-25", "2024-11-05", "DRAFT"])
@pytest.mark.parametrize("initialized", [False, True])
async def test_a_probe_with_another_version_is_told_which_are_served(
    asked: str, initialized: bool, probe: Probe
) -> None:
    async with pipe(probe.engine) as client:
        if initialized:
            await client.initialize()
        request = client.modern("server/discover", meta={PREFIX + "protocolVersion": asked})
        with pytest.raises(RpcError) as caught:
            await client.call(request)
        assert (caught.value.code, caught.value.data) == (-32022, {"supported": [VERSION], "requested": asked})
        retried = client.modern("server/discover", meta={PREFIX + "protocolVersion": caught.value.data["supported"][0]})
        assert await client.call(retried)


@pytest.mark.proves("2026-07-28/versioning/7", "2026-07-28/versioning/9")
@pytest.mark.parametrize("revision", LEGACY)
async def test_initialize_selects_a_legacy_revision_for_this_connection_alone(revision: str, probe: Probe) -> None:
    """After a failed probe as well, which is how a client of both eras falls back."""
    async with pipe(probe.engine) as client, pipe(probe.engine) as other:
        with pytest.raises(RpcError):
            await client.call(client.modern("server/discover", meta={PREFIX + "protocolVersion": "2099-01-01"}))
        assert (await client.initialize(revision))["protocolVersion"] == revision
        listed = await client.call(client.legacy("tools/list"))
        assert "resultType" not in listed
        with pytest.raises(RpcError) as caught:
            await other.call(other.legacy("tools/list"))
        assert (caught.value.code, "_meta" in caught.value.message) == (-32602, True)


@pytest.mark.proves("2026-07-28/versioning/6", "2026-07-28/versioning/8")
async def test_a_modern_request_in_a_session_is_served_statelessly(probe: Probe, autojump_clock: MockClock) -> None:
    """Both eras side by side on one connection, with the same progress token."""
    async with pipe(probe.engine) as client:
        await client.initialize("2025-06-18")
        await client.say(client.legacy("tools/call", CALL, id="old"))
        await client.say(client.modern("tools/call", {**CALL, "_meta": {}}, meta={"progressToken": 7}, id="new"))
        await _both(client)
        modern = client.modern("tools/call", {"name": "elicit_form", "arguments": {}}, capabilities={}, id="cannot")
        with pytest.raises(RpcError) as caught:
            await client.call(modern)
        assert caught.value.code == -32021, "what the session declared is nothing to a modern request"
        served = {record.request_id: (record.era, record.revision) for record in newest(probe.engine.records, 9)}
        assert (served["old"], served["new"]) == (("legacy", "2025-06-18"), ("modern", VERSION))


async def _both(client: Pipe) -> None:
    answers = {}
    while len(answers) < 2:
        message = await client.hear()
        if "method" not in message:
            answers[message["id"]] = message["result"]
    assert ("resultType" in answers["old"], "resultType" in answers["new"]) == (False, True)
    told = [message["params"]["progress"] for message in client.heard if "method" in message]
    assert told == [1, 1, 2, 2]
