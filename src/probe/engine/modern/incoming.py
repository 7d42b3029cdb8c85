"""One modern request with all its data, since no session keeps any of it."""

from __future__ import annotations

from msgspec import Struct

from ...wire.jsonrpc import Request
from ...wire.v2026.meta import RequestMeta
from ..calls.request_context import RequestContext
from ..catalogue.offers import Offer


class Incoming(Struct, frozen=True):
    """A request that has passed the checks, its `_meta`, the offer of its URL, and its context."""

    request: Request
    meta: RequestMeta
    offer: Offer
    context: RequestContext
