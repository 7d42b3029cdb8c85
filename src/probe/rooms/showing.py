r"""The read-only address of a room: pages and data by GET, in which the room's own id never stands.

The id is in the event log, for example in the address of a page that an elicitation asks for. In answers each copy
becomes the read-only one, which is as long. So they are not compressed, and a ZIP file is only for the owner.

A client may have sent the id in another spelling, such as `\u0066Q` or `%66Q` for `fQ`. Each character is found in any
of these, and its replacement has the same spelling. The log shows a backslash of a body that is not valid JSON as
`\x5c`, so `\x5cu0066` is one more. Other codings, such as Base64, are not undone.

Where a text of a client was cut, only the beginning of the id is left, and anything may follow: an ellipsis, a quote, a
line end. So each beginning with 8 characters or more is replaced in the same way. It may end with the first of the two
digits of a character, which is replaced, too.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qs

import trio

from ..server.endpoints.asgi import Scope, Send

SESSION_FILE: Final = "/api/export.mcpprobe"
"""For the owner only: in a ZIP file the id cannot be replaced."""

_SEARCHES: Final = ("text", "filter", "passes")
_COMPRESSES: Final = b"accept-encoding"


def may_show(scope: Scope) -> bool:
    """True if a read-only address may answer this request."""
    path = f"{scope['path']}/"
    is_page = path.startswith(("/dashboard/", "/api/")) or scope["path"] == "/"
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and is_page and scope["path"] != SESSION_FILE


def searches(scope: Scope) -> bool:
    """True if a request searches texts: its hits would show, piece by piece, the id that an answer hides."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return any(name in query for name in _SEARCHES)


def uncompressed(scope: Scope) -> Scope:
    """The scope of a request that accepts no compression."""
    headers = [pair for pair in scope["headers"] if pair[0].lower() != _COMPRESSES]
    # The values that the listener keeps for this head are of the other one.
    extensions = {name: value for name, value in scope.get("extensions", {}).items() if name != "probe.notes"}
    return {**scope, "headers": headers, "extensions": extensions}


# A backslash is doubled in each string that stands within another one, and a percent sign in each address.
_MOST_BACKSLASHES: Final = 8
_MOST_PERCENT: Final = 3
# A backslash of a body that is not valid JSON (`redaction.shown_bytes`).
_SHOWN_BACKSLASH: Final = rb"(?:\\{1,%d}x5c)" % _MOST_BACKSLASHES
_LONGEST: Final = _MOST_BACKSLASHES * (_MOST_BACKSLASHES + len("x5c")) + len("u0066")
# A shorter beginning of an id says too little of the rest: 48 of 240 bits.
_SHORTEST_BEGINNING: Final = 8
# The last one may have been cut behind its first digit.
_SPELLED: Final = re.compile(rb"((?:\\+x5c)+u00|\\+u00|%(?:25)*)(..?)|.", re.DOTALL)
_PIECE_BYTES: Final = 64 * 1024
"""Other tasks run after so many. The regular expression takes 3 ms for them, and 16 at most."""


def _spellings(character: int) -> bytes:
    """A pattern for a character in any spelling."""
    first, second = _digits(character)
    # Each branch begins with one byte, so a search skips all others quickly.
    return rb"(?:%b|%b)" % (re.escape(bytes((character,))), _coded(first + second, first + second))


def _cut_codes(character: int) -> bytes:
    """A pattern for a coded spelling that was cut behind its first digit."""
    first, _ = _digits(character)
    # `%25` is a percent sign.
    return rb"(?:%b)" % _coded(first, rb"%b(?!5)" % first if first == b"[22]" else first)


def _coded(in_json: bytes, in_address: bytes) -> bytes:
    return rb"\\(?:\\{0,%d}|\\{0,%d}x5c%b{0,%d})u00%b|%%(?:25){0,%d}%b" % (
        _MOST_BACKSLASHES - 1,
        _MOST_BACKSLASHES - 1,
        _SHOWN_BACKSLASH,
        _MOST_BACKSLASHES - 1,
        in_json,
        _MOST_PERCENT,
        in_address,
    )


def _digits(character: int) -> tuple[bytes, bytes]:
    """Patterns for the two digits of a coded character."""
    code = b"%02x" % character
    first, second = (b"[%b%b]" % (digit.lower(), digit.upper()) for digit in (code[:1], code[1:]))
    return first, second


