"""Answers of a gateway on one line: why it did not lead to the probe, and what to do about it."""

from __future__ import annotations

import re
from typing import Final

from .client.records import ClientExchange

# Printable characters only: others, such as ESC, could move the cursor of a terminal.
_HIDDEN: Final = re.compile(r"[^\x20-\x7e\u00a1-\ud7ff\ue000-\ufffd]+")
_UNTRUSTED: Final = re.compile(r"certificate verify failed: (.*?)(?: \(_ssl|$)", re.IGNORECASE)
_NO_TLS: Final = re.compile("wrong.version.number|record.layer.failure", re.IGNORECASE)
_WANTS_TLS: Final = re.compile(
    "plain HTTP request was sent to HTTPS port|HTTP request to an HTTPS server", re.IGNORECASE
)
_MOST_BODY: Final = 120


def clean(text: str) -> str:
    """The text on one line, without control characters."""
    return _HIDDEN.sub(" ", text)


def is_final(answer: ClientExchange) -> bool:
    """True if later requests fail, too: the certificate is not trusted, or the server has no TLS."""
    return _of_tls(answer) != ""


def why(url: str, answer: ClientExchange) -> str:
    """The reason why this answer is not a probe's, on one line."""
    return clean(f"{url} {_of_tls(answer) or _of_status(answer) or _of_answer(answer)}")


def why_no_log(url: str, answer: ClientExchange) -> str:
    """The reason why the event log cannot be read at this address of an API, on one line."""
    if answer.status == 404:
        advice = "give the address of the probe without /mcp, such as http://host"
        return clean(f"{url} is no API of a probe (404{_body(answer)}): {advice}")
    return why(url, answer)


def _of_tls(answer: ClientExchange) -> str:
    untrusted = _UNTRUSTED.search(answer.problem)
    if untrusted is not None:
        return f"has a certificate that is not trusted ({untrusted[1]}): trust it with --cafile FILE, or use --insecure"
    if _NO_TLS.search(answer.problem):
        return "does not speak TLS: its address begins with http://"
    return ""


def _of_status(answer: ClientExchange) -> str:
    if answer.status is None:
        return f"cannot be reached: {answer.problem or answer.end}"
    if _WANTS_TLS.search(answer.body):
        return "speaks TLS: its address begins with https://"
    if answer.status == 401:
        asked = answer.header("www-authenticate")
        scheme = f", WWW-Authenticate: {asked[:_MOST_BODY]}" if asked else ""
        return f"wants to know who asks (401{scheme}): give the gateway --header 'Authorization: Bearer …'"
    if answer.status in (404, 405):
        return f"has no MCP endpoint at this path ({answer.status}): give the whole address, such as http://host/mcp"
    return ""


def _of_answer(answer: ClientExchange) -> str:
    error = (answer.answer or {}).get("error")
    if isinstance(error, dict):
        return f"answers with an error: {error.get('code')}, {str(error.get('message'))[:_MOST_BODY]!r}"
    if answer.status == 403:
        return f"refuses this (403{_body(answer)}); the probe itself does so for a Host that a gateway has replaced"
    return f"leads to no probe: {answer.method} got {answer.status}, {answer.end}{_body(answer)}"


def _body(answer: ClientExchange) -> str:
    last = answer.messages[-1].message if answer.messages else None
    # The reason of a problem (RFC 9457), such as that a room has ended.
    detail = None if last is None else last.get("detail")
    said = detail if isinstance(detail, str) else answer.body
    return f": {clean(said)[:_MOST_BODY]}" if said else ""
