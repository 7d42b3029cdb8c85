"""One message of a client: who sent it, by which transport, and the recorder of what belongs to it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...log.context import Recorder
from ...log.events import ClientMisuse, MessageRefused
from ...wire.errors import Code, McpError, Refusal


class ClientInfo(Struct, frozen=True):
    """The name and the version that a client gives; empty where it gives none."""

    name: str = ""
    version: str = ""


_UNNAMED: Final = ClientInfo()
# The legacy era answers such a request with HTTP 200.
_REFUSALS: Final = {
    Code.METHOD_NOT_FOUND: Refusal.METHOD_NOT_FOUND,
    Code.INVALID_PARAMS: Refusal.INVALID_PARAMS,
    Code.INVALID_REQUEST: Refusal.INVALID_REQUEST,
}


class RequestContext(Struct):
    """Made by the endpoint for each message, and completed by the era that the message belongs to.

    `recorder` is bound to the exchange and to the session; its cause is the `message.received`. `transport` is `http`,
    `websocket` or `stdio`. `origin` is scheme and authority under which the client reaches this server's pages, empty
    where it cannot. `holder` is the client address by which shares of limits count, None where they do not. `seen` is
    the stream and the position of the last event that the client has seen (`Last-Event-ID`). `call` is the id of the
    call that the request will begin, where that is known before.
    """

    recorder: Recorder
    transport: str = "http"
    origin: str = ""
    holder: str | None = None
    seen: tuple[str, int] | None = None
    client: ClientInfo = _UNNAMED
    call: str | None = None

    def concerns(self, call: Recorder) -> None:
        """The message turns out to be about this call: its answer is about the same one."""
        self.recorder = self.recorder.bind(call=call.context.call, task=call.context.task)

    def misuse(self, what: str, clause: str, detail: str = "") -> None:
        """Record that the message does what `clause` forbids, or what cannot have an effect."""
        self.recorder.append(ClientMisuse(what, clause, detail))

    def refused(self, error: McpError) -> McpError:
        """Record that the message is answered with this error before any method handles it; returns the error."""
        self.recorder.append(MessageRefused(_REFUSALS[Code(error.code)].name, error.message))
        return error
