"""Cursors: opaque, tied to their list, and nothing else is one (2025-11-25 server/utilities/pagination)."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probe.engine.catalogue.offers import cursor, position
from probe.wire.errors import McpError


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@given(st.sampled_from(["tools", "tasks", "templates"]), st.integers(1, 10**9))
def test_a_cursor_leads_back_to_its_position(kind: str, after: int) -> None:
    assert position(kind, cursor(kind, after)) == after


def test_no_cursor_is_the_beginning() -> None:
    assert position("tools", None) == 0


@pytest.mark.parametrize(
    "given",
    [
        "",
        "x",
        "5",
        "tools:5",
        "é",
        "\0",
        cursor("tasks", 5),
        cursor("tools", 5) + "=",
        cursor("tools", 5) + " ",
        " " + cursor("tools", 5),
        cursor("tools", 0),
        cursor("tools", -1),
        encoded("tools:05"),
        encoded("tools:+5"),
        encoded("tools: 5"),
        encoded("tools:5_0"),
        encoded("tools:５"),
        encoded("tools:"),
        encoded("tools"),
        encoded("tools:5:5"),
        encoded("tools:" + "9" * 5000),
        base64.b64encode(b"\xff\xfe:5").decode(),
    ],
)
def test_anything_that_this_list_never_gave_is_refused(given: str) -> None:
    """ "Invalid cursors SHOULD result in an error with code -32602 (Invalid params)"."""
    with pytest.raises(McpError, match="not a cursor of this tools list") as caught:
        position("tools", given)
    assert caught.value.code == -32602


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")))
@example("AAAA")
def test_no_text_is_a_surprise(given: str) -> None:
    try:
        after = position("tools", given)
    except McpError as error:
        assert error.code == -32602
    else:
        assert cursor("tools", after) == given
