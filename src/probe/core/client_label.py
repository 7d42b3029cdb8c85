"""The name that a person gives a client, so that its entries can be found in the log.

`?client=NAME` in the URL of /mcp and /ws, and `MCP_PROBE_CLIENT` on standard streams.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs

LABEL_RULE: Final = "1 to 64 characters: letters, digits, '.', '-' and '_', and neither '.', '..' nor 'rules'"
_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# A client's name is a part of the paths of its pages: the first two mean another place there, and the last one is
# the list of rules (`/api/judge/rules`).
_TAKEN: Final = frozenset({".", "..", "rules"})


def client_label(query: str) -> str | None:
    """The `?client=` of a query, whatever it is; None without one. Of several the values are joined by commas."""
    given = parse_qs(query, keep_blank_values=True).get("client")
    return None if given is None else ",".join(given)


def is_client_label(name: str) -> bool:
    """Whether a name keeps `LABEL_RULE`."""
    return _LABEL.fullmatch(name) is not None and name not in _TAKEN
