"""Mcp-Name and Mcp-Param-*: 2026-07-28 basic/transports/streamable-http, Value Encoding."""

from __future__ import annotations

import math
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probe.wire.v2026.headers import SAFE_INTEGER, HeaderValueError, decode, encode, same

TEXT = st.text(st.characters(codec="utf-8"))
SAFE = st.integers(-SAFE_INTEGER, SAFE_INTEGER)


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", ""),
        ("a b", "a b"),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        (True, "true"),
        (False, "false"),
        (42, "42"),
        (-7, "-7"),
        (42.0, "42"),
        (SAFE_INTEGER, "9007199254740991"),
    ],
)
def test_the_examples_of_the_specification_and_the_edges(value: str | float, header: str) -> None:
    assert encode(value) == header
    assert same(header, value)


@given(TEXT)
@example("=?base64?")
@example("=?base64?=")
@example("?=")
@example("=?base64??=")
@example("\x00")
@example("\x7f")
def test_every_text_survives_and_every_header_is_legal(value: str) -> None:
    header = encode(value)
    assert header == header.strip(" \t")
    assert all("\x20" <= character <= "\x7e" for character in header)
    assert decode(header) == value
    assert same(header, value)


@given(TEXT, TEXT)
def test_two_texts_are_the_same_when_they_are_equal(one: str, other: str) -> None:
    assert same(encode(one), other) == (one == other)


@given(SAFE | st.booleans(), SAFE | st.booleans())
@example(1, True)
@example(0, False)
def test_two_scalars_are_the_same_when_kind_and_value_are(one: int, other: int) -> None:
    assert same(encode(one), other) == (type(one) is type(other) and one == other)


@given(SAFE)
def test_an_integer_may_be_spelled_with_a_fraction_or_encoded(value: int) -> None:
    assert same(f"{value}.0", value)
    assert same(str(value), float(value))
    assert same(f"=?base64?{b64encode(str(value).encode()).decode()}?=", value)
    assert not same(f"{value}.5", value)


# What a lenient reader would let through.
HOSTILE_BASE64 = [
    "=?base64?SGVsbG8?=",  # padding missing
    "=?base64?SGVsbG8==?=",  # padding surplus
    "=?base64?SGVsbG8=x?=",  # something after the padding
    "=?base64?=SGVsbG8?=",  # padding first
    "=?base64?SGVs!!!bG8=?=",  # outside the alphabet
    "=?base64?SGVs bG8=?=",  # a space, which MIME readers skip
    "=?base64?SGVs\tbG8=?=",
    "=?base64?SGVsbG9=?=",  # leftover bits that are not zero
    "=?base64?__-_?=",  # the URL-safe alphabet
    "=?base64?/w==?=",  # FF: no UTF-8
    "=?base64?wIA=?=",  # C0 80: an overlong NUL
    "=?base64?7aCA?=",  # ED A0 80: a lone surrogate
    "=?base64?====?=",
    "=?base64?A?=",
]


@pytest.mark.parametrize("header", HOSTILE_BASE64)
def test_base64_that_nobody_should_write_is_refused(header: str) -> None:
    with pytest.raises(HeaderValueError, match="Base64"):
        decode(header)


@pytest.mark.parametrize(
    "header",
    [
        "SGVsbG8=",
        "=?base64?SGVsbG8=",
        "SGVsbG8=?=",
        "=?BASE64?SGVsbG8=?=",
        "=?Base64?SGVsbG8=?=",
        "=?utf-8?B?SGVsbG8=?=",
        " =?base64?SGVsbG8=?=",
        "=?base64?=",
        "a\tb",
    ],
)
def test_without_both_markers_exactly_as_shown_a_value_is_literal(header: str) -> None:
    assert decode(header) == header


def test_an_empty_payload_is_the_empty_text() -> None:
    assert decode("=?base64??=") == ""


@pytest.mark.parametrize("character", ["\x00", "\n", "\r", "\x1f", "\x7f", "\x80", "é", "世"])
def test_characters_that_no_header_may_have_are_refused_even_if_the_body_has_them_too(character: str) -> None:
    for header in (character, f"a{character}", f"=?base64?{character}?="):
        with pytest.raises(HeaderValueError, match="characters"):
            same(header, header)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("True", True),
        ("1", True),
        ("TRUE", True),
        ("true ", True),
        ("0", False),
        ("", False),
        ("1", 2),
        ("", 0),
        ("+42", 42),
        (" 42", 42),
        ("4_2", 42),
        ("4.2e1", 42),
        ("0x2a", 42),
        ("42.", 42),
        (".0", 0),
        ("٤٢", 42),
        ("=?base64?2aTZog==?=", 42),  # the same digits
        ("NaN", 42),
        ("Infinity", 42),
        ("42.0000000000000000000000000000000000001", 42),
        ("42", "42.0"),
        ("A", "a"),
    ],
)
def test_what_is_not_the_same(header: str, value: str | float) -> None:
    try:
        assert not same(header, value)
    except HeaderValueError:
        assert not header.isascii()


@pytest.mark.parametrize("value", [SAFE_INTEGER + 1, -SAFE_INTEGER - 1, 10**400, 1e300, 1.5, -math.inf])
def test_numbers_that_two_readers_may_read_differently_are_refused(value: float) -> None:
    with pytest.raises(HeaderValueError, match="integer between"):
        encode(value)
    with pytest.raises(HeaderValueError, match="integer between"):
        same("1", value)


def test_a_number_of_thirty_thousand_digits_is_compared_not_converted() -> None:
    assert not same("9" * 30_000, 9)
    assert same("0" * 30_000 + "9", 9)
