"""Questions to the client on a stream: they survive a disconnect, and are answered once, by who holds the stream."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.calls import misuses, outcome
from ..support.malformed import malformed
from ..support.probe import Probe, running
from .links import END, Link, linked, shape
from .tools import ALL, ANSWERS, QUESTIONS

UNASKED = "answer without a question"


def question(messages: list[Any]) -> Any:
    (found,) = [message for message in messages if "method" in message and "id" in message]
    return found


def heard(messages: list[Any], id: Any = "it") -> Any:
    (answer,) = [message for message in messages if "method" not in message and message["id"] == id]
    return answer["result"]["structuredContent"]["heard"]


async def resumed(link: Link, stream: str, **claim: Any) -> list[Any]:
    await link.say(link.resume(stream, **claim))
    return await link.now()


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("waits", [True, False], ids=["asked while away", "asked before"])
async def test_a_question_survives_a_disconnect(link: Link, kind: str, waits: bool, autojump_clock: MockClock) -> None:
    stream = await link.start("ask", {"kind": kind, "waitMs": 1000 if waits else 0}, id="it")
    asked = [] if waits else await link.now()
    link = await link.back(6)
    messages = asked + await resumed(link, stream, id="r")
    await link.answer(question(messages), ANSWERS[kind])
    rest = await link.now()
    assert shape(rest) == ["it", END, "r"]
    assert heard(rest) == ANSWERS[kind]
    assert misuses(link.probe) == []


async def test_a_malformed_answer_fails_it_at_once(link: Link, autojump_clock: MockClock) -> None:
    """The refusal comes over HTTP in the response, on a pipe as an error without an id."""
    await link.start("ask", {"waitMs": 0}, id="it")
    asked, began = question(await link.now()), trio.current_time()
    await link.say(malformed("result is no object", asked["id"]))
    said = await link.now()
    assert trio.current_time() == began
    (refusal,) = [message for message in said if "id" not in message and "error" in message]
    assert refusal["error"]["code"] == -32600
    (answer,) = [message for message in said if message.get("id") == "it"]
    fault = '"result" must be an object, got an integer'
    assert answer["result"]["content"][0]["text"] == f"The client's answer to elicitation/create is malformed: {fault}"
    assert misuses(link.probe) == ["malformed answer"]


async def test_it_is_answered_once(link: Link, autojump_clock: MockClock) -> None:
    stream = await link.start("ask", {"waitMs": 0, "times": 2}, id="it")
    first = question(await link.now())
    link = await link.back()
    again = question(await resumed(link, stream, id="r", received=1))
    assert again == first, "the same question, with its place"
    await link.answer(first, ANSWERS["elicitation"])
    second = question(await link.now())
    assert second["id"] != first["id"]
    await link.answer(again, {"action": "decline"})
    assert await link.now() == []
    assert misuses(link.probe) == [UNASKED]
    await link.answer(second, ANSWERS["elicitation"])
    assert heard(await link.now()) == ANSWERS["elicitation"]


async def test_an_answer_from_a_connection_that_does_not_hold_the_stream_is_none(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as link, linked(probe, transport) as stranger:
        await stranger.start("ask", {"waitMs": 0}, id="other")
        await stranger.now()
        stream = await link.start("ask", {"waitMs": 0}, id="it")
        asked = question(await link.now())
        await stranger.answer(asked, {"action": "cancel"})
        await stranger.now()
        assert misuses(probe) == [UNASKED]
        link = await link.back()
        await stranger.answer(asked, {"action": "cancel"})
        await resumed(link, stream, id="r")
        await stranger.answer(asked, {"action": "cancel"})
        await stranger.now()
        assert misuses(probe) == [UNASKED] * 3
        await link.answer(asked, ANSWERS["elicitation"])
        assert heard(await link.now()) == ANSWERS["elicitation"]


async def test_a_connection_of_the_owner_s_has_to_resume_first(probe: Probe, autojump_clock: MockClock) -> None:
    """On a pipe; over HTTP all connections are the session's."""
    async with linked(probe, "pipe") as link:
        stream = await link.start("ask", {"waitMs": 0}, id="it")
        asked = question(await link.now())
        link = await link.back()
        await link.poll(stream)
        await link.answer(asked, {"action": "cancel"})
        await link.now()
        assert misuses(probe) == [UNASKED]
        await resumed(link, stream, id="r")
        await link.answer(asked, ANSWERS["elicitation"])
        assert heard(await link.now()) == ANSWERS["elicitation"]


