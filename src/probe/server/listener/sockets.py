"""Listening sockets and the TLS context: all errors that can come before the first connection."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ...core.clients import endpoint
from ...settings import Settings

BACKLOG = 1024
"""The connections that the kernel completes while the accept loop is busy; the kernel caps it at its own limit."""

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The ciphers of TLS 1.2 that RFC 9113 section 9.2.2 allows: an ephemeral key exchange and an AEAD cipher."""

_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

Address = tuple[Any, ...]
"""An address for `socket.bind`, such as `("127.0.0.1", 8000)`; for IPv6 it has two more members."""


class ListenError(Exception):
    """The server cannot listen with its settings; the message is one line for the user."""


def open_sockets(settings: Settings) -> list[socket.socket]:
    """Bind and listen on every address of `settings.host`; port 0 picks one free port for all of them.

    The caller owns the sockets and closes them, until `serve` takes them over. Raises `ListenError`.
    """
    port = settings.port
    with ExitStack() as opened:
        sockets: list[socket.socket] = []
        for family, address in _addresses(settings.host, port):
            # A name such as localhost has two addresses; with port 0 the second one gets the port of the first.
            found = _listening(family, (address[0], port, *address[2:]))
            if found is not None:
                sockets.append(opened.enter_context(found))
                port = found.getsockname()[1]
        if not sockets:
            raise ListenError(f"cannot listen on {settings.host}: no address of it belongs to this machine")
        opened.pop_all()
    return sockets


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, Address]]:
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise ListenError(f"cannot listen on {host!r}: {reason}") from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _listening(family: socket.AddressFamily, address: Address) -> socket.socket | None:
    """A listening socket, or None for an address that this machine does not have, such as ::1 with IPv6 off."""
    try:
        with ExitStack() as opened:
            found = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            found.bind(address)
            found.listen(BACKLOG)
            found.setblocking(False)
            opened.pop_all()
            return found
    except OSError as error:
        if error.errno in _NOT_HERE:
            return None
        raise ListenError(f"cannot listen on {endpoint(*address[:2])}: {_explained(error)}") from error


def _explained(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the port is in use"
    if error.errno == errno.EACCES:
        return "this port needs more privileges"
    return error.strerror or str(error)


def urls(sockets: Sequence[socket.socket], *, secure: bool) -> list[str]:
    """The base URL of each listening socket, such as `http://127.0.0.1:8000`."""
    scheme = "https" if secure else "http"
    return [f"{scheme}://{endpoint(*found.getsockname()[:2])}" for found in sockets]


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """The server's TLS context with ALPN for h2 and http/1.1, or None when no certificate is set.

    Reads the files. Raises `ListenError` when they cannot be used.
    """
    if not settings.certfile:
        if settings.keyfile:
            raise ListenError("keyfile is set but certfile is not")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["h2", "http/1.1"])
    _load(context, settings.certfile, settings.keyfile)
    return context


def _load(context: ssl.SSLContext, certfile: str, keyfile: str) -> None:
    def no_password() -> str:
        # Otherwise OpenSSL would ask for a password on the terminal, and a service would wait for ever.
        raise ListenError(f"the private key in {keyfile or certfile} is encrypted")

    try:
        context.load_cert_chain(certfile, keyfile or None, password=no_password)
    except ssl.SSLError as error:
        reason = error.reason.replace("_", " ").lower() if error.reason else "not a PEM certificate and key"
        raise ListenError(f"cannot use certificate {certfile}: {reason}") from error
    except OSError as error:
        raise ListenError(f"cannot read certificate {certfile} or its key: {error.strerror}") from error
