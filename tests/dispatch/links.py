"""One client on any carrier, of either era, which calls a tool, may want it stopped, and tells what it heard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import trio

from ..pipes.talks import Talk, talking
from ..support.calls import heard, tool_call
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.probe import Probe

Json: TypeAlias = dict[str, Any]

LINKS = ["legacy HTTP", "modern HTTP", "legacy stdio", "modern WebSocket"]
DEADLINE, ERROR = "mcp-probe/deadline", "mcp-probe/error"


@dataclass(frozen=True)
class Call:
    """A call: what of, with which token, and after how many seconds its client wants it stopped."""

    name: str
    arguments: Json
    token: Any = None
    stop_after: float | None = None

    @property
    def meta(self) -> Json:
        return {} if self.token is None else {"progressToken": self.token}


@dataclass(frozen=True)
class Told:
    """What came of it: the messages in order, and how long the last of them took to come, in seconds."""

    messages: list[Json]
    took: float

    @property
    def result(self) -> Json | None:
        """The result, without what the modern era adds to each; None where there was no answer."""
        if not self.messages or "result" not in self.messages[-1]:
            return None
        result: Json = self.messages[-1]["result"]
        meta = {key: value for key, value in result.get("_meta", {}).items() if key.startswith("mcp-probe/")}
        kept = {key: value for key, value in result.items() if key not in ("resultType", "_meta")}
        return {**kept, **({"_meta": meta} if meta else {})}

    @property
    def steps(self) -> list[float]:
        return [item["params"]["progress"] for item in self.messages if item.get("method") == "notifications/progress"]


Link: TypeAlias = Callable[[Call], Any]


@asynccontextmanager
async def linked(probe: Probe, link: str) -> AsyncIterator[Link]:
    """A way to make calls: awaiting one gives what was told."""
    match link:
        case "legacy HTTP":
            yield partial(_by_legacy_http, await probe.client())
        case "modern HTTP":
            yield partial(_by_modern_http, probe.modern())
        case _:
            era, transport = link.lower().split()
            async with talking(probe, era, transport=transport) as talk:
                yield partial(_by_pipe, talk)


async def _by_legacy_http(client: Legacy, call: Call) -> Told:
    params = {"name": call.name, "arguments": call.arguments, **({"_meta": call.meta} if call.meta else {})}
    request, began = client.request("tools/call", params, "it"), trio.current_time()
    async with client.post(request) as answer, trio.open_nursery() as nursery:
        nursery.start_soon(_later, call.stop_after, partial(client.cancel, "it"))
        if answer.headers["content-type"] == "application/json":
            messages = [client.check(await answer.json())]
        else:
            messages = [event.message for event in await client.read(answer)]
        took = trio.current_time() - began
    return Told(messages, took)


async def _by_modern_http(client: Modern, call: Call) -> Told:
    request = tool_call(client, call.name, call.arguments, **call.meta)
    gone, began = trio.Event(), trio.current_time()
    messages: list[Json] = []
    took = 0.0

    async def go() -> None:
        gone.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_later, call.stop_after, go)
        async with client.post(request, gone=gone) as answer:
            if answer.status == 200:
                messages = await heard(client, answer)
            took = trio.current_time() - began
    return Told(messages, took)


async def _by_pipe(talk: Talk, call: Call) -> Told:
    messages: list[Json] = []
    began = took = trio.current_time()
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "it"}}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_later, call.stop_after, partial(talk.client.say, cancelled))
        await talk.client.say(talk.call(call.name, call.arguments, token=call.token))
        # A call that was stopped has no answer to wait for; a little later nothing will come any more.
        patience = trio.move_on_after(1000 if call.stop_after is None else call.stop_after + 60)
        with patience:
            while not messages or "method" in messages[-1]:
                messages.append(await talk.client.hear())
                took = trio.current_time()
    return Told(messages, took - began)


async def _later(seconds: float | None, act: Callable[[], Any]) -> None:
    if seconds is not None:
        await trio.sleep(seconds)
        await act()
