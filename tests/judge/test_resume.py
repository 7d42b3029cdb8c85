"""Rules `resume.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.verdicts import Verdict
from probe.views.retention import Retention

from ..support.rows import each
from .checks import PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import Asked, HttpSession, Log, Streamed, judged

LEGACY: Final = ["2025-03-26", "2025-06-18", "2025-11-25"]
NEWEST: Final = LEGACY[-1]
BACK, LAST, POSITION = "resume.comes-back", "resume.last-event-id", "resume.position-true"
STOPS, GIVES_UP, AGAIN = "resume.stops-when-answered", "resume.gives-up", "resume.no-second-call"


class Story:
    """A call whose stream the server ends early, and the acts of its client as words; a number is so many seconds."""

    def __init__(self, revision: str = NEWEST, by: str = "hang-up", *, told: bool = True) -> None:
        self.log = Log()
        self.revision = revision
        self.session: HttpSession = self.log.http().session(revision)
        self.call: Asked = self.session.call("test_reconnection")
        self.stream: Streamed = self.session.client.stream(self.call, event_ids=True)
        if revision == NEWEST:
            self.stream.control("priming", "1-0", 500)
        if told:
            self.stream.tell("notifications/message", {"level": "info", "data": "x"})
        self.end(by)

    def end(self, by: str) -> None:
        if self.revision == NEWEST and by == "hang-up":
            self.stream.control("retry", "1-1", 500)
        self.stream.close(by)

    def again(self) -> None:
        """The client comes back, and the server hangs up once more."""
        self.stream = self.session.resume(self.stream)
        self.stream.tell("notifications/message", {"level": "info", "data": "x"})
        self.end("hang-up")

    def calls(self, arguments: Any = None) -> None:
        self.session.client.stream(self.session.call("test_reconnection", arguments), event_ids=True)

    def acts(self, words: str) -> Log:
        session = self.session
        known = {
            "back": lambda: session.resume(self.stream).answer({"content": []}),
            "again": self.again,
            "bare": session.get,
            "ping": lambda: session.answer(session.request("ping")),
            "call": self.calls,
            "other": lambda: self.calls({"other": 1}),
            "cancel": lambda: session.notify("notifications/cancelled", {"requestId": self.call.id}),
            "answer": lambda: self.stream.answer({"content": []}),  # by another reader
            "delete": session.delete,
        }
        play(self.log, words, known)
        self.log.idle(60)
        return self.log


@each(
    "acts, verdict",
    [
        ("0.6 back", PASS),
        ("25 back", PASS),
        ("1 ping 10 ping 10 ping 5 ping", WARN),
        ("0.6 again 1 ping 10 ping 10 ping 10 ping", WARN),
        ("0.6 again 0.6 again 1 ping 10 ping 10 ping 10 ping", PASS),  # an SDK's patience
        ("", SILENT),  # it may have ended
        ("2 ping", SILENT),  # soon after
        ("cancel 1 ping 10 ping 10 ping", SILENT),
        ("answer 1 ping 10 ping 10 ping", SILENT),
        ("1 ping 10 ping delete", SILENT),
        ("gap 1 ping 10 ping 10 ping", UNCLEAR),
    ],
)
def test_a_client_comes_back_for_a_stream_that_was_closed(acts: str, verdict: Verdict) -> None:
    check(Story().acts(acts), BACK, verdict, only={BACK})


@each(
    "revision, by, acts",
    [(NEWEST, "client", ""), (LEGACY[1], "hang-up", "1 ping 10 ping 10 ping"), (LEGACY[1], "hang-up", "back")],
)
def test_what_needs_no_return(revision: str, by: str, acts: str) -> None:
    check(Story(revision, by).acts(acts), BACK, SILENT, only={BACK})


def test_the_returns_of_a_client_that_gave_up_are_measured() -> None:
    found = judged(Story().acts("0.6 again 0.6 again 1 ping 10 ping 10 ping 10 ping"))["acme"]
    assert found.measured[BACK] == {"reconnections before it gave up": 2}


@each("revision", LEGACY)
@each(
    "acts, verdict",
    [
        ("0.6 back", PASS),
        ("bare", WARN),
        ("bare 3 back", PASS),
        ("", SILENT),
        ("40 ping bare", SILENT),
        ("bare cancel", SILENT),
    ],
)
def test_a_client_says_the_last_event_it_got(revision: str, acts: str, verdict: Verdict) -> None:
    check(Story(revision).acts(acts), LAST, verdict, only={LAST})


@each("story", [Story(by="client"), Story(by="end of stream"), Story(LEGACY[1], told=False)])
def test_what_needs_no_last_event(story: Story) -> None:
    check(story.acts("bare"), LAST, SILENT, only={LAST})


@each("revision", LEGACY)
@each(
    "last, status, refusal, verdict",
    [
        ("0", 200, None, PASS),
        ("1", 200, None, PASS),
        ("5", 200, None, UNCLEAR),  # a socket may have taken a part
        ("9", 410, "EVENTS_GONE", PASS),
        ("9", 410, "NOTHING_FOLLOWS", PASS),
        ("9", 400, "UNKNOWN_EVENT_ID", WARN),
        ("9", 404, "UNKNOWN_SESSION", SILENT),  # an id of an earlier run
    ],
)
def test_a_position_that_was_given(
    revision: str, last: str, status: int, refusal: str | None, verdict: Verdict
) -> None:
    story = Story(revision)
    check(story.log, POSITION, SILENT, only={POSITION})
    last = f"{story.stream.context.stream}-{last}"
    story.session.resume(story.stream, last, status=status, refusal=refusal)
    check(story.log, POSITION, verdict, only={POSITION})


@each("revision", LEGACY)
@each(
    "streams, returns, after, last, verdict",
    [
        (1, 0, 10, 1, PASS),
        (1, 1, 10, 1, SILENT),
        (1, 2, 10, 1, WARN),
        (1, 5, 10, 1, WARN),
        (1, 5, 0.5, 1, PASS),
        (1, 1, 0.5, 2, SILENT),  # the event of the answer
        (2, 1, 0.5, 2, WARN),
        (2, 1, 10, 1, SILENT),
    ],
)
def test_who_has_the_answer_stays_away(
    revision: str, streams: int, returns: int, after: float, last: int, verdict: Verdict
) -> None:
    log = Log()
    session = log.http().session(revision)
    for _ in range(streams):
        stream = session.client.stream(session.call("progress"), event_ids=True)
        stream.tell("notifications/message", {"level": "info", "data": "x"})
        stream.answer({"content": []})
        log.after(after)
        for _ in range(returns):
            session.resume(stream, f"{stream.context.stream}-{last}").close("end of stream")
    check(log, STOPS, verdict, only={STOPS})


@each("revision", LEGACY)
@each("status", [400, 410])
@each(
    "tries, every, verdict",
    [(0, 1, SILENT), (1, 1, PASS), (4, 1, PASS), (8, 1, UNCLEAR), (11, 1, WARN), (30, 20, PASS)],
)
def test_a_stream_that_cannot_be_resumed(
    revision: str, status: int, tries: int, every: float, verdict: Verdict
) -> None:
    story = Story(revision)
    for _ in range(tries):
        story.session.resume(story.stream, "p9-1", status=status, refusal="EVENTS_GONE")
        story.log.after(every)
    check(story.acts("30"), GIVES_UP, verdict, only={GIVES_UP})


@each("revision", LEGACY)
@each(
    "acts, verdict",
    [
        ("0.6 back", PASS),
        ("10 ping 10 ping", PASS),
        ("2 call", WARN),
        ("0.1 call 1 back", WARN),  # it comes back as well
        ("0.6 back 1 call", PASS),
        ("2 other", PASS),
        ("10 call", UNCLEAR),  # a person may ask again
        ("cancel 1 call", PASS),
        ("gap 1 call", UNCLEAR),
        ("", SILENT),
    ],
)
def test_a_call_is_resumed_and_not_made_twice(revision: str, acts: str, verdict: Verdict) -> None:
    check(Story(revision).acts(acts), AGAIN, verdict, only={AGAIN})
    check(Story(revision, "client").acts("1 call"), AGAIN, SILENT, only={AGAIN})


def test_an_equal_call_excuses_a_client_that_made_many_others_since() -> None:
    log = Log()
    session = log.http().session()
    session.answer(session.call("test_reconnection"), {"content": []})
    for number in range(150):
        session.answer(session.call("other", {"number": number}), {"content": []})
    stream = session.client.stream(session.call("test_reconnection"), event_ids=True)
    stream.control("priming", "1-0", 500)
    stream.close("hang-up")
    log.after(1)
    session.call("test_reconnection")
    log.idle(60)
    check(log, AGAIN, SILENT, only={AGAIN})
    check(log, AGAIN, UNCLEAR, only={AGAIN}, retention=Retention(messages=100))
    check(log, AGAIN, UNCLEAR, only={AGAIN}, kept=100)


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
