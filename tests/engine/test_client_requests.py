"""Requests from the server to a client: paired by id, each with its own end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.engine.catalogue.tool import ClientRequestError
from probe.engine.sessions import ClientRequests
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.wire.jsonrpc import Response

QUESTION = ANSWER = Recorder(EventLog(lambda: (0.0, 0.0), max_events=1, max_bytes=1))


class Desk:
    """Asks, and notes what went to the client."""

    def __init__(self) -> None:
        self.requests = ClientRequests()
        self.sent: list[int] = []
        self.withdrawn: list[tuple[int, str]] = []
        self.results: list[Any] = []

    async def ask(self, timeout_s: float = 60.0) -> None:
        """Put the result, or the error's message, into `results`."""
        try:
            answer = await self.requests.ask("roots/list", self._send, self._withdraw, timeout_s)
        except ClientRequestError as error:
            self.results.append(str(error))
        else:
            assert answer.recorder is ANSWER, "whoever asked learns which message has answered"
            self.results.append(answer.result)

    def _send(self, id: int) -> Recorder:
        self.sent.append(id)
        return QUESTION.bind(call=f"c{id}")

    def _withdraw(self, id: int, reason: str) -> None:
        self.withdrawn.append((id, reason))

    def answer(self, id: int | str | None, result: Any = None, error: Any = None) -> bool:
        return self.requests.resolve(Response(id, {} if result is None and error is None else result, error), ANSWER)


async def test_answers_find_their_questions_in_any_order(autojump_clock: MockClock) -> None:
    desk = Desk()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(desk.ask)
            await wait_all_tasks_blocked()
            assert sorted(desk.sent) == [1, 2, 3], "the ids count from 1 in each session"
            found = [desk.requests.question(id) for id in (1, 2, 3, 4, "1", None)]
            calls = [None if question is None else question.context.call for question in found]
            assert calls == ["c1", "c2", "c3", None, None, None]
            for id in (3, 1, 2):
                assert desk.answer(id, {"for": id})
                await wait_all_tasks_blocked()
    assert desk.results == [{"for": 3}, {"for": 1}, {"for": 2}]
    assert desk.withdrawn == []


@pytest.mark.parametrize("id", [2, 0, "1", "", None])
async def test_an_answer_to_no_question_is_recognised(id: Any, autojump_clock: MockClock) -> None:
    """The id must be the one that was sent: "1" answers nothing that 1 asked."""
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.ask)
        await wait_all_tasks_blocked()
        assert not desk.answer(id)
        assert desk.answer(1)
        assert not desk.answer(1), "the second answer to one question is no answer"
    assert desk.results == [{}]


async def test_an_error_answer_is_told_with_its_code(autojump_clock: MockClock) -> None:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.ask)
        await wait_all_tasks_blocked()
        desk.answer(1, error={"code": -1, "message": "User rejected"})
    assert desk.results == ["The client answered roots/list with error -1: User rejected"]


async def test_a_question_without_an_answer_is_withdrawn_when_its_time_is_over(autojump_clock: MockClock) -> None:
    """2025-11-25 basic/lifecycle, Timeouts: "the sender SHOULD issue a cancellation notification"."""
    desk, began = Desk(), trio.current_time()
    await desk.ask(timeout_s=60.0)
    assert trio.current_time() - began == 60.0
    assert desk.results == ["The client did not answer roots/list within 60 s"]
    assert desk.withdrawn == [(1, "no answer within 60 s")]
    assert not desk.answer(1), "an answer that comes later finds nothing"


@pytest.mark.proves("2025-11-25/cancellation/1")
async def test_a_question_is_withdrawn_when_the_work_that_asked_is_cancelled(autojump_clock: MockClock) -> None:
    desk = Desk()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.ask)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert desk.withdrawn == [(1, "the work that asked was cancelled")]
    assert desk.results == []
    assert not desk.answer(1)


async def test_a_question_that_cannot_be_sent_is_forgotten(autojump_clock: MockClock) -> None:
    requests = ClientRequests()

    def fail(id: int) -> None:
        raise ClientRequestError("no stream")

    with pytest.raises(ClientRequestError, match="no stream"):
        await requests.ask("ping", fail, lambda *_: None, 60.0)
    assert not requests.resolve(Response(1, {}, None), ANSWER)


@pytest.mark.proves("2025-11-25/cancellation/2")
async def test_an_answer_and_the_end_of_the_time_at_once_are_one_of_the_two(autojump_clock: MockClock) -> None:
    """Whichever wins, the question is over and nothing is withdrawn that was answered."""
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.ask, 60.0)
        await trio.sleep(60.0)
        heard = desk.answer(1, {"a": 1})
    timed_out = ["The client did not answer roots/list within 60 s"], [(1, "no answer within 60 s")]
    assert (desk.results, desk.withdrawn) == (([{"a": 1}], []) if heard else timed_out)


@pytest.mark.proves("2025-11-25/cancellation/2")
async def test_a_question_that_was_answered_is_not_withdrawn_by_a_cancellation(autojump_clock: MockClock) -> None:
    desk = Desk()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.ask)
            await wait_all_tasks_blocked()
            scope.cancel()
            assert desk.answer(1)
    assert (desk.results, desk.withdrawn) == ([], [])
