"""The one way in and the one way out: bytes to messages, and back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probe.wire.jsonrpc import (
    MalformedError,
    Notification,
    RefusedResponse,
    Request,
    Response,
    classify,
    clip,
    encode,
    error_response,
    id_length,
    is_id,
    notification,
    parse,
    refused_responses,
    request,
    result_response,
    shown_id,
)

DEPTH = 8
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


# parse: UTF-8 JSON, RFC 8259.


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b' {"a": [1, -2.5, true, null]} \r\n', {"a": [1, -2.5, True, None]}),
        (b"0", 0),
        (b"1.0", 1.0),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b'"\\u00e9\\ud83d\\ude00"', "é😀"),
        ('"é😀"'.encode(), "é😀"),
        (b'"\\u0000"', "\0"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"1e-400", 0.0),
        (b"1e308", 1e308),
    ],
)
def test_json_is_read_with_its_types(body: bytes, value: Any) -> None:
    read = parse(body, max_depth=DEPTH)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.proves("2025-11-25/transports/1")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{} {}",
        b"[1,]",
        b"{'a': 1}",
        b"01",
        b"+1",
        b".5",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"// comment\n{}",
        b'"\n"',
        b'"\\x41"',
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'"\\ude00\\ud83d"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-32-be"),
    ],
)
def test_what_is_no_json_in_utf_8_is_a_syntax_error(body: bytes) -> None:
    with pytest.raises(MalformedError, match=r"^Parse error") as caught:
        parse(body, max_depth=DEPTH)
    assert caught.value.fault is not None
    assert caught.value.id is None


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "syntax"),
        (b'{"a":1', "syntax"),
        (b'{"a":1}{}', "syntax"),
        (b"\xef\xbb\xbf{}", "syntax"),
        (b'["\\ud800", 01]', "syntax"),
        (b'"\xff"', "encoding"),
        (b"[\xff", "encoding"),
        ("{}".encode("utf-16"), "encoding"),
        ("{}".encode("utf-16-be"), "encoding"),
        ("{}".encode("utf-32-le"), "encoding"),
        (b"[" * 100_000, "nesting"),
        (b"[NaN]", "number"),
        (b'{"a":[-Infinity, NaN]}', "number"),
        (b"9" * 5000, "number"),
        (b"[1e400]", "number"),
        (b'"\\ud800"', "surrogate"),
        (b'["\\udc00x"]', "surrogate"),
    ],
)
def test_what_rfc_8259_allows_is_told_from_what_it_forbids(body: bytes, fault: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(body, max_depth=DEPTH)
    assert caught.value.fault == fault


@pytest.mark.parametrize("levels", [1, 2, DEPTH])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_up_to_the_bound_is_read(levels: int, opening: bytes, closing: bytes) -> None:
    parse(opening * levels + b"1" + closing * levels, max_depth=DEPTH)
    parse(opening * (levels - 1) + b"[]" + closing * (levels - 1), max_depth=DEPTH)


@pytest.mark.parametrize("levels", [DEPTH + 1, 100, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_beyond_the_bound_is_refused(levels: int, opening: bytes, closing: bytes) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(opening * levels + b"1" + closing * levels, max_depth=DEPTH)
    assert caught.value.fault == "nesting"


def test_brackets_side_by_side_or_inside_strings_are_no_depth() -> None:
    assert len(parse(b"[" + b",".join([b"[]"] * 1000) + b"]", max_depth=2)) == 1000
    assert parse(b'"' + b"[" * 1000 + b'"', max_depth=DEPTH) == "[" * 1000


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,400})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?", fullmatch=True),
    st.sampled_from(["%s", "[%s]", '{"a": [{"b": %s}]}']),
)
@example("1e400", "%s")
@example("9" * 290 + "e30", "%s")
@example("9" * 310 + ".0", "[%s]")
@example("0." + "0" * 300 + "1e700", "[%s]")
@example("1.5E+00400", '{"a": [{"b": %s}]}')
def test_every_number_is_finite_or_refused(number: str, around: str) -> None:
    """A number read as infinity could never be written again."""
    try:
        value = parse((around % number).encode(), max_depth=DEPTH)
    except MalformedError as error:
        assert error.fault == "number"
        assert math.isinf(float(number)), "only a number beyond all doubles is refused"
    else:
        assert json.loads(encode(value), parse_constant=pytest.fail) == json.loads(around % number)


# classify: JSON-RPC 2.0 as 2025-11-25 basic, Messages narrows it.

V = {"jsonrpc": "2.0"}
ERROR = {"code": -32000, "message": "no"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({**V, "id": 5, "method": "ping"}, Request(5, "ping", None)),
        ({**V, "id": "5", "method": "ping", "params": {}}, Request("5", "ping", {})),
        ({**V, "id": "", "method": "ping"}, Request("", "ping", None)),
        ({**V, "id": 0, "method": "ping"}, Request(0, "ping", None)),
        ({**V, "id": -(2**70), "method": "ping"}, Request(-(2**70), "ping", None)),
        ({**V, "id": 5, "method": "ping", "extra": 1}, Request(5, "ping", None)),
        ({**V, "method": "m", "params": {"a": 1}}, Notification("m", {"a": 1})),
        ({**V, "method": "m"}, Notification("m", None)),
        ({**V, "id": 5, "result": {}}, Response(5, {}, None)),
        ({**V, "id": "x", "error": ERROR}, Response("x", None, ERROR)),
        # The sender of an error may have been unable to read the id it should name.
        ({**V, "error": ERROR}, Response(None, None, ERROR)),
        ({**V, "id": None, "error": ERROR}, Response(None, None, ERROR)),
    ],
)
def test_a_message_is_recognised(value: Any, message: Any) -> None:
    found = classify(value)
    assert found == message
    assert type(found) is type(message)
    assert type(getattr(found, "id", None)) is type(getattr(message, "id", None))


@pytest.mark.parametrize(
    ("value", "id", "about"),
    [
        (None, None, "got null"),
        (1, None, "got an integer"),
        (1.5, None, "got a number"),
        (True, None, "got a boolean"),
        ("ping", None, "got a string"),
        ([], None, "got an array"),
        ({}, None, '"jsonrpc"'),
        ({"jsonrpc": "1.0", "id": 5, "method": "ping"}, 5, '"jsonrpc"'),
        ({"jsonrpc": 2.0, "id": 5, "method": "ping"}, 5, '"jsonrpc"'),
        ({"id": 5, "method": "ping"}, 5, '"jsonrpc"'),
        # the id of an answer is the receiver's own
        ({"jsonrpc": "1.0", "id": 5, "result": {}}, None, '"jsonrpc"'),
        (V, None, "neither"),
        # meant as an answer, as it has neither method nor params
        ({**V, "id": 5}, None, "neither"),
        ({"jsonrpc": "1.0", "id": 5}, None, '"jsonrpc"'),
        ({**V, "id": 5, "params": {}}, 5, "neither"),
        ({**V, "id": 5, "method": ""}, 5, '"method"'),
        ({**V, "id": 5, "method": None}, 5, '"method" must be a non-empty string, got null'),
        ({**V, "id": 5, "method": 7}, 5, '"method"'),
        # "the ID MUST NOT be null"
        ({**V, "id": None, "method": "ping"}, None, '"id" must be a string or an integer, got null'),
        ({**V, "id": 1.0, "method": "ping"}, None, '"id"'),
        ({**V, "id": 1.5, "method": "ping"}, None, '"id"'),
        ({**V, "id": True, "method": "ping"}, None, '"id" must be a string or an integer, got a boolean'),
        ({**V, "id": [1], "method": "ping"}, None, '"id"'),
        ({**V, "id": {}, "method": "ping"}, None, '"id"'),
        ({**V, "id": 5, "method": "ping", "params": None}, 5, '"params" must be an object, got null'),
        ({**V, "id": 5, "method": "ping", "params": []}, 5, '"params" must be an object, got an array'),
        ({**V, "method": "ping", "params": 1}, None, '"params"'),
        ({**V, "id": 5, "result": {}, "error": ERROR}, None, 'either "result" or "error"'),
        ({**V, "id": 5, "result": None}, None, '"result" must be an object, got null'),
        ({**V, "id": 5, "result": []}, None, '"result"'),
        ({**V, "result": {}}, None, '"id" of its request'),
        ({**V, "id": None, "result": {}}, None, '"id" of its request'),
        ({**V, "id": 1.0, "error": ERROR}, None, '"id" of its request'),
        ({**V, "id": 5, "error": None}, None, '"error"'),
        ({**V, "id": 5, "error": {}}, None, '"error"'),
        ({**V, "id": 5, "error": {"code": "1", "message": "no"}}, None, '"error"'),
        ({**V, "id": 5, "error": {"code": True, "message": "no"}}, None, '"error"'),
        ({**V, "id": 5, "error": {"code": 1.5, "message": "no"}}, None, '"error"'),
        ({**V, "id": 5, "error": {"code": 1, "message": None}}, None, '"error"'),
    ],
)
def test_anything_else_is_malformed_and_says_about_what(value: Any, id: Any, about: str) -> None:
    """The id is there where a request of the sender can be recognised, so that it gets its answer."""
    with pytest.raises(MalformedError, match=r"^Invalid Request") as caught:
        classify(value)
    assert about in str(caught.value)
    assert (caught.value.fault, caught.value.id) == (None, id)


ONE = RefusedResponse(1, "why")
OF_A_BATCH = "it came in a batch that is refused: why"


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ({**V, "id": 1, "result": 5}, [ONE]),
        ({**V, "id": 1, "result": {}, "error": ERROR}, [ONE]),
        ({**V, "id": 1}, [ONE]),
        ({"id": 1, "result": {}}, [ONE]),
        ({**V, "id": "1", "error": 5}, [RefusedResponse("1", "why")]),
        # requests of the sender, who numbers them itself
        ({**V, "id": 1, "method": 5}, []),
        ({**V, "id": 1, "params": {}}, []),
        # nobody knows what these answer
        ({**V, "result": 5}, []),
        ({**V, "id": 1.0, "result": {}}, []),
        ({**V, "id": True, "result": {}}, []),
        (5, []),
        # a batch is refused as a whole, with what is well formed in it
        (
            [5, {**V, "id": 1, "result": {}}, {**V, "id": 2}, [{**V, "id": 3}]],
            [RefusedResponse(1, OF_A_BATCH, malformed=False), RefusedResponse(2, OF_A_BATCH)],
        ),
    ],
)
def test_the_answers_in_what_was_refused_are_found(value: Any, answers: list[RefusedResponse]) -> None:
    found = refused_responses(value, "why")
    assert found == answers
    assert [type(answer.id) for answer in found] == [type(answer.id) for answer in answers]


@given(json_values)
@example({**V, "id": 10**5000, "method": 10**5000})
def test_no_json_value_surprises_classify(value: Any) -> None:
    try:
        assert isinstance(classify(value), Request | Notification | Response)
    except MalformedError as error:
        assert error.fault is None


# Ids and tokens.


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (-1, True), (2**70, True), ("", True), ("x", True)]
    + [(value, False) for value in (None, True, False, 1.0, 1.5, [], {})],
)
def test_an_id_is_a_string_or_an_integer(value: Any, expected: bool) -> None:
    assert is_id(value) is expected


@pytest.mark.parametrize("id", [0, 5, -5, 10**17, -(10**255), 10**4000, "", "x", "x" * 300])
def test_the_length_of_an_id_is_about_the_number_of_its_characters(id: int | str) -> None:
    exact = len(id) if isinstance(id, str) else math.floor(math.log10(abs(id) or 1)) + 1
    assert id_length(id) == pytest.approx(exact, rel=0.05, abs=1)


def test_an_id_is_shown_with_its_type_and_cut_where_it_is_long() -> None:
    assert (shown_id(5), shown_id("5"), shown_id(None)) == ("5", "'5'", "None")
    assert len(shown_id("x" * 1000)) < 100
    assert (clip("abc", 3), clip("abcd", 3)) == ("abc", "abc…")


# The way out.


def test_messages_as_json_values() -> None:
    assert request(5, "m", None) == {**V, "id": 5, "method": "m"}
    assert request("5", "m", {}) == {**V, "id": "5", "method": "m", "params": {}}
    assert notification("m", None) == {**V, "method": "m"}
    assert notification("m", {"a": 1}) == {**V, "method": "m", "params": {"a": 1}}
    assert result_response(0, {}) == {**V, "id": 0, "result": {}}
    assert error_response("", ERROR) == {**V, "id": "", "error": ERROR}


@pytest.mark.parametrize(
    "value",
    [
        request(5, "m", {"a": 1}),
        request("5", "m", None),
        notification("m", {"a": 1}),
        notification("m", None),
        result_response(0, {"a": 1}),
        error_response("", ERROR),
    ],
)
def test_what_goes_out_would_be_recognised_on_the_way_in(value: Any) -> None:
    sent = classify(parse(encode(value), max_depth=DEPTH))
    parts = {name: getattr(sent, name) for name in type(sent).__annotations__}
    assert {**V, **{name: part for name, part in parts.items() if part is not None}} == value


@given(json_values)
def test_encoding_keeps_every_value_and_its_type(value: Any) -> None:
    body = encode(value)
    assert repr(parse(body, max_depth=100)) == repr(value)
    assert repr(json.loads(body)) == repr(value), "an independent parser reads the same"


@given(json_values)
@example("a\r\nb\x0b\x0c\x1c\x85\u2028\u2029c")
def test_encoding_is_one_line_and_compact(value: Any) -> None:
    body = encode(value)
    assert not {b"\r", b"\n"} & {body[at : at + 1] for at in range(len(body))}
    assert body.decode() == body.decode().strip(" ")


@pytest.mark.proves("2025-11-25/transports/1")
def test_encoding_is_plain_utf_8() -> None:
    assert encode({"a": ["é", "😀"], "b": 1}) == '{"a":["é","😀"],"b":1}'.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_number_for_goes_out_as_null(number: float) -> None:
    """RFC 8259, 6: "Numeric values that cannot be represented … (such as Infinity and NaN) are not permitted"."""
    assert encode({"a": [number]}) == b'{"a":[null]}'
