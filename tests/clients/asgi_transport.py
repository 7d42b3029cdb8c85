"""An httpx2 transport that talks to an ASGI application in memory and streams.

httpx2's own `ASGITransport` collects the whole body before it gives the response back, so no event stream would ever
begin, and it never tells the application that the client has gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import trio

from ..support.http import Answer, exchange


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: Answer, done: trio.Event) -> None:
        self._answer = answer
        self._done = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.parts():
            yield part

    async def aclose(self) -> None:
        self._done.set()


class AsgiTransport(httpx2.AsyncBaseTransport):
    """Each request is one exchange, run by `serve` until its response is closed."""

    def __init__(self, app: Any) -> None:
        self._app = app
        # a request waits here only for the next turn of `serve`
        self._send, self._requests = trio.open_memory_channel[tuple[httpx2.Request, bytes, _Reply]](0)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the exchanges until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for request, body, reply in self._requests:
                nursery.start_soon(self._run, request, body, reply)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request; the body of its response comes as it is sent."""
        reply = _Reply()
        await self._send.send((request, await request.aread(), reply))
        try:
            await reply.came.wait()
        except trio.Cancelled:
            reply.done.set()
            raise
        assert reply.response is not None
        return reply.response

    async def _run(self, request: httpx2.Request, body: bytes, reply: _Reply) -> None:
        async with self._exchange(request, body) as answer:
            reply.response = httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer, reply.done))
            reply.came.set()
            await reply.done.wait()

    def _exchange(self, request: httpx2.Request, body: bytes) -> AbstractAsyncContextManager[Answer]:
        headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in request.headers.raw]
        return exchange(self._app, request.method, request.url.raw_path.decode("ascii"), headers, body)


class _Reply:
    def __init__(self) -> None:
        self.response: httpx2.Response | None = None
        self.came = trio.Event()
        self.done = trio.Event()


@asynccontextmanager
async def in_memory(app: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client whose server is this application."""
    transport = AsgiTransport(app)
    async with trio.open_nursery() as nursery:
        await nursery.start(transport.serve)
        async with httpx2.AsyncClient(transport=transport) as client:
            yield client
        nursery.cancel_scope.cancel()
