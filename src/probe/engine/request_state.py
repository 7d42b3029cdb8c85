"""`requestState`: the sealed state of a multi-round-trip request, which the client keeps between rounds.

2026-07-28 basic/patterns/mrtr: servers "MUST treat requestState as an attacker-controlled input", "MUST protect its
integrity (e.g. HMAC or AEAD)", and "SHOULD include … a short expiry" and "an identifier for the originating request".

A token is URL-safe Base64 of

    4 bytes   which key       for the rotation of keys: the first of the list seals, any of them opens
    12 bytes  nonce
    the rest  AES-256-GCM     of payload and expiry; the binding to the request is associated data and is not sent

For example, a client moves the state of one call into another call: the binding differs, and the state does not open. A
sealed state can be used again until it expires: single use is not promised.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from hashlib import sha256
from string import hexdigits
from typing import Any, Final

from ..settings.validation import SettingError
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import Json

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
"""The nonce size of AES-GCM. Random ones are unlikely to repeat before some 2**32 tokens of one key."""

_ID_BYTES = 4
_TAG_BYTES = 16


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

        Raises `McpError` -32602, always with the same words: from these a client must not learn how far a forged token
        got.
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
