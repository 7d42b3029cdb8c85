"""Security headers and CORS for web browsers, and the refusal of requests that pages of other sites may not make.

A browser sends requests for any page that a person visits, and only the response headers keep foreign pages from this
server (SECURITY.md). So they are set here, around all endpoints:

    everywhere    no MIME sniffing; over TLS also Strict-Transport-Security
    pages         no script, frame, embedding or referrer; a page may set its own header instead
    /mcp          CORS, for the origins that `HostPolicy` trusts
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from ...core.inbound import HostPolicy, HttpHead
from ...settings import Settings
from ...wire.errors import Refusal, Rejection
from .asgi import NOTES, Headers, Scope, Send, host_policy, http_head

_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")

# For data and refusals, since a browser may show these as documents too.
_PAGES: Final[Headers] = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    # Otherwise a page of another site could load an answer as an image or script, and learn from its size or time.
    (b"cross-origin-resource-policy", b"same-origin"),
)

# One year, as preload lists require. The owner of the domain decides about subdomains and preloading.
_STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")

# Fetch standard, section 3.2.5: for requests without credentials, `*` stands for all names but Authorization. A list of
# names could not contain each Mcp-Param-NAME of revision 2026-07-28. This server uses no cookies, so it never sends
# Access-Control-Allow-Credentials.
_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-allow-headers", b"*, Authorization"),
    # Chromium keeps an answer for two hours at most.
    (b"access-control-max-age", b"7200"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After")


class Browsers:
    """The header rules of one server."""

    def __init__(self, settings: Settings) -> None:
        self._policy = host_policy(settings)
        public = urlsplit(settings.public_url)
        self._secure_name = _alone(public.netloc) if public.scheme == "https" else ""

    def add_headers(self, scope: Scope, send: Send) -> Send:
        """Make a `send` that adds the headers for browsers to each response; it keeps headers that are already set."""
        asked: Scope | None = scope

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal asked
            if asked is not None and message["type"].endswith("http.response.start"):
                given = message["headers"]
                names = dict(given)
                more = [pair for pair in self._headers(asked) if pair[0] not in names]
                message = {**message, "headers": [*given, *more]}
                # An open stream must not hold its request, which takes a kilobyte.
                asked = None
            await send(message)

        return with_headers

    def _headers(self, scope: Scope) -> Headers:
        notes = scope.get("extensions", {}).get(NOTES)
        if notes is None:
            return self._made(scope)
        known: Headers | None = notes.get("browsers")
        if known is None:
            known = notes["browsers"] = self._made(scope)
        return known

    def _made(self, scope: Scope) -> Headers:
        strict = [_STRICT_TRANSPORT] if self._is_strict(scope) else []
        protocol = scope["path"] == "/mcp" and scope["type"] == "http"
        rest = self._sharing(scope) if protocol else _PAGES
        return [_NOSNIFF, *strict, *rest]

    def _is_strict(self, scope: Scope) -> bool:
        """True if this server's name, on all ports, is to be used over TLS only.

        RFC 6797, section 7.2: never over an insecure connection. So the request comes over our TLS, or over a proxy's
        under the name of `public_url`. Other servers may share a name with a port, and have no TLS.
        """
        tls = scope["scheme"] in ("https", "wss")
        if not (tls or self._secure_name):
            return False
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        name = _alone(hosts[0]) if len(hosts) == 1 else ""
        return bool(name) and (name == self._secure_name or (tls and name != "localhost"))

    def _sharing(self, scope: Scope) -> Headers:
        """The headers of CORS; none for a page that may not call, so its browser hides the refusal from it."""
        origin = _trusted_origin(self._policy, scope)
        if origin is None:
            return ()
        common = ((b"access-control-allow-origin", origin), (b"vary", b"origin"))
        return (*common, *_PREFLIGHT) if scope["method"] == "OPTIONS" else (*common, _EXPOSED)


def _trusted_origin(policy: HostPolicy, scope: Scope) -> bytes | None:
    if b"origin" not in dict(scope["headers"]):
        return None
    origins: list[bytes] = [value for name, value in scope["headers"] if name == b"origin"]
    try:
        policy.check(http_head(scope))
    except Rejection:
        return None
    return origins[0]


def _alone(authority: str) -> str:
    """The name in an authority without a port or with port 443; empty for any other authority."""
    name = authority.lower().removesuffix(":443")
    return "" if ":" in name else name


def is_preflight(head: HttpHead) -> bool:
    """True if this is a CORS preflight request. Raises `Rejection` for a header given twice."""
    wanted = head.get("access-control-request-method")
    return head.method == "OPTIONS" and wanted is not None and head.get("origin") is not None


def check_purpose(head: HttpHead) -> None:
    """Refuse what a page of another site wants to embed; browsers send no Origin then. Raises `Rejection`.

    W3C Fetch Metadata: otherwise frames of any site could use up the feed's readers or have whole tables made.
    """
    foreign = head.all("sec-fetch-site") == "cross-site" and head.get("origin") is None
    followed = head.all("sec-fetch-mode") == "navigate" and head.all("sec-fetch-dest") == "document"
    if foreign and not (followed and head.method in ("GET", "HEAD")):
        why = "Forbidden: pages of other sites may link to this one, and not embed it (Sec-Fetch-Site)"
        raise Rejection(Refusal.FORBIDDEN_ORIGIN, why)
