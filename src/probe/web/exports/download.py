"""Fetches an export from a running server into a file: a whole file, or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from pydantic_core import from_json

from ...core.escaping import shown
from ...log.ndjson import LATEST
from ...telemetry.terminal.feed_reader import FeedError, origin
from .extract import Extract

# Even a busy server sends a piece within this time.
_SILENCE_S: Final = 60.0
_PIECE: Final = 64 * 1024
# Packed. A server keeps 64 MiB of log by default; a zip of it is a tenth as large.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_MOST_SAID: Final = 1024 * 1024
# The shown members of an overview. Without entries there is no export.
_SHOWN: Final = {"entries": int, "calls": int, "first_at": float, "last_at": float, "hidden": dict, "gaps": list}


class DownloadError(Exception):
    """No file was written; the message is one line."""


def overview(url: str, extract: Extract) -> dict[str, Any]:
    """`contains` of `/api/export`. Raises `DownloadError`."""
    with _answer(url, "/api/export", extract) as answer:
        value = _json(answer)
    contains = value.get("contains")
    if not isinstance(contains, dict) or not _can_be_shown(contains):
        raise DownloadError(f"{url} gives no overview of an export")
    return contains


def _can_be_shown(contains: dict[str, Any]) -> bool:
    if any(type(contains.get(name)) is not kind for name, kind in _SHOWN.items()):
        return False
    times = (contains["first_at"], contains["last_at"])
    return all(0 <= at <= LATEST for at in times) and all(type(count) is int for count in contains["hidden"].values())


def download(url: str, suffix: str, extract: Extract, path: Path) -> int:
    """Write an export of the server to a file; returns its size in bytes. Raises `DownloadError`."""
    with _answer(url, f"/api/export{suffix}", extract) as answer, _whole_or_nothing(path) as write:
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
            if size > _MOST_BYTES:
                raise DownloadError(f"{url} gives more than {_MOST_BYTES >> 20} MiB")
            write(piece)
        # With a Content-Length, the library takes a broken connection for the end.
        if answer.length:
            raise DownloadError(f"no export comes from {url}: it broke off")
        return size


@contextmanager
def _answer(url: str, path: str, extract: Extract) -> Iterator[HTTPResponse]:
    try:
        server = origin(url)
    except FeedError as error:
        raise DownloadError(str(error)) from None
    asked = {name: value for name, value in (("client", extract.client), ("call", extract.call)) if value is not None}
    kind = HTTPSConnection if server.scheme == "https" else HTTPConnection
    connection = kind(str(server.hostname), server.port, timeout=_SILENCE_S)
    try:
        connection.request("GET", f"{path}?{urlencode(asked)}")
        with connection.getresponse() as answer:
            if answer.status != 200:
                raise DownloadError(_refusal(url, answer))
            yield answer
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DownloadError(f"no export comes from {url}: {why}") from None
    finally:
        connection.close()


def _refusal(url: str, answer: HTTPResponse) -> str:
    said = f"{url} answers with status {answer.status}"
    with suppress(DownloadError):
        detail = str(_json(answer).get("detail", ""))[:300]
        return f"{said}: {shown(' '.join(detail.split()))}" if detail else said
    return said


def _json(answer: HTTPResponse) -> dict[str, Any]:
    try:
        value = from_json(answer.read(_MOST_SAID))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise DownloadError("what answers is no MCP Probe")
    return value


@contextmanager
def _whole_or_nothing(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Yields a function that writes to the file. Raises `DownloadError` if the file cannot be written."""
    with _named(path):
        descriptor, unfinished = tempfile.mkstemp(prefix=".mcp-probe-", dir=path.parent)
    try:
        file = os.fdopen(descriptor, "wb")

        def write(piece: bytes) -> None:
            with _named(path):
                file.write(piece)

        try:
            yield write
        finally:
            with _named(path):
                file.close()
        # `mkstemp` makes files only readable by their owner; this one gets the permissions of other new files.
        mask = os.umask(0)
        os.umask(mask)
        with _named(path):
            Path(unfinished).chmod(0o666 & ~mask)
            Path(unfinished).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(unfinished).unlink()
        raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DownloadError(f"{path}: {error.strerror or error}") from None
