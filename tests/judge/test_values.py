"""Values of a client as findings say them."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.values import shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ("1.0", '"1.0"'),
        (5, "5"),
        (5.0, "5.0"),
        ({"a": ["é"]}, '{"a": ["é"]}'),
        ("\ud800", '"\\ud800"'),
        ("x" * 100, '"' + "x" * 79 + "…"),
    ],
)
def test_a_value_stands_as_in_json(value: Any, text: str) -> None:
    assert shown(value) == text
    shown(value).encode()
