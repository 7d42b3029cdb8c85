"""A `subscriptions/listen` stream as its client hears it, and a reader that is as slow as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from .http import Answer
from .modern import SUBSCRIPTION_ID, Modern

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@dataclass
class Ear:
    """One open subscription. `heard` has the notifications, the acknowledgement first, `result` what ended it.

    Each message is checked: by the schema, that it carries the id of the subscription with its JSON type, that the
    acknowledgement is the first and that nothing follows the result.
    """

    client: Modern
    id: Any
    answer: Answer
    heard: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    over: bool = False
    _changed: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    @property
    def honoured(self) -> dict[str, Any]:
        """The filter in the acknowledgement."""
        return dict(self.heard[0]["params"]["notifications"])

    @property
    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """What came after the acknowledgement: method and params, without the metadata that was checked."""
        return [(message["method"], bare(message["params"])) for message in self.heard[1:]]

    @property
    def methods(self) -> list[str]:
        """The methods of what came after the acknowledgement."""
        return [method for method, _ in self.told]

    async def wait(self, ready: Callable[[], bool]) -> None:
        """Wait for a message, or the end, that makes `ready` true."""
        while not ready():
            await self._changed.park()

    async def wait_told(self, count: int) -> None:
        """Wait until so many notifications have followed the acknowledgement."""
        await self.wait(lambda: len(self.heard) > count)

    async def wait_over(self) -> None:
        """Wait for the end of the response."""
        await self.wait(lambda: self.over)

    async def read(self) -> None:
        """Hear everything to the end of the response."""
        async for event in self.answer.events():
            assert (event.id, event.retry) == (None, None), "a stream that cannot be resumed has no ids"
            self._hear(event.message)
            self._changed.unpark_all()
        self.over = True
        self._changed.unpark_all()

    def _hear(self, message: dict[str, Any]) -> None:
        assert self.result is None, "nothing follows the result"
        if "method" in message:
            assert (message["method"] == ACKNOWLEDGED) == (not self.heard), "the acknowledgement comes first, once"
            self.heard.append(self.client.check(message))
            meta = message["params"]["_meta"]
        else:
            self.result = self.client.result(message, "subscriptions/listen", self.id)
            meta = self.result["_meta"]
        assert meta[SUBSCRIPTION_ID] == self.id
        assert type(meta[SUBSCRIPTION_ID]) is type(self.id)


def bare(params: dict[str, Any]) -> dict[str, Any]:
    """Params, or a result, without what every message has: `_meta` and `resultType`."""
    return {key: value for key, value in params.items() if key not in ("_meta", "resultType")}


@asynccontextmanager
async def listening(client: Modern, *, id: Any = None, **asked: Any) -> AsyncIterator[Ear]:
    """Open a subscription with this filter and hear it meanwhile; leaving the block hangs up."""
    request = client.request("subscriptions/listen", {"notifications": asked}, id=id)
    async with client.post(request) as answer, trio.open_nursery() as nursery:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        ear = Ear(client, request["id"], answer)
        nursery.start_soon(ear.read)
        await ear.wait(lambda: bool(ear.heard))
        yield ear
        nursery.cancel_scope.cancel()


class Reluctant:
    """An application whose response bodies are taken only while its client reads; at first it does not."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._reads = False
        self._changed = trio.lowlevel.ParkingLot()

    def read(self) -> None:
        """The client reads from now on."""
        self._reads = True
        self._changed.unpark_all()

    def pause(self) -> None:
        """The client does not read from now on."""
        self._reads = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""

        async def reluctantly(event: Any) -> None:
            while event["type"] == "http.response.body" and not self._reads:
                await self._changed.park()
            await send(event)

        await self._app(scope, receive, reluctantly)


async def settle() -> None:
    """Let everything happen that can happen now."""
    await wait_all_tasks_blocked()
