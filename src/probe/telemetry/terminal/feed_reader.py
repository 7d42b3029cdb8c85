"""Reads the feed of a running server over HTTP. After a lost connection it resumes at the next entry."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

from ...log.event_log import Entry
from ...log.ndjson import read_entry

# The server sends a comment every `keep_alive_s`, 15 s by default and 600 s at most.
_SILENCE_S: Final = 650.0
_AGAIN_S: Final = 1.0


class FeedError(Exception):
    """A retry will not help; the message is one line."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Entries missing from the feed: `first` to `last`, or None for those of another run."""

    first: int | None
    last: int | None


def origin(url: str) -> SplitResult:
    """Parse the URL of a server, with or without a path such as `/mcp` or `/dashboard`. Raises `FeedError`."""
    split = urlsplit(url)
    try:
        port = split.port
    except ValueError:
        port = -1
    if split.scheme not in ("http", "https") or not split.hostname or port == -1:
        raise FeedError(f"{url!r} is not http://HOST[:PORT] or https://HOST[:PORT]")
    return split


def follow(url: str, tail: int, lost: Callable[[str], None]) -> Iterator[Entry | Missing]:
    """Yields entries from the newest `tail` on, without end. `lost` gets the reason of each lost connection.

    Raises `FeedError` if the first connection fails, or if the answer is not a feed of this version.
    """
    server = origin(url)
    place: str | None = None
    while True:
        try:
            for id, event, data in _events(server, tail, place):
                place = id or place
                if event == "gap":
                    yield Missing(data["first"], data["last"])
                elif event == "message":
                    yield _entry(data)
            why = "the server has closed the feed"
        except (OSError, HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if place is None:
                raise FeedError(f"no server answers at {server.scheme}://{server.netloc}: {why}") from None
        lost(why)
        time.sleep(_AGAIN_S)


def _entry(data: dict[str, Any]) -> Entry:
    try:
        return read_entry(json.dumps(data).encode())
    except ValueError as error:
        raise FeedError(f"entry {data.get('seq')} is not of this version of mcp-probe: {error}") from None


def _events(server: SplitResult, tail: int, place: str | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    kind = HTTPSConnection if server.scheme == "https" else HTTPConnection
    connection = kind(str(server.hostname), server.port, timeout=_SILENCE_S)
    try:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": place} if place else {})}
        connection.request("GET", f"/dashboard/events?{urlencode({'tail': tail})}", headers=headers)
        # If the connection ends with the response, the response owns the socket, so both are closed.
        with connection.getresponse() as response:
            if response.status == 503:
                raise HTTPException(f"HTTP 503: {response.read(200).decode(errors='replace').strip()}")
            if response.status != 200 or not response.headers.get_content_type() == "text/event-stream":
                raise FeedError(f"{server.scheme}://{server.netloc} has no feed: HTTP {response.status}")
            yield from _parsed(response)
    finally:
        connection.close()


def _parsed(response: HTTPResponse) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Id, name and data of each event. The server writes each field on one line. Raises `FeedError`."""
    fields: dict[str, str] = {}
    for line in response:
        name, _, value = line.decode(errors="replace").rstrip("\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            try:
                data = json.loads(fields["data"])
            except ValueError as error:
                raise FeedError(f"an event of the feed is no JSON: {error}") from None
            yield fields.get("id", ""), fields.get("event", "message"), data
            fields = {}
