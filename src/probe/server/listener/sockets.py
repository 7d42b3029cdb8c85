"""The resources of a server: listening sockets, the TLS context, and enough open files."""

from __future__ import annotations

import errno
import resource
import socket
import ssl
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.budgets import ConnectionCounts, fitting, raised
from ...core.clients import endpoint
from ...settings import Settings
from .calls import LOG

BACKLOG = 1024
"""The connections that the kernel completes while the accept loop is busy, up to its own limit."""

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The ciphers of TLS 1.2 that RFC 9113 section 9.2.2 allows: an ephemeral key exchange and an AEAD cipher."""

_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})

Address = tuple[Any, ...]
"""An address for `socket.bind`; for IPv6 it has two more members."""

_STANDARD_STREAMS = 3


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
        # Otherwise OpenSSL would ask on the terminal, and a service would wait for ever.
        raise ListenError(f"the private key in {keyfile or certfile} is encrypted")

    try:
        context.load_cert_chain(certfile, keyfile or None, password=no_password)
    except ssl.SSLError as error:
        reason = error.reason.replace("_", " ").lower() if error.reason else "not a PEM certificate and key"
        raise ListenError(f"cannot use certificate {certfile}: {reason}") from error
    except OSError as error:
        raise ListenError(f"cannot read certificate {certfile} or its key: {error.strerror}") from error


def fit(settings: Settings) -> Settings:
    """The settings, with only as many connections and WebSockets as this process may open files for.

    Raises the soft limit of open files where the settings need it. One warning names the limits that do not fit.
    """
    limits = settings.limits
    # A closed reserved connection may take a moment to end, while the next one is open already.
    others = _open_now() + limits.reserved_files + 2 * limits.reserved_connections
    most = _raise_to(others + limits.max_connections)
    wanted = ConnectionCounts(limits.max_connections, limits.max_websockets)
    room = fitting(wanted, most - others)
    if room == wanted:
        return settings
    LOG.warning(
        "this process may have %d open files (ulimit -n), %d of them for other things than connections: "
        "max_connections is %d instead of %d, max_websockets %d instead of %d",
        *(most, others, room.connections, wanted.connections, room.websockets, wanted.websockets),
    )
    return replace(settings, limits=replace(limits, max_connections=room.connections, max_websockets=room.websockets))


def _open_now() -> int:
    """Count the open descriptors, with that of this check."""
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        # A container without /proc.
        return _STANDARD_STREAMS


def _raise_to(needed: int) -> int:
    soft, hard = (_number(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    most = raised(soft, hard, needed)
    if most > soft:
        # Some systems have a lower limit of their own, which the hard limit does not show.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            return most
    return soft


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
