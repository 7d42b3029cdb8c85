"""Answers to questions of the server on one connection that carries everything."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from ..support.calls import misuses
from ..support.malformed import MALFORMED, malformed
from ..support.pipes import Pipe, pipe
from ..support.probe import Probe, running
from ..support.rows import each

ASKING = {"name": "elicit_simple_form", "arguments": {}}


async def asked(client: Pipe) -> Any:
    await client.say(client.legacy("tools/call", ASKING, id="it"))
    return (await client.hear_until(lambda message: message.get("method") == "elicitation/create"))[-1]["id"]


@each("transport", ["stdio", "websocket"])
@each("kind", MALFORMED)
async def test_a_malformed_answer_is_refused_and_fails_the_question_at_once(
    kind: str, transport: str, autojump_clock: MockClock
) -> None:
    async with running() as probe, pipe(probe.engine, transport=transport) as client:
        await client.initialize()
        id, began = await asked(client), trio.current_time()
        await client.say(malformed(kind, id))
        result = await client.result_of("it")
        assert trio.current_time() == began
        assert result["isError"]
        assert "The client's answer to elicitation/create is malformed: " in result["content"][0]["text"]
        (refusal,) = [message for message in client.heard if "error" in message]
        assert refusal["error"]["code"] == -32600
        # The id is one of the server's requests: echoed, it would look like the answer to a request of the client.
        assert "id" not in refusal
        assert misuses(probe) == ["malformed answer"]


async def test_a_malformed_answer_is_heard_from_a_client_that_also_speaks_the_modern_era(
    probe: Probe, autojump_clock: MockClock
) -> None:
    """Answers have no `_meta`: the session decides, as the modern era asks nothing on the connection."""
    async with pipe(probe.engine) as client:
        await client.initialize()
        id, began = await asked(client), trio.current_time()
        await client.call(client.modern("tools/list"))
        await client.say(malformed("both", id))
        assert (await client.result_of("it"))["isError"]
        assert trio.current_time() == began
