"""Rules `resume.*`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probe.judge.verdicts import Verdict

from .checks import PASS, SILENT, UNCLEAR, WARN, check
from .logs import Asked, HttpSession, Log, Streamed

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]
BACK = "resume.comes-back"
LAST = "resume.last-event-id"
POSITION = "resume.position-true"
STOPS = "resume.stops-when-answered"
GIVES_UP = "resume.gives-up"
AGAIN = "resume.no-second-call"


class Story:
    """A call whose stream the server ends early."""

    def __init__(self, revision: str = "2025-11-25", by: str = "hang-up", *, told: bool = True) -> None:
        self.log = Log()
        self.session: HttpSession = self.log.http().session(revision)
        self.call: Asked = self.session.call("test_reconnection")
        self.stream: Streamed = self.session.client.stream(self.call, event_ids=True)
        if revision == "2025-11-25":
            self.stream.control("priming", "1-0", 500)
        if told:
            self.stream.tell("notifications/message", {"level": "info", "data": "x"})
        if revision == "2025-11-25" and by == "hang-up":
            self.stream.control("retry", "1-1", 500)
        self.stream.close(by)

    def comes_back(self, after: float = 0.6) -> Story:
        self.log.after(after)
        self.session.resume(self.stream).answer({"content": []})
        return self

    def lives(self, *seconds: float) -> Story:
        """The client asks other things, so many seconds apart."""
        for each in seconds:
            self.log.after(each)
            self.session.answer(self.session.request("ping"))
        return self

    def bare(self) -> Story:
        self.session.get()
        return self

    def calls_again(self, after: float, arguments: object = None) -> Story:
        self.log.after(after)
        again = self.session.call("test_reconnection", arguments)
        self.session.client.stream(again, event_ids=True)
        return self

    def cancels(self) -> Story:
        self.session.notify("notifications/cancelled", {"requestId": self.call.id})
        return self

    def is_over(self, seconds: float = 60) -> Log:
        self.log.idle(seconds)
        return self.log


@pytest.mark.parametrize(
    ("story", "verdict"),
    [
        (lambda: Story().comes_back(), PASS),
        (lambda: Story().comes_back(25), PASS),
        (lambda: Story().lives(1, 10, 10, 5), WARN),
        (Story, SILENT),  # it may have ended
        (lambda: Story().lives(2), SILENT),  # soon after
        (lambda: Story().cancels().lives(1, 10, 10), SILENT),
        (lambda: Story(by="client").lives(1, 10, 10), SILENT),
        (lambda: Story("2025-06-18").lives(1, 10, 10), SILENT),  # no sentence demands it
        (lambda: Story("2025-06-18").comes_back(), SILENT),
    ],
)
def test_a_client_comes_back_for_a_stream_that_was_closed(story: Callable[[], Story], verdict: Verdict) -> None:
    check(story().is_over(), BACK, verdict, only={BACK})


def test_who_ended_its_session_owes_nothing() -> None:
    story = Story()
    story.lives(1, 10)
    story.session.delete()
    check(story.is_over(), BACK, SILENT)


def test_a_stream_that_another_reader_ended() -> None:
    story = Story()
    story.stream.answer({"content": []})
    check(story.lives(1, 10, 10).is_over(), BACK, SILENT)


def test_a_gap_leaves_a_return_open() -> None:
    story = Story()
    story.log.gap()
    check(story.lives(1, 10, 10).is_over(), BACK, UNCLEAR)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_client_says_the_last_event_it_got(revision: str) -> None:
    check(Story(revision).comes_back().is_over(), LAST, PASS, only={LAST})
    check(Story(revision).bare().is_over(), LAST, WARN, only={LAST})


@pytest.mark.parametrize(
    ("story", "verdict"),
    [
        (lambda: Story().bare().comes_back(3), PASS),  # another stream beside it
        (lambda: Story().lives(40).bare(), SILENT),  # long after
        (lambda: Story().bare().cancels(), SILENT),
        (lambda: Story(by="client").bare(), SILENT),  # the client went, and perhaps meant to
        (lambda: Story(by="end of stream").bare(), SILENT),
        (lambda: Story("2025-06-18", told=False).bare(), SILENT),  # it got no event
        (Story, SILENT),
    ],
)
def test_what_needs_no_last_event(story: Callable[[], Story], verdict: Verdict) -> None:
    check(story().is_over(), LAST, verdict, only={LAST})


def refused(revision: str, refusal: str, status: int) -> Log:
    story = Story(revision)
    story.session.resume(story.stream, "zz-9", status=status, refusal=refusal)
    return story.is_over(1)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_position_that_was_given(revision: str) -> None:
    story = Story(revision)
    check(story.log, POSITION, SILENT, only={POSITION})
    story.session.resume(story.stream, f"{story.stream.context.stream}-0")
    check(story.log, POSITION, PASS, only={POSITION})
    check(story.comes_back().log, POSITION, PASS, only={POSITION})
    check(refused(revision, "EVENTS_GONE", 410), POSITION, PASS, only={POSITION})
    check(refused(revision, "UNKNOWN_EVENT_ID", 400), POSITION, WARN, only={POSITION})


def test_an_id_of_an_earlier_run_names_a_session_that_is_gone() -> None:
    check(refused("2025-11-25", "UNKNOWN_SESSION", 404), POSITION, SILENT)


def test_a_socket_may_have_taken_a_part() -> None:
    story = Story()
    story.session.resume(story.stream, f"{story.stream.context.stream}-5")
    check(story.log, POSITION, UNCLEAR)


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("returns", "after", "verdict"),
    [(0, 10, PASS), (1, 10, SILENT), (2, 10, WARN), (5, 10, WARN), (5, 0.5, PASS)],
)
def test_who_has_the_answer_stays_away(revision: str, returns: int, after: float, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session(revision)
    stream = session.client.stream(session.call("progress"), event_ids=True)
    stream.tell("notifications/message", {"level": "info", "data": "x"})
    stream.answer({"content": []})
    log.after(after)
    for _ in range(returns):
        session.resume(stream, f"{stream.context.stream}-1").close("end of stream")
    check(log, STOPS, verdict, only={STOPS})


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(("streams", "verdict"), [(1, SILENT), (2, WARN)])
def test_who_names_the_event_of_the_answer_has_read_it(revision: str, streams: int, verdict: Verdict) -> None:
    log = Log()
    session = log.http().session(revision)
    for _ in range(streams):
        stream = session.client.stream(session.call("progress"), event_ids=True)
        stream.answer({"content": []})
        log.after(0.5)
        session.resume(stream).close("end of stream")
    check(log, STOPS, verdict, only={STOPS})


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("status", [400, 410])
@pytest.mark.parametrize(
    ("tries", "every", "verdict"),
    [(0, 1, SILENT), (1, 1, PASS), (4, 1, PASS), (8, 1, UNCLEAR), (11, 1, WARN), (30, 20, PASS)],
)
def test_a_stream_that_cannot_be_resumed(
    revision: str, status: int, tries: int, every: float, verdict: Verdict
) -> None:
    story = Story(revision)
    for _ in range(tries):
        story.session.resume(story.stream, "p9-1", status=status, refusal="EVENTS_GONE")
        story.log.after(every)
    check(story.is_over(90), GIVES_UP, verdict, only={GIVES_UP})


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize(
    ("story", "verdict"),
    [
        (lambda revision: Story(revision).comes_back(), PASS),
        (lambda revision: Story(revision).lives(10, 10), PASS),
        (lambda revision: Story(revision).calls_again(2), WARN),
        (lambda revision: Story(revision).calls_again(2, {"other": 1}), PASS),
        (lambda revision: Story(revision).calls_again(10), UNCLEAR),  # a person may ask again
        (lambda revision: Story(revision).calls_again(0.1).comes_back(1), WARN),  # both
        (lambda revision: Story(revision).cancels().calls_again(1), PASS),
        (lambda revision: Story(revision, "client").calls_again(1), SILENT),
        (Story, SILENT),
    ],
)
def test_a_call_is_resumed_and_not_made_twice(revision: str, story: Callable[[str], Story], verdict: Verdict) -> None:
    check(story(revision).is_over(), AGAIN, verdict, only={AGAIN})


def test_equal_calls_side_by_side() -> None:
    log = Log()
    session = log.http().session()
    for _ in range(3):
        stream = session.client.stream(session.call("test_reconnection"), event_ids=True)
        stream.control("priming", "1-0", 500)
        log.after(1)
    stream.close("hang-up")
    session.call("test_reconnection")
    log.idle(60)
    check(log, AGAIN, SILENT, only={AGAIN})


def test_a_gap_leaves_a_repetition_open() -> None:
    story = Story()
    story.log.gap()
    check(story.calls_again(1).is_over(), AGAIN, UNCLEAR, only={AGAIN})