async def test_whom_a_stream_was_taken_from_cannot_answer_any_more(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as old:
        stream = await old.start("ask", {"waitMs": 0}, id="it")
        asked = question(await old.now())
        await trio.sleep(5)
        new = await old.another()
        await resumed(new, stream, id="r")
        await old.answer(asked, {"action": "cancel"})
        await old.now()
        assert misuses(probe) == [UNASKED]
        await new.answer(asked, ANSWERS["elicitation"])
        assert heard(await new.now()) == ANSWERS["elicitation"]


async def test_over_http_any_exchange_of_the_session_brings_an_answer(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "http") as link:
        stream = await link.start("ask", {"waitMs": 0}, id="it")
        asked = question(await link.now())
        link = await link.back()
        await link.answer(asked, ANSWERS["elicitation"])
        assert heard(await resumed(link, stream)) == ANSWERS["elicitation"]


async def test_ids_of_questions_do_not_collide(link: Link, autojump_clock: MockClock) -> None:
    """Of streams that were resumed, of new ones, and of tasks, all on one connection."""
    streams = [await link.start("ask", {"waitMs": 0, "times": 2}, id=f"old{number}") for number in range(2)]
    await link.now()
    asked = [message for message in link.heard if "method" in message and "id" in message]
    link = await link.back()
    for stream in streams:
        await resumed(link, stream)
    await link.start("ask", {"waitMs": 0, "times": 2}, id="new")
    handle = await link.ask(link.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}, task={}))
    task = handle["result"]["task"]["taskId"]
    await link.say(link.request("tasks/result", {"taskId": task}, "result"))
    await trio.sleep(1)
    await link.now()
    asked += [message for message in link.heard if "method" in message and "id" in message]
    assert len({message["id"] for message in asked}) == len(asked) == 4
    for message in asked[::-1]:
        await link.answer(message, ANSWERS["elicitation"])
    later = [message for message in await link.now() if "method" in message and "id" in message]
    assert len({message["id"] for message in asked + later}) == 7
    for message in later:
        await link.answer(message, ANSWERS["elicitation"])
    await trio.sleep(1)
    await link.now()
    assert {"old0", "old1", "new", "result"} <= {message["id"] for message in link.heard if "id" in message}
    assert misuses(link.probe) == []


@pytest.mark.parametrize("away", [True, False])
async def test_what_is_cancelled_asks_no_more_and_says_no_more(
    link: Link, away: bool, autojump_clock: MockClock
) -> None:
    """Not even that the question is withdrawn: nothing more is sent for a call that its client has cancelled."""
    stream = await link.start("ask", {"waitMs": 0}, id="it")
    asked = question(await link.now())
    if away:
        link = await link.back()
        await resumed(link, stream)
    await link.cancel("it")
    assert shape(await link.now())[:1] == [END]
    await link.answer(asked, ANSWERS["elicitation"])
    await link.now()
    assert misuses(link.probe) == [UNASKED]


async def test_what_nobody_answers_in_time_is_withdrawn_on_the_stream(
    transport: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=ALL, client_request_s=10.0) as probe, linked(probe, transport) as link:
        stream = await link.start("ask", {"waitMs": 0}, id="it")
        link = await link.back(20)
        messages = await resumed(link, stream, id="r", received=1)
        assert shape(messages) == ["elicitation/create", "notifications/cancelled", "it", END, "r"]
        assert messages[1]["params"]["requestId"] == messages[0]["id"]
        assert messages[2]["result"]["isError"]
        await link.answer(messages[0], ANSWERS["elicitation"])
        await link.now()
        assert misuses(probe) == [UNASKED]


async def test_an_answer_counts_for_a_stream_that_nobody_reads(probe: Probe, autojump_clock: MockClock) -> None:
    """A resume that was cancelled lets go of the stream, not of its questions: the connection still holds it."""
    async with linked(probe, "pipe") as link:
        stream = await link.start("ask", {"waitMs": 0}, id="it")
        asked = question(await link.now())
        link = await link.back()
        await resumed(link, stream, id="r")
        await link.cancel("r")
        await link.answer(asked, ANSWERS["elicitation"])
        await trio.sleep(5)
        assert heard(await resumed(link, stream)) == ANSWERS["elicitation"]
        assert outcome(probe)[0] == "completed"
