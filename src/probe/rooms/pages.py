"""The pages about rooms."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Final

from ..core.inbound import HttpHead
from ..server.endpoints.asgi import PREFIX, Scope
from .addresses import Addresses

_STYLE: Final = (
    "body{font:1.05rem/1.55 system-ui;max-width:46rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
    "button{font:inherit;padding:.4rem 1rem}dt{font-weight:600;margin-top:.8rem}dd{margin:0}"
    "code{overflow-wrap:anywhere;user-select:all}"
)
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # The address is a secret, and must not leave with a link.
    (b"referrer-policy", b"same-origin"),
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'".encode(),
    ),
)
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
<h1>{title}</h1>
{body}
"""
_LANDING: Final = """<p>MCP Probe is a diagnostic MCP server: your client calls its tools, and its dashboard shows
what really happened on the wire.</p>
<p>A room is a probe of your own under an address that only you know: with its own log, sessions, tasks, verdicts
and dashboard. Who has the address can see and do everything in it. There is no account.</p>
<form method="post" action="new"><button>Make a room</button></form>
<p>A room ends {idle} after its last use, and all of it is gone then: export what you want to keep.
Programs make one by <code>POST api/rooms</code>.</p>"""
_ROOM: Final = """<p>Who knows this address can see and do everything here. It ends {idle} after its last use,
and all of it is gone then: without a use from now on, at {ends}.</p>
{gap}<dl>{rows}</dl>
<p><a href="dashboard">Open the dashboard</a> · <a href="api/export.mcpprobe">Export everything</a>
(for <code>mcp-probe open</code>)</p>
<form method="post" action="end"><button>End this room now</button></form>
<p><a href="../../../new">Make another room</a></p>"""
_GAP: Final = """<p>The log has given up its {count} oldest entries: it keeps the newest {most}, and all rooms together
have a bound in bytes. Verdicts that need the others are INCONCLUSIVE.</p>
"""
_FULL: Final = """<p>{why}</p>
<p><a href="">Try again</a></p>"""
_REFUSED: Final = """<p>{why}</p>
<p><a href="{new}">Make another room</a></p>"""


def landing(idle_s: float) -> bytes:
    """The page at `/` of a server that has only rooms."""
    return _page("MCP Probe", _LANDING.format(idle=duration(idle_s)))


def room(
    addresses: Addresses, idle_s: float, expires_at: float, *, number: str | None, given_up: int, most_entries: int
) -> bytes:
    """The page of a room.

    `expires_at` is in seconds since 1970, `given_up` counts entries of the log, `number` is that of its telemetry.
    """
    named = {
        "MCP over HTTP": addresses.mcp,
        "MCP over WebSocket": addresses.websocket,
        "Tool hosts": addresses.toolhost,
        "Their secret": addresses.secret,
        "Dashboard": addresses.dashboard,
        "Dashboard to show to others, read-only": addresses.read_only.dashboard,
        **({"In the traces and logs of this server": f"mcp_probe.room={number}"} if number else {}),
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(url)}</code></dd>" for name, url in named.items())
    ends = datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    gap = _GAP.format(count=f"{given_up:,}", most=f"{most_entries:,}") if given_up else ""
    return _page("Your room", _ROOM.format(rows=rows, idle=duration(idle_s), ends=ends, gap=gap))


def ended() -> bytes:
    """The page after the end of a room."""
    return refused("This room has ended, and all of it is gone.", "../../../new", title="The room has ended")


def refused(why: str, new: str, *, title: str = "There is no room here") -> bytes:
    """The page of a refusal, with a link to `new`, which makes a room."""
    return _page(title, _REFUSED.format(why=escape(why), new=escape(new)))


def full(why: str, *, title: str = "No room can be opened now") -> bytes:
    """The page of a refusal that is over soon, with a link to itself."""
    return _page(title, _FULL.format(why=escape(why)))


def is_shown(scope: Scope, head: HttpHead) -> bool:
    """True if the answer to this request of a room is shown to a person."""
    is_page = scope["path"] == "/" or f"{scope['path']}/".startswith("/dashboard/")
    return is_page and head.method in ("GET", "HEAD") and "text/html" in head.all("accept")


def new_from(scope: Scope) -> str:
    """The relative address of `/new` from that of a request of a room, as a gateway may add a path before it."""
    prefix: str = scope[PREFIX]
    raw_path: bytes = scope["raw_path"]
    return "../" * (prefix.count("/") + raw_path.count(b"/") - 1) + "new"


def duration(seconds: float) -> str:
    """Seconds for people: `4 hours`, `90 seconds`."""
    for size, unit in ((3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            number = int(seconds // size)
            return f"{number} {unit}{'s' * (number != 1)}"
    return f"{seconds:g} seconds"


def _page(title: str, body: str) -> bytes:
    return _PAGE.format(title=title, style=_STYLE, body=body).encode()
