"""Fetches an export from a running server into a file, which is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from pydantic_core import from_json

from ..terminal.feed_reader import FeedError, origin
from .extract import Extract

# A server that is busy packs slowly, and never says nothing for so long.
_SILENCE_S: Final = 60.0
_PIECE: Final = 64 * 1024
# Packed. A server keeps 64 MiB by default, which is a tenth of that in a zip.
_MOST_BYTES: Final = 1024 * 1024 * 1024
_MOST_SAID: Final = 1024 * 1024
# What the overview must have to be shown; nothing is exported where there are no entries.
_SHOWN: Final = {"entries": int, "calls": int, "first_at": float, "last_at": float, "hidden": dict, "gaps": list}


class DownloadError(Exception):
    """There is no file; the message is one line that says why."""


def overview(url: str, extract: Extract) -> dict[str, Any]:
    """What an export would have in it: `contains` of `/api/export`. Raises `DownloadError`."""
    with _answer(url, "/api/export", extract) as answer:
        value = _json(answer)
    contains = value.get("contains")
    if not isinstance(contains, dict) or any(type(contains.get(name)) is not kind for name, kind in _SHOWN.items()):
        raise DownloadError(f"{url} gives no overview of an export")
    return contains


def download(url: str, suffix: str, extract: Extract, path: Path) -> int:
    """Write an export of the server to a file; returns its size in bytes. Raises `DownloadError`."""
    with _answer(url, f"/api/export{suffix}", extract) as answer, _whole_or_nothing(path) as descriptor:
        size = 0
        while piece := answer.read(_PIECE):
            size += len(piece)
            if size > _MOST_BYTES:
                raise DownloadError(f"{url} gives more than {_MOST_BYTES >> 20} MiB")
            os.write(descriptor, piece)
        # The library takes it for the end when the connection breaks, where the length was told.
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
        answer = connection.getresponse()
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
        return f"{said}: {' '.join(detail.split())}" if detail else said
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
def _whole_or_nothing(path: Path) -> Iterator[int]:
    try:
        descriptor, unfinished = tempfile.mkstemp(prefix=".mcp-probe-", dir=path.parent)
    except OSError as error:
        raise DownloadError(f"{path}: {error.strerror}") from None
    try:
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        # Such files are for their owner alone; this one is for whoever may read what the owner makes.
        mask = os.umask(0)
        os.umask(mask)
        Path(unfinished).chmod(0o666 & ~mask)
        Path(unfinished).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(unfinished).unlink()
        raise
