"""Multi-round-trip requests: a request that needs input ends, and comes again with the answers.

    round    the client sends                        the work runs from its beginning, and
    1        the request                             asks A: the result is A's request and state {}
    2        the request, answer to A, state {}      asks A, which returns; asks B: B's request and state {A}
    3        the request, answer to B, state {A}     asks A and B, which return; the result is final

The client keeps the state as `requestState`, so a retry may reach another process with the same keys. 2026-07-28
basic/patterns/mrtr: servers "MUST treat requestState as an attacker-controlled input", "MUST protect its integrity
(e.g. HMAC or AEAD)", and "SHOULD include … a short expiry" and "an identifier for the originating request".

A token is URL-safe Base64 of

    4 bytes   which key       for the rotation of keys: the first of the list seals, any of them opens
    12 bytes  nonce
    the rest  AES-256-GCM     of payload and expiry; the binding to the request is associated data and is not sent

A sealed state can be used again until it expires: single use is not promised.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from string import hexdigits
from typing import Any, Final

from msgspec import Struct

from ...settings import Settings
from ...settings.description import SettingError
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, Request, clip
from ...wire.v2026.meta import RequestMeta, required_capabilities
from ...wire.v2026.registry import client_answer, offers
from ..catalogue.offers import Offer
from ..catalogue.tool import Ask, InputRequiredError
from ..clock import Clock
from ..messages import RequestContext

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
"""The nonce size of AES-GCM. Random ones are unlikely to repeat before some 2**32 tokens of one key."""
_ID_BYTES = 4
_TAG_BYTES = 16
# Members that belong to a round and not to the request, so they may differ between rounds.
_OF_THE_ROUND = frozenset({"_meta", "inputResponses", "requestState", "task"})


class Incoming(Struct, frozen=True):
    """A request that has passed the checks, its `_meta`, the offer of its URL, and its context."""

    request: Request
    meta: RequestMeta
    offer: Offer
    context: RequestContext


class RequestStates:
    """Seals and opens states. There is at least one of `keys`, of 32 bytes; `new_nonce` returns 12 random bytes."""

    def __init__(self, keys: Sequence[bytes], new_nonce: Callable[[], bytes]) -> None:
        self._ring = [(_key_id(key), key) for key in keys]
        self._new_nonce = new_nonce

    def seal(self, payload: Json, *, binding: Json, expires_at: float) -> str:
        """A token for `payload` that opens with an equal `binding` before `expires_at` (seconds by the same clock)."""
        id, key = self._ring[0]
        nonce = self._new_nonce()
        sealed = _cipher(key).encrypt(nonce, _canonical([payload, expires_at]), _canonical(binding))
        return urlsafe_b64encode(id + nonce + sealed).rstrip(b"=").decode()

    def open(self, token: str, *, binding: Json, now: float) -> Json:
        """The payload of a token.

        Raises `McpError` -32602, always with the same words: a client must not learn how far a forged token got.
        """
        for content in self._opened(_decoded(token), _canonical(binding)):
            payload, expires_at = json.loads(content)
            if now < expires_at:
                return payload  # type: ignore[no-any-return]
        why = "requestState is not from this server for this request, or it has expired"
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: {why}")

    def _opened(self, raw: bytes, bound: bytes) -> list[bytes]:
        from cryptography.exceptions import InvalidTag

        nonce, sealed = raw[_ID_BYTES : _ID_BYTES + NONCE_BYTES], raw[_ID_BYTES + NONCE_BYTES :]
        opened = []
        for key in [key for id, key in self._ring if id == raw[:_ID_BYTES]]:
            try:
                opened.append(_cipher(key).decrypt(nonce, sealed, bound))
            except InvalidTag:
                continue
        return opened


def keys_from(setting: str) -> list[bytes]:
    """The keys of a setting: 64 hexadecimal digits each, comma separated, the sealing one first; or none.

    Raises `SettingError`, without the value of the setting.
    """
    texts = [text.strip() for text in setting.split(",") if text.strip()]
    for number, text in enumerate(texts, 1):
        if len(text) != 2 * KEY_BYTES or not set(text) <= set(hexdigits):
            raise SettingError(f"request state key {number} must be {2 * KEY_BYTES} hexadecimal digits")
    return [bytes.fromhex(text) for text in texts]


def _key_id(key: bytes) -> bytes:
    return sha256(b"request state key id" + key).digest()[:_ID_BYTES]


def _cipher(key: bytes) -> Any:
    # To load OpenSSL takes longer than the rest of the start, and only multi-round-trip requests need it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _decoded(token: str) -> bytes:
    """The bytes of a token; empty for a too short one, and for a spelling that `seal` never makes."""
    try:
        raw = urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
    except (Base64Error, UnicodeEncodeError):
        return b""
    whole = len(raw) >= _ID_BYTES + NONCE_BYTES + _TAG_BYTES
    return raw if whole and urlsafe_b64encode(raw).rstrip(b"=") == token.encode() else b""


def check_declared(asks: Mapping[str, Ask], capabilities: Mapping[str, Any]) -> None:
    """Raise `McpError` -32021 for a question of a kind that the client did not declare.

    2026-07-28 basic/patterns/mrtr: "Servers MUST NOT send an `inputRequests` that the client has not declared".
    """
    wanted = [(ask.method, str(ask.params.get("mode", "form"))) for ask in asks.values()]
    missing = dict.fromkeys(
        method.partition("/")[0] + (".url" if mode == "url" else "")
        for method, mode in wanted
        if not offers(capabilities, method, mode)
    )
    if missing:
        why = f"Missing required client capability: {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))


def check_answers(asked: Mapping[str, str], responses: Mapping[str, Any]) -> None:
    """Raise `McpError` -32602 for an answer of the wrong form for its question; `asked` has the methods by key."""
    for key in responses:
        fault = client_answer(asked[key], responses[key]) if key in asked else None
        if fault is not None:
            where = f"params.inputResponses[{clip(key)!r}] answers {asked[key]}"
            raise McpError(Code.INVALID_PARAMS, f"Invalid params: {where}, but {fault}")


class RoundTrips:
    """Opens the rounds of one engine. Raises `SettingError` for unusable keys."""

    def __init__(self, settings: Settings, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        keys = keys_from(settings.request_state_keys) or [random_bytes(KEY_BYTES)]
        self._states = RequestStates(keys, partial(random_bytes, NONCE_BYTES))
        self._clock = clock
        self._ttl_s = settings.request_state_ttl_s
        self._max_bytes = settings.limits.max_request_state

    def open(self, incoming: Incoming) -> Rounds:
        """The rounds up to this request. Raises `McpError` -32602 for a state of another server or request."""
        params = incoming.request.params or {}
        state, memory = params.get("requestState"), {}
        if state is not None:
            memory = self._states.open(state, binding=_binding(incoming), now=self._clock.wall())
        return Rounds(self, incoming, memory, params.get("inputResponses") or {}, resumed=state is not None)

    def seal(self, memory: Json, incoming: Incoming) -> str:
        """Raises `McpError` -32602 for answers that make a state larger than a client may return."""
        expires_at = self._clock.wall() + self._ttl_s
        state = self._states.seal(memory, binding=_binding(incoming), expires_at=expires_at)
        if len(state) > self._max_bytes:
            why = f"the answers so far make a requestState of more than {self._max_bytes} bytes (max_request_state)"
            raise McpError(Code.INVALID_PARAMS, f"Invalid params: {why}")
        return state


def _binding(incoming: Incoming) -> Json:
    params = incoming.request.params or {}
    own = {key: value for key, value in params.items() if key not in _OF_THE_ROUND}
    return {"method": incoming.request.method, "selection": incoming.offer.selection, "params": own}


class Rounds:
    """The answers to a request in all its rounds; `memory` is the content of its sealed state."""

    def __init__(
        self, trips: RoundTrips, incoming: Incoming, memory: Json, given: Mapping[str, Any], *, resumed: bool
    ) -> None:
        self.resumed = resumed
        self._trips = trips
        self._incoming = incoming
        self._known: Json = memory.get("answers", {})
        self._kept: Json = memory.get("kept", {})
        self._given = given

    def keep(self, key: str, make: Callable[[], str]) -> str:
        """A value that is made in the round that needs it first, and is the same in all later rounds."""
        if key not in self._kept:
            self._kept[key] = make()
            # Such an answer is older than the new value.
            self._given = {name: answer for name, answer in self._given.items() if name != key}
        return str(self._kept[key])

    def answers(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """The client's results, by key.

        Raises `McpError` for a question that the client did not declare, and for an answer of the wrong form. Raises
        `InputRequiredError` while an answer is missing: its question is sent again, and the other answers are kept.
        """
        if not asks:
            return {}
        check_declared(asks, self._incoming.meta.capabilities)
        # A sealed answer stays: a second answer for its key is to a question that is no longer open.
        fresh = {key: self._given[key] for key in asks if key not in self._known and key in self._given}
        check_answers({key: ask.method for key, ask in asks.items()}, fresh)
        self._known.update(fresh)
        missing = {
            key: {"method": ask.method, "params": ask.params} for key, ask in asks.items() if key not in self._known
        }
        if missing:
            state = self._trips.seal({"answers": self._known, "kept": self._kept}, self._incoming)
            raise InputRequiredError({"inputRequests": missing, "requestState": state})
        return {key: self._known[key] for key in asks}