@lru_cache(maxsize=32)
def _pattern(secret: bytes) -> re.Pattern[bytes]:
    """A pattern for a secret in any spelling, or as much of its beginning as there is."""
    # Some milliseconds, for the latest rooms that are shown.
    spelled = [*map(_spellings, secret)]
    beginning, rest = spelled[:_SHORTEST_BEGINNING], spelled[_SHORTEST_BEGINNING:]
    more = b""
    for character, cut in reversed([*zip(rest, map(_cut_codes, secret[_SHORTEST_BEGINNING:]), strict=True)]):
        more = b"(?:%b%b|%b)?" % (character, more, cut)
    return re.compile(b"".join(beginning) + more)


@lru_cache(maxsize=64)
def _one(character: int) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns for a character in any spelling, and for the beginning of one."""
    first, _ = _digits(character)
    code = rb"(?:u(?:0(?:0%b?)?)?)?" % first
    begun = (
        rb"\\{1,%d}%b" % (_MOST_BACKSLASHES, code),
        rb"%b{1,%d}%b" % (_SHOWN_BACKSLASH, _MOST_BACKSLASHES, code),
        rb"%b{0,%d}\\{1,%d}(?:x5?)?" % (_SHOWN_BACKSLASH, _MOST_BACKSLASHES - 1, _MOST_BACKSLASHES),
        rb"%%(?:25){0,%d}(?:2|%b)?" % (_MOST_PERCENT, first),
    )
    return re.compile(_spellings(character)), re.compile(b"|".join(begun))


def _respelled(found: bytes, shown: bytes) -> bytes:
    """The characters of `shown` in the spellings of those in `found`."""
    wanted = iter(shown)

    def spell(character: re.Match[bytes]) -> bytes:
        mark: bytes | None = character[1]
        return bytes((next(wanted),)) if mark is None else mark + (b"%02x" % next(wanted))[: len(character[2])]

    is_plain = b"%" not in found and b"\\" not in found
    return shown[: len(found)] if is_plain else _SPELLED.sub(spell, found)


class Masked:
    """A `send` that replaces each `secret`, and each beginning of one, in bodies by `shown`, which is as long.

    Only bytes that may begin the secret wait for the next piece.
    """

    def __init__(self, send: Send, secret: bytes, shown: bytes) -> None:
        self._send = send
        self._secret = secret
        self._pattern = _pattern(secret)
        self._shown = shown
        self._kept = b""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False)
            masked: list[bytes] = []
            for start in range(0, len(body), _PIECE_BYTES):
                if start:
                    await trio.lowlevel.checkpoint()
                masked.append(self._replaced(body[start : start + _PIECE_BYTES]))
            if not more:
                masked.append(self._hidden(self._kept, len(self._kept)))
                self._kept = b""
            message = {**message, "body": b"".join(masked)}
        await self._send(message)

    def _replaced(self, piece: bytes) -> bytes:
        """What can be sent after this piece has come."""
        body = (self._kept + piece).replace(self._secret, self._shown)
        sent = len(body) - self._begun(body)
        body = self._hidden(body, sent)
        self._kept = body[sent:]
        return body[:sent]

    def _hidden(self, body: bytes, sent: int) -> bytes:
        """The body with each secret replaced that begins before `sent`: a later one may go on in the next piece."""
        if b"%" in body or b"\\u00" in body or b"x5cu00" in body or self._secret[:_SHORTEST_BEGINNING] in body:
            # A hundred times as slow as a search for plain bytes.
            return self._pattern.sub(
                lambda found: _respelled(found[0], self._shown) if found.start() < sent else found[0], body
            )
        return body

    def _begun(self, body: bytes) -> int:
        tail = body[-_LONGEST * len(self._secret) :]
        starts = (at for at, byte in enumerate(tail) if byte in (self._secret[0], *b"\\%"))
        return next((len(tail) - at for at in starts if self._begins(tail, at)), 0)

    def _begins(self, tail: bytes, at: int) -> bool:
        """True if all from `at` on may begin the secret, and more of it has to come."""
        for character in self._secret:
            if at == len(tail):
                return True
            whole, begun = _one(character)
            found = whole.match(tail, at)
            if found is None:
                return begun.fullmatch(tail, at) is not None
            at = found.end()
        return False
