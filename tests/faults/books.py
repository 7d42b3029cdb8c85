"""What a client has of its streams, and what it must have of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from probe.tools.streaming import block
from probe.views.records import CallRecord

from ..support.pipes import MARK

Message = dict[str, Any]
_RULER = "".join(f"{end:.>10}" for end in range(10, 70_000, 10))


@dataclass(frozen=True)
class Job:
    """One call that a client makes."""

    tool: str
    arguments: dict[str, Any]

    def request(self, id: int) -> Message:
        params = {"name": self.tool, "arguments": self.arguments, "_meta": {"progressToken": id}}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def mark(message: Message) -> Message:
    """What a message says about its place; empty where it has none."""
    body = message.get("params") or message.get("result") or {}
    return dict(body.get("_meta", {}).get(MARK, {}))


@dataclass(repr=False)
class Book:
    """One stream. A client that keeps no count (`exact` is false) may have `missed` messages."""

    stream_id: str
    exact: bool
    secret: str = ""
    label: str = ""
    last: int = 0
    ended: bool = False
    lost: str | None = None
    messages: list[Message] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)

    def __repr__(self) -> str:
        kinds = [message.get("method", "answer").rpartition("/")[2] for message in self.messages[-3:]]
        return f"<{self.stream_id} {self.label} up to {self.last} ({', '.join(kinds)}), missed {self.missed}>"

    @property
    def over(self) -> bool:
        return self.ended or self.lost is not None

    def take(self, message: Message, event: str | None = None) -> None:
        """The next message: in order, never twice, and with a client that keeps count, none left out."""
        assert not self.over, f"{message} after the end of {self}"
        # an error says nothing about its place; the end that follows it does
        place = mark(message).get("sequence", self.last + 1)
        assert place > self.last, f"{message} again, or late: {self}"
        assert place == self.last + 1 or not self.exact, f"{message} is not the next: {self}"
        if event is not None:
            label, _, number = event.rpartition("-")
            assert (label, int(number)) == (self.label or label, place), (event, message)
            self.label = label
        self.missed += range(self.last + 1, place)
        self.last = place
        self.messages.append(message)
        method = message.get("method")
        assert (method == "notifications/stream/create") == (place == 1), message
        self.secret = mark(message).get("secret", self.secret)
        self.ended = method == "notifications/stream/end"

    @property
    def question(self) -> str | None:
        """The id of a question that has no answer as far as this client knows."""
        asked = [message["id"] for message in self.messages if message.get("method") == "elicitation/create"]
        answered = self.over or any("method" not in message for message in self.messages)
        return asked[-1] if asked and not answered else None

    @property
    def request_id(self) -> int | None:
        """The call, as far as any message names it."""
        for message in self.messages:
            if message.get("method") == "notifications/progress":
                return int(message["params"]["progressToken"])
            if "method" not in message:
                return int(message["id"])
        return None

    def check(self, job: Job, record: CallRecord, answers: list[int]) -> None:
        """A whole stream: `answers` are those that the client has given to its question."""
        assert self.ended, self
        assert not self.missed, self
        *before, _ = self.messages[1:]
        result = before.pop() if before and "method" not in before[-1] else None
        completed = record.outcome == "completed"
        assert (result is not None) == record.answered == completed, (record, self)
        assert completed or record.outcome == "cancelled", record
        if job.tool == "progress":
            steps = [message["params"]["progress"] for message in before]
            wanted = [*range(1, 1 + (job.arguments["steps"] if completed else len(steps)))]
            assert steps == wanted, (steps, record)
        elif job.tool == "elicit_form":
            assert [message["method"] for message in before] == ["elicitation/create"] * len(before)
            assert len(before) == 1 or not completed, self
        else:
            assert before == [], self
        if result is not None:
            _check_result(job, result["result"], answers)


def _check_result(job: Job, result: Message, answers: list[int]) -> None:
    arguments, found = job.arguments, result.get("structuredContent")
    texts = [item["text"] for item in result["content"]]
    if job.tool == "progress":
        assert found == {"steps": arguments["steps"], "notified": True, "done": True}
    elif job.tool == "elicit_form":
        assert found["problems"] == []
        assert found["content"]["count"] in answers, (found, answers)
    elif job.tool == "long_output":
        ruler = _RULER[: arguments["chars"]]
        assert texts == [block(number, ruler) for number in range(1, arguments["blocks"] + 1)]
    else:
        assert texts[3] == "fourth block: unicode; café résumé naïve"
