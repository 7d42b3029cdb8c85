"""One connection to the server: address, handshake, registration, messages both ways, and an orderly end.

connection  can be cancelled until it is open; from then on it is shielded, and `_notice` is set
  reader    of trio-websocket: frames
  reading   messages
  writing   messages; no other task sends any
  watch     pings a server that may have died unnoticed
  leave     closes in order when the host is to end
  register  once, at the beginning
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import trio
from pydantic import ValidationError
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream
from wsproto.utilities import ProtocolError

from ..core.exceptions import first, reason
from ..wire.jsonrpc import MalformedError, clip, parse
from ..wire.toolhost import SUBPROTOCOL, HostCode, RegisterResult
from .context import HostRefusedError
from .conversation import Conversation
from .tool import HostOffer

CONNECT_S: Final = 10.0
REGISTER_S: Final = 30.0
GOODBYE_S: Final = 2.0
PING_EVERY_S: Final = 20.0
# For a pong, and for a message to be taken: 4 MiB take half a minute at 1 Mbit/s.
PATIENCE_S: Final = 60.0
# Four times what a server with default settings sends.
_MAX_FRAME: Final = 16 * 1024 * 1024
_TRY_LATER: Final = frozenset({408, 425, 429})
SHORTEST_S: Final = 0.5
LONGEST_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Address:
    """A `ws://` or `wss://` URL, taken apart. `authority` is the `Host` header."""

    host: str
    port: int
    authority: str
    resource: str
    tls: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        """Raises `HostRefusedError` for what is no such URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise HostRefusedError(f"{url!r} is no URL: {error}") from None
        if parts.scheme not in {"ws", "wss"} or not parts.hostname or parts.username or parts.fragment:
            raise HostRefusedError(f"{url!r} is no URL such as ws://127.0.0.1:8000/toolhost")
        tls = parts.scheme == "wss"
        usual = 443 if tls else 80
        resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(parts.hostname, port or usual, parts.netloc, resource, tls)

    async def connect(self, context: ssl.SSLContext | None) -> trio.abc.Stream:
        """Open a connection, which the caller then owns.

        `context` replaces the system's authorities. Raises `OSError` and `trio.BrokenResourceError`.
        """
        if not self.tls:
            return await trio.open_tcp_stream(self.host, self.port)
        stream = await trio.open_ssl_over_tcp_stream(
            self.host, self.port, https_compatible=True, ssl_context=context or ssl.create_default_context()
        )
        try:
            # An untrusted certificate is found before anything is sent.
            await stream.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream


class EndReason:
    """Why a connection is over, or never began. The first reason counts.

    `refused`: trying again would not help. `name_taken`: another host has the name now.
    """

    def __init__(self) -> None:
        self.why = ""
        self.refused = False
        self.name_taken = False

    def because(self, why: str, *, refused: bool = False, name_taken: bool = False) -> None:
        if not self.why:
            self.why, self.refused, self.name_taken = why, refused, name_taken


