"""Rules `ping.*`: answers to the server's pings, and the pings of the client."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final

from ....log.bounded import Newest
from ...projection.views import Message, Sent, members
from ..predicate import Predicate, Wait, judges

_MOST: Final = 1_000
# Answers that `ping.prompt` looks at: fewer are an accident, more than the newest hundred are another day.
_FEWEST: Final = 3
_NEWEST: Final = 100
_PROMPT_S: Final = 1.0
_SLOW_S: Final = 5.0
_MINUTE_S: Final = 60.0
_MOST_A_MINUTE: Final = 60
# The look at a ping to which the client was silent at first.
_AWAKE_LOOK: Final = 2


@judges("ping.answered")
class PingAnswered(Predicate):
    """Answers ping.

    One ping without an answer may be a stream that a proxy holds back, so it takes two, and none that was answered
    between them, to fail. A laptop that sleeps and a client in a debugger hold their connections and say nothing at
    all: only a client that said something else after the ping is known to be awake, so a silent one has more time. An
    answer that the server refused is an answer. Where the session, the connection or the stream of the ping ended
    before an answer was due, the ping may have been lost, or the client has gone.
    """

    methods = frozenset({"ping"})

    def setup(self) -> None:
        self._refused: Newest[int, int] = Newest(_MOST)
        self._unanswered: tuple[int, ...] = ()
        self._open: Newest[int, Wait] = Newest(_MOST)

    def on_asked(self, question: Sent) -> None:
        if question.delivered is not None:
            due = question.delivered + self.allowances.answer_s
            self._open.store(question.seq, self.give_time(due, self._look, question, of=question))

    def on_answer(self, message: Message) -> None:
        ping = self.life.dialogue.asked.of(message)
        wait = None if ping is None else self._open.pop(ping.seq, None)
        if ping is not None and wait is not None and not wait.over:
            # A client that ends soon afterwards has answered all the same.
            wait.cancel()
            self._unanswered = ()
            self.ok(ping, message.seq)

    def on_message(self, message: Message) -> None:
        if message.method is None and message.question is None:
            ping = self.life.dialogue.asked.of(message)
            if ping is not None:
                self._refused.store(ping.seq, message.seq)

    def is_decided_at_end(self, wait: Wait) -> bool:
        return self._has_answer(wait.arguments[0])

    def _has_answer(self, ping: Sent) -> bool:
        """Whether the client answered; then it was well."""
        answers = [answer.seq for answer in ping.answers] or [
            seq for seq in [self._refused.get(ping.seq)] if seq is not None
        ]
        if answers:
            self._unanswered = ()
            self.ok(ping, *answers)
        return bool(answers)

    def _look(self, ping: Sent, looks: int = 1) -> None:
        if self._has_answer(ping):
            return
        acted = self._has_acted_since(ping)
        if (looks == 1 and not acted) or (looks == _AWAKE_LOOK and acted and self._has_just_acted(ping)):
            self._wait_longer(ping, acted, looks)
            return
        silence = f"no answer within {self.now - (ping.delivered or self.now):.0f} s"
        if not acted:
            if self._is_held(ping):
                self.warn(ping, f"{silence}, and nothing else either")
            return
        if _is_cut_off(ping):
            self.unclear(ping, "no answer, and what carried the ping ended before one was due")
            return
        self._unanswered = (*self._unanswered[-1:], ping.seq)
        if len(self._unanswered) < 2:
            self.warn(ping, silence)
        else:
            self.fail(ping, f"two pings, {silence} (client or gateway)", *self._unanswered)

    def _wait_longer(self, ping: Sent, acted: bool, looks: int) -> None:
        """A client that was silent may sleep; once it speaks again it has the time for an answer anew."""
        delivered = ping.delivered or self.now
        due = self.now + self.allowances.answer_s if acted else delivered + self.allowances.alive_s
        wait = self.give_time(due, self._look, ping, looks + 1, of=ping)
        wait.since = delivered
        self._open.store(ping.seq, wait)

    def _has_acted_since(self, ping: Sent) -> bool:
        """Whether the client sent something after the ping."""
        return self._last_act(ping) > (ping.delivered or 0)

    def _has_just_acted(self, ping: Sent) -> bool:
        return self._last_act(ping) > self.now - self.allowances.answer_s

    def _last_act(self, ping: Sent) -> float:
        return (ping.pipe or ping.session or self.life).last_act

    @staticmethod
    def _is_held(ping: Sent) -> bool:
        """Whether the client still holds the stream or the pipe that carried the ping."""
        if ping.pipe is not None:
            return ping.pipe.closed is None
        readers = [] if ping.stream is None else ping.stream.readers
        return any(reader.left is None for reader in readers[-1:])


def _is_cut_off(ping: Sent) -> bool:
    """Whether the session or the pipe of a ping has ended, or a response that carried it, by no intention."""
    if any(place is not None and place.closed is not None for place in (ping.session, ping.pipe)):
        return True
    readers = () if ping.stream is None else ping.stream.readers
    ends = [reader for reader in readers if reader.left is not None and reader.left >= (ping.delivered or 0)]
    return any(reader.by != "end of stream" for reader in ends)


@judges("ping.empty")
class PingEmpty(Predicate):
    """Answers ping with an empty result; one that is no object is left to `jsonrpc.response-shape`."""

    def on_answer(self, message: Message) -> None:
        ping = message.question
        if ping is None or ping.method != "ping":
            return
        extra = members(message.result).keys() - {"_meta"}
        if isinstance(message.error, dict):
            self.fail(message, f"the answer is the error {message.error.get('code')}", ping.seq)
        elif not isinstance(message.result, dict):
            return
        elif extra:
            self.warn(message, f"the result has {', '.join(sorted(extra))}", ping.seq)
        else:
            self.ok(message, ping.seq)


@judges("ping.prompt")
class PingPrompt(Predicate):
    """Answers ping promptly; no revision says how soon that is, so the median is reported."""

    def setup(self) -> None:
        self._delays: deque[float] = deque(maxlen=_NEWEST)

    def on_answer(self, message: Message) -> None:
        ping = message.question
        if ping is None or ping.method != "ping" or ping.delivered is None or ping.answers[:1] != [message]:
            return
        if self.life.suspended is not None and self.life.suspended >= ping.delivered:
            return
        self._delays.append(max(0.0, message.at - ping.delivered))
        if len(self._delays) < _FEWEST:
            return
        middle = median(self._delays)
        self.measure("median_s", round(middle, 3))
        if middle < _PROMPT_S:
            self.ok(message, ping.seq)
        elif middle > _SLOW_S:
            self.fail(message, f"the median of {len(self._delays)} answers is {middle:.1f} s", ping.seq)
        else:
            self.unclear(message, f"the median of {len(self._delays)} answers is {middle:.1f} s", ping.seq)


@judges("ping.not-excessive")
class PingNotExcessive(Predicate):
    """Pings with measure: at most one a second on average."""

    methods = frozenset({"ping"})

    def setup(self) -> None:
        self._times: Newest[str, deque[float]] = Newest(_MOST)
        self._began: Newest[str, float] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        session = message.session
        if session is None:
            return
        times = self._times.get(session.label)
        if times is None:
            times = deque(maxlen=_MOST_A_MINUTE + 1)
            self._times.store(session.label, times)
            self._began.store(session.label, message.at)
        times.append(message.at)
        if len(times) > _MOST_A_MINUTE and times[-1] - times[0] <= _MINUTE_S:
            self.fail(message, f"{len(times)} pings in {times[-1] - times[0]:.0f} s")
        elif message.at - self._began.get(session.label, message.at) >= _MINUTE_S:
            self.ok(message)
