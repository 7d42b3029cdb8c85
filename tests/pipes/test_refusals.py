"""What HTTP refuses by status is an error response on one connection, and the connection goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from ..support.pipes import pipe
from ..support.probe import Probe, running
from ..support.rows import each
from .refusals import CASES, FULL, LARGEST, OVERLOADED, ROWS, TWICE, Bad, Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
SLOW = {"name": "simple_tool", "arguments": {"delayMs": 5000}}


def check(message: dict[str, Any], row: Row, id: Any = None) -> None:
    """The error of a row. "Error responses MUST include the same ID"; what cannot be read is left out, never null."""
    assert message["error"]["code"] == row.code, message
    assert (message.get("id"), type(message.get("id")), "id" in message) == (id, type(id), id is not None)


@each("session, what, bad", CASES)
async def test_a_refusal_has_its_code_and_id_and_the_connection_goes_on(
    session: str | None, what: str, bad: Bad
) -> None:
    async with running(max_body_bytes=LARGEST) as probe, pipe(probe.engine) as client:
        if session is not None:
            await client.initialize(session)
        await client.send_bytes(bad.line + b"\n")
        check(await client.hear(), bad.row, bad.id)
        assert (await client.call(client.modern("tools/list", id="after")))["tools"]
        assert client.ending is None


@pytest.mark.proves("2026-07-28/stdio/10")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_id_in_flight_and_too_many_requests_are_refused_with_the_id(
    era: str, autojump_clock: MockClock
) -> None:
    async with running(max_in_flight=2) as probe, pipe(probe.engine) as client:
        if era == "legacy":
            await client.initialize()
        ask = client.legacy if era == "legacy" else client.modern
        for id in (5, "5", 5, 6):
            await client.say(ask("tools/call", SLOW, id=id))
        check(await client.hear(), TWICE, 5)
        check(await client.hear(), FULL if era == "legacy" else OVERLOADED, 6)
        assert {repr((await client.hear())["id"]) for _ in range(2)} == {"5", "'5'"}


async def test_what_needs_no_answer_gets_none(probe: Probe) -> None:
    """An error without an id would be taken for one to whatever the client waits for."""
    async with pipe(probe.engine) as client:
        for initialized in (False, True):
            await client.say({"jsonrpc": "2.0", "id": 5, "result": {}})
            await client.say({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "no"}})
            for method in ("notifications/nothing", "notifications/cancelled", "notifications/progress"):
                await client.notify(method, {"requestId": {}})
            await client.call(client.modern("tools/list"))
            if not initialized:
                await client.initialize()
        assert all("error" not in message for message in client.heard)


def test_the_documentation_has_each_of_these_rows() -> None:
    section = DOCUMENT.read_text().split("## On a WebSocket and on standard streams\n")[1].split("\n## ")[0]
    table = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    documented = [Row(int(code), id.strip(), when.strip()) for code, id, when in table]
    assert documented == ROWS
    assert {bad.row for _, _, bad in CASES} | {TWICE, FULL, OVERLOADED} == set(ROWS), "each is tried"
