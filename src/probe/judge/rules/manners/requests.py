"""Digests that are the same where two requests of a client are equal."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from ...projection.views import Message


def same_request(message: Message) -> bytes:
    """A digest that tells a request from others: of its method and its params, but for `_meta`."""
    params = {name: value for name, value in message.params.items() if name != "_meta"}
    return digest([message.method, params])


def same_body(message: Message) -> bytes:
    """A digest that tells a message from others: of all but its id."""
    value = message.value
    return digest({name: each for name, each in value.items() if name != "id"} if isinstance(value, dict) else value)


def digest(value: Any) -> bytes:
    """A digest that tells a JSON value from others, however long it is."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()
