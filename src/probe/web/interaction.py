"""`/interaction/ID`: the page of a URL mode elicitation. It has one button; no text is typed or kept."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from quart import Response
from quart_trio import QuartTrio

from ..engine.engine import Engine

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>MCP Probe: {title}</title>
<style>{style}</style>
<h1>{title}</h1>
<p>{text}</p>
{form}
"""
_STYLE = "body { font: 1.1rem/1.5 system-ui; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }"
_FORM = '<form method="post"><button>Confirm</button></form>'
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    # In a foreign frame the button could be clicked by mistake. The digest allows only this style.
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    # The address is a secret: it must not leak to other sites. With `no-referrer` browsers would send the form with
    # `Origin: null` (Fetch standard, "append a request Origin header"), as a foreign page does.
    "referrer-policy": "same-origin",
}


def register(app: QuartTrio, engine: Engine) -> None:
    """Add the page."""

    @app.get("/interaction/<id>")
    async def show(id: str) -> Response:
        if not engine.interactions.is_open(id):
            return _page(404, "Nothing to confirm", "This page has been confirmed, or its call is long over.")
        text = "A tool of MCP Probe asked your client to open this page. The tool goes on when you confirm."
        return _page(200, "Confirm the interaction", text, _FORM)

    @app.post("/interaction/<id>")
    async def confirm(id: str) -> Response:
        if not engine.interactions.confirm(id):
            return _page(404, "Nothing to confirm", "The call that asked for this is long over.")
        return _page(200, "Confirmed", "The tool goes on. You can close this page and return to your client.")


def _page(status: int, title: str, text: str, form: str = "") -> Response:
    body = _PAGE.format(style=_STYLE, title=title, text=text, form=form)
    return Response(body, status, headers=_HEADERS, content_type="text/html; charset=utf-8")
