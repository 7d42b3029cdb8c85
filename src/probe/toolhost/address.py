"""The address of a server, and a stream to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import trio

from .errors import HostRefusedError


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

        With TLS, by this context or else by the system's authorities. Raises `OSError` and `trio.BrokenResourceError`.
        """
        if not self.tls:
            return await trio.open_tcp_stream(self.host, self.port)
        stream = await trio.open_ssl_over_tcp_stream(
            self.host, self.port, https_compatible=True, ssl_context=context or ssl.create_default_context()
        )
        try:
            # At once, so that a certificate which is not trusted is found before anything is sent.
            await stream.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream


def reason(error: BaseException) -> str:
    """The innermost cause of an error of a connection, in a few words."""
    while True:
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__
        if inner is None:
            return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        error = inner
