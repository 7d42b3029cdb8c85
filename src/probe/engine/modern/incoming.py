"""One modern request with everything that is known about it: there is no session to remember any of it."""

from __future__ import annotations

from msgspec import Struct

from ...wire.jsonrpc import Request
from ...wire.v2026.meta import RequestMeta
from ..calls.request_context import RequestContext
from ..catalogue.offers import Offer


class Incoming(Struct, frozen=True):
    """A request that has climbed the ladder, what it says about itself, what its URL offers, and its context."""

    request: Request
    meta: RequestMeta
    offer: Offer
    context: RequestContext
