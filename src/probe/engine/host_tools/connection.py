"""One connection of a tool host: its messages in, its messages out, and its dispatches.

serve         ends when the host has gone, was replaced, broke the rules of the wire, or the server has drained
  _write      the one writer (`Outgoing`)
  _watch_…    ends a connection without registration in time
  give_back   frees the places of cancelled dispatches without an answer (`dispatcher`)
  _stop       waits for the drain of the server
  _read       takes one message after the other
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import trio

from ...core.tool_host import HostState, HostViolationError, ToolHost
from ...log.context import Recorder
from ...log.events import (
    HostClosed,
    HostConnected,
    HostMessage,
    HostMisuse,
    HostRegistered,
    HostUpdated,
    LimitReached,
    essentials,
)
from ...log.redaction import REDACTED
from ...wire.errors import Code
from ...wire.jsonrpc import (
    Json,
    MalformedError,
    Message,
    Request,
    Response,
    classify,
    clip,
    encode,
    error_response,
    is_id,
    parse,
    result_response,
)
from ...wire.toolhost import (
    VERSION,
    HostCode,
    HostLimits,
    InvalidMessageError,
    RegisterParams,
    RegisterResult,
    UpdateParams,
    read_params,
)
from ..catalogue.tool import Tool
from ..engine import Engine
from ..streams.stream import stored
from .dispatcher import DispatchedCall, Dispatcher, MisuseError, Outgoing
from .hosted import NameTakenError, ToolsError, build

GOING_AWAY, POLICY = 1001, 1008

# Enough to see the faults of a host; a host with more does not fill the log.
_MOST_MISUSE = 100
_MAX_DETAIL = 500
# The time for the last messages when the server ends: `tool.cancel` for each cancelled call.
_FLUSH_S = 2.0
# `tool.progress` is counted instead, and `ping` has no content.
_UNRECORDED = frozenset({"tool.progress", "ping"})


class HostWire(Protocol):
    """One WebSocket, owned by the endpoint that accepted it. `receive` and `send` are each called by one task."""

    async def receive(self) -> bytes | None: ...

    async def send(self, message: bytes) -> None:
        """Send one message; returns when the socket has taken it. Raises `OSError` when it will not."""


def _leniently(body: bytes) -> Any:
    """Read a refused message as far as possible: with numbers such as NaN, broken text, too many levels."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


