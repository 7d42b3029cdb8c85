"""The judge of elicitation forms: it agrees with JSON Schema, and says what is wrong by field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from probe.tools.features.questions import elicit_form, elicit_simple_form
from probe.tools.shared import filled_in, form, form_ask, problems
from probe.wire.errors import McpError
from probe.wire.jsonrpc import Json

from ..support.rows import each
from .fakes import FakeContext

BOUNDS = {"minimum": 0, "maximum": 10}
FORM = form(
    {
        "name": {"type": "string", "minLength": 2, "maxLength": 4},
        "count": {"type": "integer", **BOUNDS},
        "ratio": {"type": "number", **BOUNDS, "default": 2.5},
        "sure": {"type": "boolean", "default": True},
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri"},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "one": {"type": "string", "enum": ["a", "b"]},
        "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        "some": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b"]}},
        "others": {
            "type": "array",
            "minItems": 0,
            "maxItems": 1,
            "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        },
    }
)


def accepted(content: Any, schema: Json = FORM) -> list[str]:
    return problems(schema, {"action": "accept", "content": content})


FITTING: dict[str, list[Any]] = {
    "name": ["Al", "Adam", "éß", "\U0001f989\U0001f989"],
    "count": [0, 10, 5.0],
    "ratio": [0, 10, 0.5, 9.99],
    "sure": [True, False],
    "mail": ["a@b", "ada.lovelace+x@example.com", "ü@example.com"],
    "site": ["https://example.com/a?b#c", "mailto:a@b", "urn:x:y", "HTTP://X", "a:%C3%A9", "http://[::1]/"],
    "day": ["2026-07-28", "2024-02-29"],
    "moment": [
        "2026-07-28T12:00:00Z",
        "2026-07-28t12:00:00z",
        "2026-07-28T12:00:00+05:30",
        "2026-07-28T12:00:00.1234567891Z",
        "2016-12-31T23:59:60Z",
    ],
    "one": ["a", "b"],
    "titled": ["a", "b"],
    "some": [["a"], ["a", "b"]],
    "others": [[], ["b"]],
}

MISFITS: dict[str, tuple[str, list[Any]]] = {
    "name": ("a string of 2 to 4 characters", ["A", "Ada L", "", 12, None, ["Al"]]),
    "count": ("an integer from 0 to 10", [-1, 11, 0.5, "5", True, None]),
    "ratio": ("a number from 0 to 10", [-0.1, 10.1, "5", False, None]),
    "sure": ("true or false", [0, 1, "true", None]),
    "mail": ("an e-mail address", ["", "ada", "@b", "a@", "a b@c", "a@b@c", 5]),
    "site": ("a URI with its scheme", ["", "example.com", "//x/y", "/a", "1a:b", "a:b c", "a:é", "a:%zz", 5]),
    "day": ("a date such as 2026-07-28", ["", "2026-13-01", "2023-02-29", "20260728", "28.07.2026", "2026-W31-2", 5]),
    "moment": (
        "a date and time with offset such as 2026-07-28T12:00:00Z",
        [
            "2026-07-28",
            "2026-07-28T12:00",
            "2026-07-28T12:00:00",
            "2026-07-28 12:00:00Z",
            "2026-07-28T24:01:00Z",
            "2026-07-28T12:00:61Z",
            "2026-07-28T12:00:00+25:00",
            "2026-02-30T12:00:00Z",
            5,
        ],
    ),
    "one": ("one of a, b", ["A", "c", "", 5, ["a"], None]),
    "titled": ("one of a, b", ["A", "c", {"const": "a"}]),
    "some": ("1 to 2 of a, b", [[], ["a", "b", "a"], ["c"], "a", [["a"]], None]),
    "others": ("0 to 1 of a, b", [["a", "b"], ["A"], "", [None]]),
}


def test_the_tables_cover_every_field() -> None:
    assert list(FITTING) == list(MISFITS) == list(FORM["properties"])


@each("field, value", [(field, value) for field, values in FITTING.items() for value in values])
def test_what_fits_is_no_problem(field: str, value: Any) -> None:
    assert accepted({field: value}) == []


@each("field, value", [(field, value) for field, (_, bad) in MISFITS.items() for value in bad])
def test_what_does_not_fit_is_named_with_what_was_expected(field: str, value: Any) -> None:
    (sentence,) = accepted({field: value})
    assert sentence.startswith(f"{field} must be {MISFITS[field][0]}, got ")


def test_every_misfit_is_named_then_what_is_no_field() -> None:
    schema = form(FORM["properties"], ("name", "one"))
    assert accepted({"one": "c", "count": 11, "x": 1, "y": 2}, schema) == [
        "name is required",
        "count must be an integer from 0 to 10, got 11",
        'one must be one of a, b, got "c"',
        'the form has no field "x","y"',
    ]


def test_a_sentence_stays_short_whatever_was_sent() -> None:
    assert all(len(sentence) < 300 for sentence in accepted({"name": "x" * 10_000, "y" * 10_000: 1}))


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_only_an_accepted_form_has_content(action: str) -> None:
    """ElicitResult: "The submitted form data, only present when action is accept"."""
    assert problems(FORM, {"action": action}) == []
    assert problems(FORM, {"action": action, "content": {}}) == [
        f"content must be left out with the action {action}, got {{}}"
    ]


def test_an_accepted_form_has_content() -> None:
    assert problems(FORM, {"action": "accept"}) == ["content must be an object, got null"]


SMALL = {name: FORM["properties"][name] for name in ("name", "count", "ratio", "sure", "one", "titled", "some")}
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.floats(-1, 11),
    st.sampled_from(["a", "b", "c", "", "abcde"]),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*SMALL, "other"], ANYTHING)))
def test_the_judge_agrees_with_json_schema(content: Json) -> None:
    schema = form(SMALL, ("name",))
    oracle = Draft202012Validator({**schema, "additionalProperties": False})
    assert (accepted(content, schema) == []) == oracle.is_valid(content)


def test_filled_in_adds_defaults_to_what_was_sent() -> None:
    answer = {"action": "accept", "content": {"count": 3, "sure": False}}
    assert filled_in(FORM, answer) == {"ratio": 2.5, "sure": False, "count": 3}
    assert filled_in(FORM, {"action": "decline"}) is None
    assert filled_in(FORM, {"action": "cancel"}) is None


def test_filled_in_refuses_what_does_not_fit() -> None:
    with pytest.raises(McpError) as caught:
        filled_in(FORM, {"action": "accept", "content": {"count": 11, "sure": "no"}})
    assert caught.value.code == -32602
    assert caught.value.message == (
        "The answer does not fit the form: count must be an integer from 0 to 10, got 11; "
        'sure must be true or false, got "no"'
    )


def test_a_form_is_asked_by_elicitation() -> None:
    ask = form_ask("Well?", FORM)
    assert (ask.method, ask.params) == ("elicitation/create", {"message": "Well?", "requestedSchema": FORM})


@pytest.mark.parametrize("fields", ["all", "basic", "formats", "choices"])
async def test_every_form_of_the_tools_can_be_judged(fields: str) -> None:
    """A wrong value in each field is found; so no kind of field is one that the judge does not know."""
    context = FakeContext({"fields": fields}, answer={"action": "cancel"})
    await elicit_form(context)
    await elicit_simple_form(context)
    for _, schema, _ in context.of("elicit"):
        wrong = dict.fromkeys(schema["properties"])
        assert [sentence.split()[0] for sentence in accepted(wrong, schema)] == list(wrong)
