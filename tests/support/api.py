"""Asking the API of a probe in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .http import exchange
from .probe import Probe

LOCAL = {"host": "127.0.0.1:8000"}


async def get(
    probe: Probe, target: str, headers: Mapping[str, str] = LOCAL, method: str = "GET"
) -> tuple[int, str, Any]:
    """The status, the content type and the JSON of an answer."""
    async with exchange(probe.app, method, target, headers) as answer:
        return answer.status, answer.headers["content-type"], await answer.json()


async def page(probe: Probe, target: str) -> Any:
    """The JSON of an answer that must be one."""
    status, kind, value = await get(probe, target)
    assert (status, kind) == (200, "application/json"), value
    return value


async def refusal(probe: Probe, target: str, status: int = 400) -> Any:
    """The problem of an answer that must be one."""
    given, kind, value = await get(probe, target)
    assert (given, kind, value["status"]) == (status, "application/problem+json", status)
    return value


async def lines(probe: Probe, target: str) -> list[Any]:
    """The values of an answer in lines of JSON."""
    async with exchange(probe.app, "GET", target, LOCAL) as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
        return [json.loads(line) for line in (await answer.body()).splitlines()]
