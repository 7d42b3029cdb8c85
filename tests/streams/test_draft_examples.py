"""The JSON of the draft "Streams", as it stands there: what it shows is sent, and what it shows comes."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

import json
from itertools import count
from typing import Any

import trio
from trio.testing import MockClock

from ..support.probe import Probe
from .links import CREATE, END, Link, is_method, linked, mark, sequences, shape, steps
from .tools import SLOW

ID = "550e8400-e29b-41d4-a716-446655440000"
CREATE_EXAMPLE = """{
  "jsonrpc": "2.0",
  "method": "notifications/stream/create",
  "params": {
    "stream": {
      "streamId": "550e8400-e29b-41d4-a716-446655440000",
      "resumeInterval": {
        "min": 5,
        "max": 3600
      }
    }
  }
}"""
RESUME_EXAMPLE = """{
  "jsonrpc": "2.0",
  "method": "stream/resume",
  "params": {
    "streamId": "550e8400-e29b-41d4-a716-446655440000"
  }
}"""
POLL_EXAMPLE = """{
  "jsonrpc": "2.0",
  "id": 2,
  "method": "stream/poll",
  "params": {
    "streamId": "550e8400-e29b-41d4-a716-446655440000"
  }
}"""
POLL_RESULT_EXAMPLE = """{
  "jsonrpc": "2.0",
  "id": 2,
  "result": {
    "streamId": "550e8400-e29b-41d4-a716-446655440000",
    "status": "live",
    "pendingMessages": true,
    "hasRequest": false,
    "hasError": false
  }
}"""
END_EXAMPLE = """{
  "jsonrpc": "2.0",
  "method": "notifications/stream/end",
  "params": {
    "streamId": "550e8400-e29b-41d4-a716-446655440000"
  }
}"""


def example(text: str, stream: str) -> Any:
    assert ID in text
    return json.loads(text.replace(ID, stream))


def same(message: dict[str, Any], text: str, stream: str) -> bool:
    """Whether a message is an example, to the character, but for what this server adds in `_meta`."""
    assert mark(message)["streamId"] == stream
    bare = {**message, "params": {name: value for name, value in message["params"].items() if name != "_meta"}}
    return json.dumps(bare) == json.dumps(example(text, stream))


async def test_create_and_end(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("chatty")
    (*_, end) = await link.until(is_method(END))
    assert same(link.heard[0], CREATE_EXAMPLE, stream)
    assert same(end, END_EXAMPLE, stream)


async def test_poll(probe: Probe, transport: str, autojump_clock: MockClock) -> None:
    async with linked(probe, transport, ids=count(100)) as link:
        stream = await link.start("progress", SLOW, id="it", token="t")
        link = await link.back(2.5)
        # A connection that has not proved whose it is does so with any request.
        await prove(link, stream)
        link.client.methods[2] = ("stream/poll", False)
        answer = await link.ask(example(POLL_EXAMPLE, stream))
        assert json.dumps(answer) == json.dumps(example(POLL_RESULT_EXAMPLE, stream))


async def test_resume_on_the_same_connection(link: Link, autojump_clock: MockClock) -> None:
    """It has no id, and nothing answers it."""
    stream = await link.start("progress", {"steps": 7, "step_ms": 1000}, id="it", token="t")
    await trio.sleep(5.5)
    before = await link.now()
    await link.say(example(RESUME_EXAMPLE, stream))
    heard = await link.until(is_method(END))
    await trio.sleep(10)
    assert await link.now() == []
    assert steps(before + heard) == [1, 2, 3, 4, 5, 6, 7]
    assert shape(heard)[-2:] == ["it", END]


async def test_resume_on_another_connection(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back()
    await prove(link, stream)
    del link.heard[:]
    await link.say(example(RESUME_EXAMPLE, stream))
    await link.until(is_method(END))
    await trio.sleep(10)
    assert await link.now() == []
    assert sequences(link.heard) == [2, 3, 4, 5, 6, 7]


async def test_resume_with_an_id(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("progress", SLOW, id="it", token="t")
    link = await link.back()
    await prove(link, stream)
    del link.heard[:]
    request = {**example(RESUME_EXAMPLE, stream), "id": 77}
    link.client.methods[77] = ("stream/resume", False)
    answer = await link.ask(request)
    assert sequences(link.heard[:-1]) == [2, 3, 4, 5, 6, 7]
    assert link.heard[-2]["method"] == END
    assert answer == {"jsonrpc": "2.0", "id": 77, "result": {"streamId": stream, "status": "completed"}}


async def test_resume_without_an_id_of_what_is_not_there_is_an_error_without_id(
    link: Link, autojump_clock: MockClock
) -> None:
    await link.say(example(RESUME_EXAMPLE, ID))
    (error,) = await link.now()
    assert "id" not in error
    assert error["error"]["code"] == -32602


async def test_resume_without_an_id_can_be_too_early_and_too_late(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("simple_tool", {"delayMs": 1000})
    link = await link.back(4)
    await prove(link, stream)
    await link.say(example(RESUME_EXAMPLE, stream))
    (early,) = await link.now()
    assert (early["error"]["code"], early["error"]["data"], "id" in early) == (1004, {"retryAfterMs": 1000}, False)
    await trio.sleep(3600)
    await link.say(example(RESUME_EXAMPLE, stream))
    (late,) = await link.now()
    assert (late["error"]["code"], late["error"]["data"], "id" in late) == (1003, {"reason": "abandoned"}, False)


async def prove(link: Link, stream: str) -> None:
    """Over a pipe, say once whose the stream is; the examples do not."""
    assert "status" in await link.poll(stream)


async def test_create_is_what_the_schema_of_the_draft_says(link: Link, autojump_clock: MockClock) -> None:
    await link.start("chatty")
    about = mark(link.heard[0])
    assert set(about) - {"secret"} == {"streamId", "sequence", "maxMessages", "maxBytes"}
    assert (about["maxMessages"], about["maxBytes"]) == (2000, 20 * 1024 * 1024)
    assert ("secret" in about) is (link.client.http is None)
    assert link.heard[0]["method"] == CREATE
