"""`requestState`: 2026-07-28 basic/patterns/mrtr, Server Requirements 4 and 5."""

from __future__ import annotations

import string
from base64 import urlsafe_b64decode
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.engine.modern.rounds import KEY_BYTES, NONCE_BYTES, RequestStates, keys_from
from probe.settings.description import SettingError
from probe.wire.errors import Code, McpError

OLD, NEW = b"o" * KEY_BYTES, b"n" * KEY_BYTES
BINDING = {"method": "tools/call", "name": "t", "arguments": {"a": 1, "b": [True, None]}}
PAYLOAD = {"round": 2, "said": {"name": "Ångström"}}
URL_SAFE = frozenset(string.ascii_letters + string.digits + "-_")


def nonces() -> Callable[[], bytes]:
    numbers = count()
    return lambda: next(numbers).to_bytes(NONCE_BYTES, "big")


def states(*keys: bytes) -> RequestStates:
    return RequestStates(keys, nonces())


def sealed(*keys: bytes, expires_at: float = 100.0) -> str:
    return states(*keys).seal(PAYLOAD, binding=BINDING, expires_at=expires_at)


def refusal(token: str, *keys: bytes, binding: Any = BINDING, now: float = 0.0) -> str:
    with pytest.raises(McpError) as caught:
        states(*keys).open(token, binding=binding, now=now)
    assert caught.value.code is Code.INVALID_PARAMS
    assert caught.value.data is None
    return caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.text(), JSON, max_size=4)


@given(OBJECT, OBJECT)
def test_what_is_sealed_opens(payload: dict[str, Any], binding: dict[str, Any]) -> None:
    token = states(NEW).seal(payload, binding=binding, expires_at=1.0)
    assert URL_SAFE.issuperset(token)
    assert states(NEW).open(token, binding=dict(reversed(binding.items())), now=0.0) == payload


def test_the_client_cannot_read_it() -> None:
    raw = urlsafe_b64decode(sealed(NEW) + "==")
    assert b"round" not in raw
    assert b"said" not in raw


def test_two_seals_of_one_payload_differ() -> None:
    ring = states(NEW)
    assert ring.seal(PAYLOAD, binding=BINDING, expires_at=1.0) != ring.seal(PAYLOAD, binding=BINDING, expires_at=1.0)


def test_no_single_character_can_be_changed_removed_or_added() -> None:
    token = sealed(NEW)
    said = {refusal(token + "-TAMPERED", NEW), refusal("A" + token, NEW), refusal(token[1:], NEW), refusal("", NEW)}
    for at, character in enumerate(token):
        for other in ("A", "_", "=", "é"):
            if other != character:
                said.add(refusal(token[:at] + other + token[at + 1 :], NEW))
        said.add(refusal(token[:at], NEW))
        said.add(refusal(token[:at] + token[at + 1 :], NEW) if token[at : at + 1] != token[at - 1 : at] else "")
    assert len(said - {""}) == 1


@pytest.mark.parametrize("suffix", ["=", "==", "\n", " ", "A", "."])
def test_a_token_has_one_spelling(suffix: str) -> None:
    token = sealed(NEW)
    assert states(NEW).open(token, binding=BINDING, now=0.0) == PAYLOAD
    refusal(token + suffix, NEW)


def test_leftover_bits_of_the_last_character_are_not_ignored() -> None:
    # Of a length that is no multiple of three, the last character has bits that Base64 readers drop.
    for extra in ("", "x", "xx"):
        token = states(NEW).seal({"p": extra}, binding=BINDING, expires_at=1.0)
        for last in URL_SAFE - {token[-1]}:
            refusal(token[:-1] + last, NEW)


@pytest.mark.parametrize(
    "binding",
    [
        {},
        {**BINDING, "method": "prompts/get"},
        {**BINDING, "name": "u"},
        {**BINDING, "arguments": {"a": 2, "b": [True, None]}},
        {**BINDING, "arguments": {"a": "1", "b": [True, None]}},
        {**BINDING, "arguments": {"a": True, "b": [True, None]}},
        {**BINDING, "arguments": {"a": 1, "b": [None, True]}},
        {**BINDING, "more": None},
    ],
)
def test_it_opens_for_the_request_it_was_made_for_and_no_other(binding: dict[str, Any]) -> None:
    refusal(sealed(NEW), NEW, binding=binding)


def test_it_expires_and_says_no_more_than_a_forged_one() -> None:
    token = sealed(NEW, expires_at=100.0)
    assert states(NEW).open(token, binding=BINDING, now=99.999) == PAYLOAD
    assert refusal(token, NEW, now=100.0) == refusal(token[:-2], NEW)


def test_keys_are_rotated_by_putting_the_new_one_first() -> None:
    old, new = sealed(OLD), sealed(NEW, OLD)
    assert states(NEW, OLD).open(old, binding=BINDING, now=0.0) == PAYLOAD
    assert states(NEW).open(new, binding=BINDING, now=0.0) == PAYLOAD
    refusal(new, OLD)
    refusal(old, NEW)


def test_a_token_cannot_be_moved_to_another_key() -> None:
    # Six characters of Base64 hold the four bytes that name the key, with four bits of the nonce.
    refusal(sealed(NEW)[:5] + sealed(OLD)[5:], NEW, OLD)


def test_keys_from_a_setting() -> None:
    assert keys_from("") == keys_from(" , ") == []
    assert keys_from(f" {NEW.hex()},{OLD.hex().upper()} ") == [NEW, OLD]
    every_digit = "0123456789abcdefABCDEF" + "0" * (2 * KEY_BYTES - 22)
    assert keys_from(every_digit) == [bytes.fromhex(every_digit)]


@pytest.mark.parametrize(
    "bad", ["secret-word", NEW.hex()[:-2], NEW.hex() + "00", NEW.hex()[:-1] + "g", "ab " * 21 + "a", "٤" * 64]
)
def test_a_bad_key_is_named_by_its_place_and_never_repeated(bad: str) -> None:
    with pytest.raises(SettingError) as caught:
        keys_from(f"{OLD.hex()},{bad}")
    assert "key 2" in str(caught.value)
    assert bad not in str(caught.value)