class RefusedMessageError(Exception):
    """A request of the host is answered with this error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class HostConnection:
    """One connection. `ending` is the close code and the reason if the server ends it."""

    def __init__(self, engine: Engine, request: Recorder, client: str, peer: str | None = None) -> None:
        settings = engine.settings
        self.label = f"h{request.context.exchange}"
        self.ending: tuple[int, str] | None = None
        self._engine = engine
        # Its cause becomes the `host.connected`, in `serve`.
        self._recorder = request.bind(connection=self.label)
        # The recorder with the host's latest message as cause.
        self._message = self._recorder
        self._client = client
        self._peer = peer
        self._settings = settings
        self._name: str | None = None
        self._misused = 0
        self._machine: ToolHost[DispatchedCall] = ToolHost(
            max_dispatches=settings.limits.max_host_dispatches, linger_s=settings.toolhost_linger_s
        )
        self._outgoing = Outgoing(settings.limits.host_queue_bytes)
        self._dispatcher = Dispatcher(self.label, self._machine, self._outgoing, engine.clock, settings.limits)
        self._reading = trio.CancelScope()

    async def serve(self, wire: HostWire) -> None:
        """Serve the connection until it is over, or until the server closes it for the reason in `ending`."""
        connected = self._recorder.append(HostConnected(self._client, self._peer))
        self._recorder = self._message = self._recorder.caused_by(connected)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, wire)
            nursery.start_soon(self._watch_registration)
            nursery.start_soon(self._dispatcher.give_back)
            nursery.start_soon(self._stop)
            try:
                with self._reading:
                    await self._read(wire)
            finally:
                self._let_go()
            if self.ending is not None:
                with trio.move_on_after(_FLUSH_S):
                    await self._outgoing.wait_empty()
            nursery.cancel_scope.cancel()

    def closed(self, code: int | None, by: str) -> None:
        dispatcher = self._dispatcher
        self._recorder.append(HostClosed(self._name, code, by, dispatcher.failed, dispatcher.late))

    def _replace(self) -> None:
        self._end(POLICY, "replaced by a newer connection of this host")

    def _end(self, code: int, why: str) -> None:
        if self.ending is None:
            self.ending = (code, why)
            self._let_go()
            self._reading.cancel()

    def _let_go(self) -> None:
        if self._machine.state is HostState.CLOSED:
            return
        self._dispatcher.lose(self.ending[1] if self.ending else "its connection ended")
        if self._name is not None:
            self._engine.hosted.release(self._name, self.label)

    async def _stop(self) -> None:
        await self._engine.drained.wait()
        self._end(GOING_AWAY, self._engine.ending)

    async def _watch_registration(self) -> None:
        await trio.sleep(self._settings.toolhost_register_s)
        if self._machine.state is HostState.CONNECTED:
            self._end(POLICY, f"not registered within {self._settings.toolhost_register_s:g} s")

    async def _write(self, wire: HostWire) -> None:
        try:
            await self._outgoing.write(wire.send)
        except OSError:
            # The reader finds the end too, with its reason.
            await trio.sleep_forever()

    async def _read(self, wire: HostWire) -> None:
        # A message after the end is dropped.
        while (message := await wire.receive()) is not None and self.ending is None:
            self._take(message)
            await self._outgoing.wait_room()

    def _take(self, body: bytes) -> None:
        try:
            value = parse(body, max_depth=self._settings.limits.max_json_depth)
        except MalformedError as error:
            self._message = self._recorder
            self._misuse("not JSON", str(error))
            self._refuse(_leniently(body), str(error), Code.PARSE_ERROR)
            return
        self._message = self._record(value, body)
        try:
            self._react(classify(value))
        except MalformedError as error:
            self._misuse("no JSON-RPC message", str(error))
            self._refuse(value, str(error), Code.INVALID_REQUEST)
        except MisuseError as error:
            self._misuse(error.what, str(error))

    def _refuse(self, value: Any, why: str, code: Code) -> None:
        """Answer a malformed message, or take it as the answer to the dispatch with its id."""
        id = value.get("id") if isinstance(value, dict) else None
        if not is_id(id) or ("method" not in value and self._dispatcher.unreadable(id, why)):
            return
        if "method" in value or not {"result", "error"} & value.keys():
            self._send(error_response(id, {"code": int(code), "message": why}))

    def _react(self, message: Message) -> None:
        if isinstance(message, Response):
            self._dispatcher.answer(message)
        elif isinstance(message, Request):
            self._answer(message)
        elif message.method == "tool.progress":
            self._dispatcher.progress(message.params)
        else:
            raise MisuseError("unknown notification", clip(message.method))

    def _answer(self, message: Request) -> None:
        try:
            self._send(result_response(message.id, self._result(message)))
        except RefusedMessageError as error:
            self._send(error_response(message.id, {"code": error.code, "message": str(error)}))
            self._misuse(f"{clip(message.method)} refused", str(error))

    def _result(self, message: Request) -> Json:
        try:
            if message.method == "ping":
                return {}
            if message.method == "host.register":
                return self._register(read_params(RegisterParams, message.params))
            if message.method == "host.update":
                return self._update(read_params(UpdateParams, message.params))
        except (InvalidMessageError, ToolsError) as error:
            limit = error.limit if isinstance(error, ToolsError) else None
            if limit is None:
                raise RefusedMessageError(Code.INVALID_PARAMS, f"Invalid params: {error}") from None
            self._message.append(LimitReached(limit, getattr(self._settings.limits, limit)))
            raise RefusedMessageError(HostCode.LIMIT, str(error)) from None
        except HostViolationError as error:
            why = f"{message.method}: not before host.register ({error})"
            raise RefusedMessageError(HostCode.NOT_NOW, why) from None
        raise RefusedMessageError(Code.METHOD_NOT_FOUND, f"Method not found: {clip(message.method)}")

    def _register(self, params: RegisterParams) -> Json:
        if self._machine.state is not HostState.CONNECTED:
            raise RefusedMessageError(HostCode.NOT_NOW, "host.register: this connection has registered already")
        tools = build(params.name, params.tools, self._settings, self._dispatcher.run)
        try:
            replaced = self._engine.hosted.register(params.name, params.instance, self.label, self._replace, tools)
        except NameTakenError:
            why = f"The name {params.name} is taken by another host that is connected"
            raise RefusedMessageError(HostCode.NAME_TAKEN, why) from None
        self._machine.register()
        self._name = self._dispatcher.host = params.name
        self._message.append(HostRegistered(params.name, params.version, params.library, (*tools,), replaced))
        return self._registered(params.name, tools)

    def _update(self, params: UpdateParams) -> Json:
        self._machine.update()
        assert self._name is not None, "a registered host has a name"
        tools = build(self._name, params.tools, self._settings, self._dispatcher.run)
        self._engine.hosted.update(self._name, tools)
        self._message.append(HostUpdated(self._name, (*tools,)))
        return self._registered(self._name, tools)

    def _registered(self, name: str, tools: Mapping[str, Tool]) -> Json:
        limits = self._settings.limits
        bounds = HostLimits(
            dispatches=limits.max_host_dispatches, message_bytes=limits.max_body_bytes, tools=limits.max_host_tools
        )
        return RegisterResult(protocol=VERSION, host=name, tools=[*tools], limits=bounds).dump()

    def _send(self, message: Json) -> None:
        body = encode(message)
        self._outgoing.send(body, reply=True)
        if message.get("result") != {}:
            self._message.append(HostMessage("sent", *essentials(message), stored(message, body)))

    def _record(self, value: Any, body: bytes) -> Recorder:
        shown = _without_instance(value)
        rpc, method, id = essentials(value)
        dispatch = self._dispatcher.find(id) if rpc in ("response", "error") else None
        recorder = self._recorder if dispatch is None else dispatch.call.recorder.caused_by(dispatch.call.sent)
        if method in _UNRECORDED:
            return recorder
        kept = stored(shown, body if shown is value else encode(shown))
        return recorder.having(HostMessage("received", rpc, method, id, kept))

    def _misuse(self, what: str, detail: str) -> None:
        self._misused += 1
        if self._misused <= _MOST_MISUSE:
            self._message.append(HostMisuse(what, clip(detail, _MAX_DETAIL)))


def _without_instance(value: Any) -> Any:
    """A message for the log without the `instance`: a reader of the log could take over the host's name with it."""
    if isinstance(value, list):
        return [_without_instance(item) for item in value]
    params = value.get("params") if isinstance(value, dict) else None
    if not isinstance(params, dict) or "instance" not in params:
        return value
    return {**value, "params": {**params, "instance": REDACTED}}
