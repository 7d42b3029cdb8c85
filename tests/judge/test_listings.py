"""The lists as they were delivered."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.projection.listings import ListPage, Lists, Pages, known_tool
from probe.judge.rules.all import PREDICATES

from .logs import Log, judged


def page(number: int, support: str | None = None, cursor: str | None = None) -> tuple[bytes, ListPage]:
    tool = {"name": "t", "execution": {"taskSupport": support}}
    result: dict[str, Any] = {"tools": [tool], "nextCursor": cursor}
    return Pages().read("tools/list", b'"result":%d' % number, lambda: result)


def test_equal_pages_are_read_once():
    pages, read = Pages(), []

    def value() -> dict[str, Any]:
        read.append(1)
        return {"tools": [{"name": "a"}, {"name": 1}, "x"], "nextCursor": "c", "ttlMs": 5}

    first = pages.read("tools/list", b'{"id":1,"result":{}}', value)
    assert pages.read("tools/list", b'{"id":2,"result":{}}', value) == first
    assert len(read) == 1
    assert pages.read("prompts/list", b'{"id":2,"result":{}}', value)[1].tools == {}
    assert set(first[1].tools) == {"a"}
    assert (first[1].next_cursor, first[1].ttl_ms) == ("c", 5)


def test_the_newest_list_counts_once_it_had_time_to_arrive():
    lists = Lists()
    lists.deliver(*page(1, "required"), 10.0, None, None)
    lists.deliver(*page(2, "forbidden"), 20.0, None, None)
    support = {at: getattr(known_tool(lists, "t", at, 5), "task_support", None) for at in (9.0, 15.0, 21.0, 26.0)}
    assert support == {9.0: None, 15.0: "required", 21.0: None, 26.0: "forbidden"}
    # Nothing differs, so it does not matter which of the two it was.
    lists.deliver(*page(3, "forbidden"), 30.0, None, None)
    assert known_tool(lists, "t", 40.0, 5) is not None


def test_that_older_lists_fell_out_is_remembered():
    lists = Lists()
    for number in range(64):
        lists.deliver(*page(number, cursor=f"c{number}"), number, None, "s1")
    assert not lists.fell_out
    assert lists.gave("tools/list", "c0")
    lists.deliver(*page(64), 70.0, None, None)
    assert lists.fell_out


def test_lists_belong_to_their_session_and_to_the_subject(monkeypatch):
    lives = []
    monkeypatch.setattr(PREDICATES["ping.answered"], "setup", lambda self: lives.append(self.life), raising=False)
    log = Log()
    client = log.http()
    one, two = client.session(), client.session()
    one.answer(one.request("resources/list"), {"resources": [], "nextCursor": "c"})
    one.get().tell("notifications/resources/list_changed")
    two.request("resources/list", {"cursor": "c"})
    judged(log)
    life = lives[0]
    first, second = life.sessions.values()
    assert life.lists.first_session("resources/list", "c") == first.label
    assert first.lists.gave("resources/list", "c")
    assert not second.lists.gave("resources/list", "c")
    assert set(first.lists.changed) == {"resources/list", "resources/templates/list"}
    assert not second.lists.changed


@pytest.mark.parametrize("tools", [True, {}, ["x", {"name": 1}], [{"name": "t", "inputSchema": {"properties": [1]}}]])
def test_a_list_of_any_shape_is_read(tools: Any):
    _, page = Pages().read("tools/list", b"", lambda: {"tools": tools, "nextCursor": 1, "ttlMs": "x"})
    assert (page.next_cursor, page.ttl_ms) == (None, None)
    assert set(page.tools) <= {"t"}