class ServerConnection:
    """One connection of a host. `run` is the whole of it, from the first packet to the last.

    `registered` is called with the answer to the registration, before the next message is read.
    """

    def __init__(
        self, conversation: Conversation, offer: HostOffer, registered: Callable[[RegisterResult], None]
    ) -> None:
        self._conversation = conversation
        self._offer = offer
        self._registered = registered
        self._ended = EndReason()
        self._open = False
        self._read_over = trio.Event()
        self._talking = trio.CancelScope()
        self._notice = trio.Event()

    async def _close(self, websocket: WebSocketConnection) -> None:
        """At most `GOODBYE_S` seconds, with a handshake."""
        try:
            with trio.move_on_after(GOODBYE_S):
                await websocket.aclose(1000)
                # `aclose` returns at once if the server has begun to close, before its answer has come.
                await self._read_over.wait()
        finally:
            self._ended.because("the server closes the connection and reads nothing")
            self._talking.cancel()

    async def run(self, address: Address, secret: str, context: ssl.SSLContext | None) -> EndReason:
        """Connect, register, and pass messages on until the connection is over; returns the reason.

        A cancellation closes the connection in order, within `GOODBYE_S`.
        """
        stream = await self._connect(address, context)
        if stream is None:
            return self._ended
        try:
            await self._over(stream, address, secret)
        finally:
            self._conversation.close()
            await trio.aclose_forcefully(stream)
        return self._ended

    async def _connect(self, address: Address, context: ssl.SSLContext | None) -> trio.abc.Stream | None:
        try:
            with trio.fail_after(CONNECT_S):
                return await address.connect(context)
        except (OSError, trio.BrokenResourceError) as error:
            self._ended.because(f"cannot connect: {reason(error)}")
        except trio.TooSlowError:
            self._ended.because(f"cannot connect within {CONNECT_S:g} s")
        return None

    async def _over(self, stream: trio.abc.Stream, address: Address, secret: str) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tell_when_cancelled)
                with trio.CancelScope() as connection:
                    async with trio.open_nursery() as reader:
                        with trio.move_on_after(CONNECT_S) as handshake:
                            websocket = await wrap_client_stream(
                                reader,
                                _Ending(stream, partial(self._cut, handshake)),  # type: ignore[arg-type]  # any stream will do
                                address.authority,
                                address.resource,
                                subprotocols=[SUBPROTOCOL],
                                extra_headers=[(b"Authorization", f"Bearer {secret}".encode())],
                                max_message_size=_MAX_FRAME,
                            )
                        if not handshake.cancelled_caught:
                            # From here on a cancellation is a notice: no frame is cut, and the end is announced.
                            self._open = connection.shield = True
                            await self._talk(websocket)
                        reader.cancel_scope.cancel()
                nursery.cancel_scope.cancel()
        except* ConnectionRejected as group:
            self._judge(group)
        except* (ConnectionClosed, ProtocolError):
            # The reader raises this if it answers on a closed connection.
            self._ended.because("the connection broke")
        self._ended.because(f"no answer to the handshake within {CONNECT_S:g} s")

    def _cut(self, handshake: trio.CancelScope) -> None:
        """After the handshake the reader gives the reason."""
        if not self._open:
            self._ended.because("the connection was closed during the handshake")
            handshake.cancel()

    async def _tell_when_cancelled(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._notice.set()

    def _judge(self, group: BaseExceptionGroup[ConnectionRejected]) -> None:
        rejected = first(group)
        assert isinstance(rejected, ConnectionRejected)
        status = rejected.status_code
        why = f"the server answered with status {status}{_detail(rejected.body)}"
        self._ended.because(why, refused=status < 500 and status not in _TRY_LATER)

    async def _talk(self, websocket: WebSocketConnection) -> None:
        if websocket.subprotocol != SUBPROTOCOL:
            self._ended.because("what answers there is no endpoint for tool hosts", refused=True)
            self._read_over.set()
            await self._close(websocket)
            return
        with self._talking:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, websocket)
                nursery.start_soon(self._watch, websocket)
                nursery.start_soon(self._leave, websocket)
                nursery.start_soon(self._register, websocket)
                await self._read(websocket)
                nursery.cancel_scope.cancel()

    async def _read(self, websocket: WebSocketConnection) -> None:
        while True:
            try:
                message = await websocket.get_message()
            except ConnectionClosed as closed:
                self._ended.because(f"the connection is lost{_shown(closed)}")
                self._read_over.set()
                return
            self._conversation.receive(message)

    async def _write(self, websocket: WebSocketConnection) -> None:
        while True:
            make, written = await self._conversation.outbox.next()
            try:
                await self._send(websocket, make())
            except trio.TooSlowError:
                self._ended.because(f"the server took nothing for {PATIENCE_S:g} s")
                await self._close(websocket)
                return
            except ConnectionClosed:
                # The reader gives the reason, unless it waits because the server does not read.
                await self._close(websocket)
                return
            finally:
                written.set()

    async def _send(self, websocket: WebSocketConnection, message: bytes | None) -> None:
        if message is not None:
            with trio.fail_after(PATIENCE_S):
                await websocket.send_message(message.decode())

    async def _watch(self, websocket: WebSocketConnection) -> None:
        while True:
            await trio.sleep(PING_EVERY_S)
            try:
                with trio.fail_after(PATIENCE_S):
                    await websocket.ping()
            except trio.TooSlowError:
                self._ended.because(f"the server answered no ping for {PATIENCE_S:g} s")
                await self._close(websocket)
                return
            except ConnectionClosed:
                await self._close(websocket)
                return

    async def _leave(self, websocket: WebSocketConnection) -> None:
        await self._notice.wait()
        await self._close(websocket)

    async def _register(self, websocket: WebSocketConnection) -> None:
        with trio.move_on_after(REGISTER_S) as patience:
            async with self._offer.changing:
                answer = await self._conversation.ask("host.register", self._offer.registration(), self._accept)
        if patience.cancelled_caught:
            self._ended.because(f"the server did not answer host.register within {REGISTER_S:g} s")
        elif answer is not None and answer.error is not None:
            self._refuse(answer.error)
        if self._ended.why:
            await self._close(websocket)

    def _accept(self, result: Mapping[str, Any]) -> None:
        registered = read_registered(result)
        if registered is None:
            self._ended.because("the server's answer to host.register is not what the protocol defines", refused=True)
            return
        self._conversation.message_bytes = registered.limits.message_bytes
        self._registered(registered)

    def _refuse(self, error: Mapping[str, Any]) -> None:
        code, taken = error["code"], error["code"] == HostCode.NAME_TAKEN
        why = f"the server refused the registration: {clip(error['message'], 500)} (code {code})"
        self._ended.because(why, refused=not taken and code != HostCode.NOT_NOW, name_taken=taken)


class _Ending(trio.abc.Stream):
    """Calls `over` at the end of the stream: trio-websocket would wait for the end of its handshake."""

    def __init__(self, stream: trio.abc.Stream, over: Callable[[], None]) -> None:
        self._stream = stream
        self._over = over

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            self._over()
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        try:
            data = await self._stream.receive_some(max_bytes)
        except trio.BrokenResourceError:
            self._over()
            raise
        if not data:
            self._over()
        return data


def read_registered(result: Mapping[str, Any]) -> RegisterResult | None:
    """None for a malformed result."""
    try:
        return RegisterResult.model_validate(result)
    except ValidationError:
        return None


def _shown(closed: ConnectionClosed) -> str:
    if closed.reason is None:
        return ""
    return f" ({closed.reason.code}{': ' + clip(closed.reason.reason) if closed.reason.reason else ''})"


def _detail(body: bytes | None) -> str:
    try:
        problem: Any = parse(body or b"", max_depth=8)
    except MalformedError:
        return ""
    detail = problem.get("detail") if isinstance(problem, dict) else None
    return f": {clip(detail, 200)}" if isinstance(detail, str) and detail.isprintable() else ""


class Backoff:
    """Waits that double from `SHORTEST_S` to `LONGEST_S`, each shortened by chance to as little as half.

    Chance (`jitter`: 0 to 1) keeps hosts from coming back in step after an absence of their server.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._next_s = 2 * SHORTEST_S

    def wait_s(self) -> float:
        longest, self._next_s = self._next_s, min(LONGEST_S, 2 * self._next_s)
        return longest * (1 + self._jitter()) / 2

    def reset(self) -> None:
        """The attempt was successful: begin with short waits again."""
        self._next_s = 2 * SHORTEST_S
