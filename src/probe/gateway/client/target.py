"""The endpoint to connect to, with the headers of each request."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import trio

from .response import Headers

H2: TypeAlias = Literal["auto", "always", "never"]
_CONNECT_S = 10.0


class TargetError(ValueError):
    """The address is not valid, such as `ftp://host`."""


@dataclass(frozen=True)
class Target:
    """An endpoint. `path` includes the query, such as `/mcp?client=a`.

    `tls` is None for plain text. With `h2` "auto" the protocol is HTTP/2 if ALPN selects it, with "always" also without
    TLS.
    """

    url: str
    secure: bool
    host: str
    port: int
    path: str
    headers: Headers = ()
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    h2: H2 = "never"

    @property
    def authority(self) -> str:
        """The value of Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.secure else 80
        return host if self.port == usual else f"{host}:{self.port}"

    def at(self, path: str) -> Target:
        return replace(self, path=path)


def target(
    url: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    cafile: str | None = None,
    insecure: bool = False,
    h2: H2 = "never",
) -> Target:
    """The target at this address. Raises `TargetError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetError(f"{url!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise TargetError(f"{url!r} is not http://host[:port]/path")
    secure = parts.scheme in ("https", "wss")
    context = _context(cafile, h2, insecure=insecure) if secure else None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, secure, parts.hostname, port or (443 if secure else 80), path, tuple(headers), context, h2)


def _context(cafile: str | None, h2: H2, *, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=cafile)
    except OSError as error:
        raise TargetError(f"{cafile} holds no certificates: {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols({"auto": ["h2", "http/1.1"], "always": ["h2"], "never": ["http/1.1"]}[h2])
    return context


async def connect(to: Target) -> tuple[trio.abc.Stream, str]:
    """A connection and its protocol, `HTTP/1.1` or `HTTP/2`; the caller closes it. Raises `OSError`."""
    try:
        with trio.fail_after(_CONNECT_S):
            plain = await trio.open_tcp_stream(to.host, to.port)
            if to.tls is None:
                return plain, "HTTP/2" if to.h2 == "always" else "HTTP/1.1"
            secured = trio.SSLStream(plain, to.tls, server_hostname=to.host, https_compatible=True)
            try:
                await secured.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(plain)
                raise
    except trio.TooSlowError:
        raise OSError(f"no connection to {to.authority} within {_CONNECT_S:g} s") from None
    except trio.BrokenResourceError as error:
        raise OSError(str(error.__cause__ or error) or "the handshake failed") from None
    return secured, "HTTP/2" if secured.selected_alpn_protocol() == "h2" else "HTTP/1.1"
