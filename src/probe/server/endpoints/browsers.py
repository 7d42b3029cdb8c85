"""Security headers and CORS for web browsers, and the requests that pages of other sites may not make.

A browser sends requests for any page that a person looks at, so what keeps the pages of strangers away from a server is
what it tells the browser (SECURITY.md). It stands here once, around all endpoints, so that none can forget it:

    everywhere    nothing is taken for another type than it says, a page over TLS is never asked for without it
    pages         no script, no frame, no embedding, no referrer; a page may say more for itself
    /mcp          CORS, for the origins that may call it, which are those that `HostPolicy` trusts
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from ...core.inbound import HostPolicy, HttpHead
from ...settings import Settings
from ...wire.errors import Refusal, Rejection
from .asgi import Headers, Scope, Send, host_policy, http_head
from .read_head import NOTES

_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")

# Data and refusals, also where a browser shows them as documents.
_PAGES: Final[Headers] = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    # Without it a page of another site could load an answer as its image or script, and learn from its size or time.
    (b"cross-origin-resource-policy", b"same-origin"),
)

# A year, as preload lists ask for. Neither subdomains nor preloading: those are for their owner to decide.
_STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")

# Fetch standard, section 3.2.5: where requests have no credentials, `*` stands for all names but Authorization. Named
# headers would have to know each Mcp-Param-NAME of revision 2026-07-28. There are no credentials: nothing here knows
# a cookie, so Access-Control-Allow-Credentials is never sent.
_PREFLIGHT: Final[Headers] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-allow-headers", b"*, Authorization"),
    # Two hours is the most that Chromium keeps.
    (b"access-control-max-age", b"7200"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After")


class Browsers:
    """The rules of one server."""

    def __init__(self, settings: Settings) -> None:
        self._policy = host_policy(settings)
        public = urlsplit(settings.public_url)
        self._secure_name = _alone(public.netloc) if public.scheme == "https" else ""

    def instruct(self, scope: Scope, send: Send) -> Send:
        """A `send` that adds to each response what a browser has to know; a header that is there already stays."""
        asked: Scope | None = scope

        async def instructed(message: MutableMapping[str, Any]) -> None:
            nonlocal asked
            if asked is not None and message["type"].endswith("http.response.start"):
                given = message["headers"]
                names = dict(given)
                more = [pair for pair in self._headers(asked) if pair[0] not in names]
                message = {**message, "headers": [*given, *more]}
                # A response that lasts does not hold its request, which takes a kilobyte.
                asked = None
            await send(message)

        return instructed

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
        """Whether the name of this server, on all its ports, is to be used over TLS only.

        RFC 6797, section 7.2: never over a connection that is not secure, so it takes TLS of our own, or a proxy's
        under the name that `public_url` says. A name with a port is shared with other servers, which may have no TLS.
        """
        tls = scope["scheme"] in ("https", "wss")
        if not (tls or self._secure_name):
            return False
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        name = _alone(hosts[0]) if len(hosts) == 1 else ""
        return bool(name) and (name == self._secure_name or (tls and name != "localhost"))

    def _sharing(self, scope: Scope) -> Headers:
        """The headers of CORS. A page that may not call gets none, and its browser keeps the refusal from it.

        `Vary` is sent only here, too: no cache keeps the answer to a POST, or an event stream.
        """
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
    """The name in an authority without a port, or with that of https; empty for any other."""
    name = authority.lower().removesuffix(":443")
    return "" if ":" in name else name


def is_preflight(head: HttpHead) -> bool:
    """Whether a browser asks what a page of another origin may send. Raises `Rejection` for a header given twice."""
    wanted = head.get("access-control-request-method")
    return head.method == "OPTIONS" and wanted is not None and head.get("origin") is not None


def check_purpose(head: HttpHead) -> None:
    """Refuse what a page of another site wants to embed, for which browsers send no Origin. Raises `Rejection`.

    W3C Fetch Metadata: images, scripts and frames of any site would else take the places of the feed's readers, and
    have whole tables made for them. A link to a page is another thing. A trusted site that says its Origin passes.
    """
    foreign = head.all("sec-fetch-site") == "cross-site" and head.get("origin") is None
    followed = head.all("sec-fetch-mode") == "navigate" and head.all("sec-fetch-dest") == "document"
    if foreign and not (followed and head.method in ("GET", "HEAD")):
        why = "Forbidden: pages of other sites may link to this one, and not embed it (Sec-Fetch-Site)"
        raise Rejection(Refusal.FORBIDDEN_ORIGIN, why)
