"""One message of a client: its sender, its transport, and the recorder of its effects."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...log.context import Recorder
from ...log.events import ClientMisuse, MessageRefused
from ...wire.errors import Code, McpError, Refusal


class ClientInfo(Struct, frozen=True):
    """The name and the version in a client's messages; each is empty where it is missing."""

    name: str = ""
    version: str = ""


_UNNAMED: Final = ClientInfo()
# The legacy era answers a request with one of these errors with HTTP 200.
_REFUSALS: Final = {
    Code.METHOD_NOT_FOUND: Refusal.METHOD_NOT_FOUND,
    Code.INVALID_PARAMS: Refusal.INVALID_PARAMS,
    Code.INVALID_REQUEST: Refusal.INVALID_REQUEST,
}


class RequestContext(Struct):
    """Made by the endpoint for each message, and completed by the message's era.

    `recorder` is bound to the exchange and to the session; its cause is the `message.received`. `transport` is `http`,
    `websocket` or `stdio`. `origin` is the scheme and authority of this server's pages as the client reaches them, such
    as `http://127.0.0.1:8000`, and empty where it cannot reach them. `holder` is the client address by which shares of
    limits count; None for a client without a share. `seen` is the stream and the position of the last event that the
    client has (`Last-Event-ID`). `call` is the id of the call that the request will begin, where it is known before.
    """

    recorder: Recorder
    transport: str = "http"
    origin: str = ""
    holder: str | None = None
    seen: tuple[str, int] | None = None
    client: ClientInfo = _UNNAMED
    call: str | None = None

    def concerns(self, call: Recorder) -> None:
        """The message is about this call, and its answer is too."""
        self.recorder = self.recorder.bind(call=call.context.call, task=call.context.task)

    def misuse(self, what: str, clause: str, detail: str = "") -> None:
        """Record that the message violates `clause`, or cannot have an effect."""
        self.recorder.append(ClientMisuse(what, clause, detail))

    def refused(self, error: McpError) -> McpError:
        """Record that the message is answered with this error before any method handles it; returns the error."""
        self.recorder.append(MessageRefused(_REFUSALS[Code(error.code)].name, error.message))
        return error
