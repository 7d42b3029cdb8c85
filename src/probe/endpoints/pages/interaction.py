"""`/interaction/ID`: the page that URL mode elicitation sends a person to. One button; nothing is typed or kept."""

from __future__ import annotations

from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>MCP Probe: {title}</title>
<style>body {{ font: 1.1rem/1.5 system-ui; max-width: 36rem; margin: 4rem auto; padding: 0 1rem }}</style>
<h1>{title}</h1>
<p>{text}</p>
{form}
"""
_FORM = '<form method="post"><button>Confirm</button></form>'
# A page that others could frame could be clicked by mistake.
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}


def register(app: QuartTrio, engine: Engine) -> None:
    """Add the page of one engine."""

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
    body = _PAGE.format(title=title, text=text, form=form)
    return Response(body, status, headers=_HEADERS, content_type="text/html; charset=utf-8")
