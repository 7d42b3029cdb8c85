"""hypercorn on trio with nothing behind it: the same answers without a protocol, the most that hypercorn allows."""

from __future__ import annotations

import gc
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import trio
from hypercorn.config import Config, Sockets
from hypercorn.trio import serve

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON = [(b"content-type", b"application/json"), (b"mcp-session-id", b"bare")]
_EVENTS = [(b"content-type", b"text/event-stream")]
_TICK_S = 2.0
_ANSWER = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x" * 1024}]}}, separators=(",", ":")
).encode()


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer everything alike, but `progress` and a subscription with a stream."""
    body = b""
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    if b'"name":"progress"' in body:
        await _progress(json.loads(body)["params"], send)
    elif b'"method":"subscriptions/listen"' in body:
        await _listen(json.loads(body)["params"]["notifications"], send)
    else:
        headers = [*_JSON, (b"content-length", b"%d" % len(_ANSWER))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _ANSWER, "more_body": False})


async def _progress(params: dict[str, Any], send: Send) -> None:
    steps, step_s = params["arguments"]["steps"], params["arguments"]["step_ms"] / 1000
    await send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
    start = trio.current_time()
    for step in range(1, steps + 1):
        await trio.sleep_until(start + step * step_s)
        report = {"progressToken": params["_meta"]["progressToken"], "progress": step, "total": steps}
        await _notify(send, "progress", report)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _listen(wanted: dict[str, Any], send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
    await _notify(send, "subscriptions/acknowledged", {"notifications": wanted})
    while True:
        await trio.sleep(_TICK_S - time.time() % _TICK_S)
        await _notify(send, "resources/updated", {"uri": wanted["resourceSubscriptions"][0]})


async def _notify(send: Send, what: str, params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params}
    data = b"data: " + json.dumps(message, separators=(",", ":")).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": data, "more_body": True})


class _Listening(Config):
    """Announces the port once the sockets are there."""

    def create_sockets(self) -> Sockets:
        sockets = super().create_sockets()
        sys.stdout.write(f"http://127.0.0.1:{sockets.insecure_sockets[0].getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        return sockets


def main() -> None:
    """Serve until killed."""
    # As the server that is compared with this one does: the difference is to be its code, not the collector.
    gc.freeze()
    gc.set_threshold(10_000, 1, 4_000)
    logging.disable()
    config = _Listening()
    config.bind = ["127.0.0.1:0"]
    config.keep_alive_max_requests = 10**9
    # On a busy machine the first of 256 clients waits longer than the default until the last one is there.
    config.keep_alive_timeout = 60
    config.backlog = 2048
    trio.run(partial(serve, cast("Any", app), config))


main()
