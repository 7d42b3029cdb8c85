"""Pings to a client (2025-11-25 basic/utilities/ping: "Implementations SHOULD periodically issue pings")."""

from __future__ import annotations

from functools import partial

import trio

from ...log.context import Recorder
from ...settings import Settings
from ...wire.jsonrpc import RequestId, notification, request
from ..catalogue.tool import ClientRequestError
from ..sessions import Session
from ..streams.outbox import send
from ..streams.stream import Stream


def start_pinging(session: Session, settings: Settings) -> None:
    """Send pings from now on, unless the settings turn them off or they are sent already."""
    if settings.ping_interval_s > 0 and session.ping is None:
        session.ping = scope = trio.CancelScope()
        session.submit(partial(_keep_pinging, session, settings, scope))


async def _keep_pinging(session: Session, settings: Settings, scope: trio.CancelScope) -> None:
    """Send pings on the session's GET stream while a connection reads it. Owned by the session; ends with it."""
    with scope:
        while True:
            await trio.sleep(settings.ping_interval_s)
            stream = session.standalone
            if stream is not None and stream.reader is not None:
                await _ping(session, stream, settings.client_ping_s)


async def _ping(session: Session, stream: Stream, timeout_s: float) -> None:
    def put(id: RequestId) -> Recorder | None:
        return send(session.recorder, stream, request(id, "ping", None))

    def withdraw(id: RequestId, reason: str) -> None:
        if not stream.replay.closed:
            params = {"requestId": id, "reason": reason}
            send(session.recorder, stream, notification("notifications/cancelled", params))

    try:
        await session.client_requests.ask("ping", put, withdraw, timeout_s)
    except ClientRequestError as error:
        session.misuse("ping not answered", "2025-11-25 basic/utilities/ping: MUST respond promptly", str(error))
