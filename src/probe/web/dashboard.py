"""`/dashboard`: the built pages of dashboard/, served from memory, read-only.

A gateway may mount the server below a path such as `/probe`, and remove it before it forwards a request. So the pages
have no absolute addresses: `index.html` serves every view and refers to its assets relative to it, such as
`../assets/NAME.js`.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import trio

from ..server.endpoints.asgi import Headers, Receive, Scope, Send, respond, start

SITE = Path(__file__).parent / "site"
NOT_BUILT = (
    b"The dashboard was not built into this copy. In a checkout, run `nox -s dashboard` and start the server again; "
    b"elsewhere, install it again where Node.js can be had: the line that pip printed says what was missing.\n"
)

_BASE = "/dashboard"
_INDEX = "index.html"
# Vite writes every file but index.html here, with a digest of its content in its name
_ASSETS = "assets/"
# The form of their addresses in index.html, by `base` in vite.config.ts
_RELATIVE = b'"./' + _ASSETS.encode()
# Views have at most three parts; each further part costs a few bytes of every answer.
_DEEPEST = 16
_PLAIN = (b"content-type", b"text/plain; charset=utf-8")
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SECURITY: Headers = (
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # Copy buttons write to the clipboard. The pages need no other permission.
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-read=()"),
)


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    etag: bytes
    kind: tuple[bytes, bytes]
    caching: Headers


_Site: TypeAlias = Mapping[str, _File]


class Dashboard:
    """The ASGI application of the pages."""

    def __init__(self, site: Path = SITE) -> None:
        self._path = site
        self._files: _Site | None = None
        self._reading = trio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await _answer(scope, send, 405, [_PLAIN, (b"allow", b"GET, HEAD")], b"this page takes GET and HEAD\n")
        elif scope["path"] == "/":
            # relative, as the gateway's path stands before it (RFC 9110, section 10.2.2)
            await _answer(scope, send, 302, [_PLAIN, (b"location", b"dashboard")], b"see /dashboard\n")
        else:
            await self._page(scope, send)

    async def _page(self, scope: Scope, send: Send) -> None:
        site = await self._site()
        name = scope["path"].removeprefix(_BASE).lstrip("/")
        file = site.get(name) if name.startswith(_ASSETS) else _view(site, scope["raw_path"])
        if _INDEX not in site:
            await _answer(scope, send, 503, [_PLAIN, (b"cache-control", b"no-store")], NOT_BUILT)
        elif file is None:
            await _answer(scope, send, 404, [_PLAIN, (b"cache-control", b"no-store")], b"no such file\n")
        elif _has(scope, file.etag):
            await start(send, 304, [*_SECURITY, *file.caching])
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await _answer(scope, send, 200, [file.kind, *file.caching], file.body)

    async def _site(self) -> _Site:
        async with self._reading:
            if self._files is None:
                self._files = await trio.to_thread.run_sync(_read, self._path, abandon_on_cancel=True)
        return self._files


def _view(site: _Site, raw_path: bytes) -> _File | None:
    """The page of a view; None for a path too deep, or without a build."""
    index = site.get(_INDEX)
    # %2F is no slash, as in the browser.
    below = raw_path.partition(b"?")[0].count(b"/") - _BASE.count("/")
    if index is None or below > _DEEPEST:
        return None
    up = b"../" * (below - 1) if below else b"dashboard/"
    return replace(index, body=index.body.replace(_RELATIVE, b'"' + up + _ASSETS.encode()))


def _read(site: Path) -> _Site:
    names = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    return {name: _file(name, (site / name).read_bytes()) for name in names}


def _file(name: str, body: bytes) -> _File:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    # not from the system's table of types: with nosniff a browser runs only scripts of the right type
    kind = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}.get(Path(name).suffix, kind)
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    kept = b"public, max-age=31536000, immutable" if name.startswith(_ASSETS) else b"no-cache"
    etag = b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode()
    content_type = (b"content-type", (kind + charset).encode())
    return _File(body, etag, content_type, ((b"cache-control", kept), (b"etag", etag)))


def _has(scope: Scope, etag: bytes) -> bool:
    given = b",".join(value for name, value in scope["headers"] if name.lower() == b"if-none-match")
    tags = [tag.strip().removeprefix(b"W/") for tag in given.split(b",")]
    return etag in tags or tags == [b"*"]


async def _answer(scope: Scope, send: Send, status: int, headers: Headers, body: bytes) -> None:
    await respond(send, status, [*_SECURITY, *headers], body, to_head=scope["method"] == "HEAD")
