"""One client of either era on a pipe, for tests that treat both alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from ..support.probe import Probe
from .pipes import Slow, slow_pipe

Json = dict[str, Any]


class Talk:
    """A connection with a request of its era. `heard` of `client` has everything in order."""

    def __init__(self, client: Slow, era: str) -> None:
        self.client = client
        self.era = era

    def request(self, method: str, params: Json | None = None, *, id: Any = None, token: Any = None) -> Json:
        """A request."""
        if self.era == "modern":
            meta = {} if token is None else {"progressToken": token}
            return self.client.modern(method, params, meta=meta, id=id)
        said = {**(params or {}), **({} if token is None else {"_meta": {"progressToken": token}})}
        return self.client.legacy(method, said or None, id=id)

    def call(self, name: str, arguments: Json | None = None, *, id: Any = "it", token: Any = None) -> Json:
        """A tool call."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, id=id, token=token)

    def steps(self, count: int = 10, ms: int = 1000, *, id: Any = "it", token: Any = "token") -> Json:
        """A call that reports `count` steps, and takes so long for each."""
        return self.call("progress", {"steps": count, "step_ms": ms}, id=id, token=token)

    def trifle(self, id: Any = "trifle") -> Json:
        """A request that is answered at once."""
        return self.request("tools/call", {"name": "chatty"}, id=id)

    async def hear_for(self, seconds: float) -> list[Json]:
        """What is heard within so many seconds."""
        heard = []
        with trio.move_on_after(seconds):
            while True:
                heard.append(await self.client.hear())
        return heard

    async def answered(self, *requests: Json) -> dict[Any, Json]:
        """Send requests, and hear until each has its response; by id."""
        for request in requests:
            await self.client.say(request)
        found: dict[Any, Json] = {}
        while len(found) < len(requests):
            message = await self.client.hear()
            if "method" not in message:
                assert message["id"] not in found, "answered twice"
                found[message["id"]] = message
        return found


@asynccontextmanager
async def talking(probe: Probe, era: str, *, transport: str = "stdio", **options: Any) -> AsyncIterator[Talk]:
    """A connection on which `initialize` is over, if the era has it."""
    async with slow_pipe(probe, transport=transport, **options) as client:
        if era == "legacy":
            await client.initialize()
        yield Talk(client, era)


def steps_of(messages: list[Json]) -> list[Any]:
    """The progress of notifications, the id of responses."""
    return [message["params"]["progress"] if "method" in message else message["id"] for message in messages]


async def settle() -> None:
    """Let everything happen that can happen now."""
    await wait_all_tasks_blocked()
