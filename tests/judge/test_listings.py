"""The lists as they were delivered."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.clients.listings import ListPage, Lists, Pages
from probe.judge.judge import Judge
from probe.judge.rules.catalogue import catalogue

from .logs import HEADER, Log


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
    for number, support, at in ((1, "required", 10.0), (2, "forbidden", 20.0), (1, "required", 30.0)):
        lists.deliver(*page(number, support), at, None, None)
    # Asked as of a moment, so what was delivered later changes nothing.
    support = {at: getattr(lists.tool("t", at, 5), "task_support", None) for at in (9.0, 15.0, 21.0, 26.0, 31.0, 36.0)}
    assert support == {9.0: None, 15.0: "required", 21.0: None, 26.0: "forbidden", 31.0: None, 36.0: "required"}
    assert [lists.listed("t", at) for at in (10.0, 15.0, 40.0)] == [None, 10.0, 30.0]
    # Nothing differs, so it does not matter which of the two it was.
    lists = Lists()
    lists.deliver(*page(3, "forbidden"), 10.0, None, None)
    lists.deliver(*page(4, "forbidden"), 30.0, None, None)
    assert lists.tool("t", 31.0, 5) is not None


def test_that_older_lists_made_room_is_remembered():
    lists = Lists()
    for number in range(64):
        lists.deliver(*page(number, cursor=f"c{number}"), number, None, None)
    assert lists.forgot == float("inf")
    assert lists.gave("tools/list", "c0", 1.0)
    assert not lists.gave("tools/list", "c1", 1.0)
    lists.deliver(*page(64), 70.0, None, None)
    assert lists.forgot == 70.0


def test_lists_belong_to_their_session_and_to_the_client():
    log = Log()
    client = log.http()
    one, two = client.session(), client.session()
    one.answer(one.request("resources/list"), {"resources": [], "nextCursor": "c"})
    two.request("resources/list", {"cursor": "c"})
    judge = Judge(catalogue(), {})
    judge.begin(HEADER)
    for item in log.items:
        judge.take(item)
    (subject,) = (each for each in judge.subjects if each.label == "acme")
    known, later = subject.known, log.now + 1
    first, second = known.offered
    assert known.lists.first_session("resources/list", "c", later) is first
    assert known.lists_of(first).gave("resources/list", "c", later)
    assert not known.lists_of(second).gave("resources/list", "c", later)


@pytest.mark.parametrize("tools", [True, {}, ["x", {"name": 1}], [{"name": "t", "inputSchema": {"properties": [1]}}]])
def test_a_list_of_any_shape_is_read(tools: Any):
    _, page = Pages().read("tools/list", b"", lambda: {"tools": tools, "nextCursor": 1, "ttlMs": "x"})
    assert (page.next_cursor, page.ttl_ms) == (None, None)
    assert set(page.tools) <= {"t"}
