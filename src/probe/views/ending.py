"""The end of an exchange: a state, the facts behind it, and the same in words, for pages and the terminal alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic_core import from_json

from ..log import events
from ..log.event_log import Entry
from ..wire.jsonrpc import clip
from .meaning import EntryOf
from .records import CallRecord, cancelled_how
from .retention import members
from .values import Exchange, Message
from .work import Call

State: TypeAlias = Literal[
    "completed",
    "tool_error",
    "protocol_error",
    "timed_out",
    "cancelled",
    "disconnected",
    "input_required",
    "running",
    "error",
    "refused",
    "misuse",
    "answered",
    "dropped",
    "open",
    "ended",
    "waiting",
    "unanswered",
    "done",
]

# Characters of a text that a line of a page shows. To parse a longer result costs 0.1 ms for 64 KiB.
_LONGEST: Final = 300
_MOST_READ: Final = 64 * 1024
# The deadline of a call is looked for in this many entries, from the newest back.
_LOOKED_AT: Final = 20

# The client wrote the reason of these cancellations; the server wrote that of others.
_THE_CLIENT: Final = frozenset({"notification", "tasks_cancel"})
# The text of these continues the state: "cancelled by the client", "error -32602: no such tool".
_READS_ON: Final = frozenset({"cancelled", "error", "protocol_error"})


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an exchange, or its state until then.

    `state` is the outcome of its call, such as `cancelled`, or `running`. Without a call: `error` (a JSON-RPC error),
    `refused` (an HTTP status from 400), `misuse`, `answered`, `dropped` (its message was not sent), `open` and `ended`
    (an event stream), `waiting` and `unanswered` (a request), `done` (no answer is due).

    `by` is the cause, such as `notification` for a call and `client` for a stream. `steps` of `steps_total` were done,
    `stopped_ms` is the time that the work took to stop, and `sent_after` counts messages sent after the cancellation.
    `code` is the code of a JSON-RPC error. `detail` is the beginning of a text: of the tool, the error, the refusal, or
    the reason of a cancellation.

    `text` puts all this in words after the state, such as "by the client after 4 of 20 steps, stopped in 2.4 ms,
    nothing sent afterwards" for `cancelled`; it may be empty.
    """

    state: State
    by: str | None = None
    steps: float | None = None
    steps_total: float | None = None
    stopped_ms: float | None = None
    sent_after: int = 0
    code: int | None = None
    detail: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class EndingParts:
    """`head` is the entry shown first in a line."""

    exchange: Exchange
    head: Entry
    answers: Sequence[Message]
    call: Call | None
    settled: events.CallSettled | None
    dropped: Sequence[Message]


def sentence(ending: Ending) -> str:
    """State and text as one sentence without its full stop: `tool error: no such file`."""
    label = ending.state.replace("_", " ")
    if not ending.text:
        return label
    return f"{label}{' ' if ending.state in _READS_ON else ': '}{ending.text}"


def duration(ms: float) -> str:
    """Milliseconds for people, as on the pages: `0.4 ms`, `87 ms`, `1.53 s`, `4 min 07 s`."""
    if ms < 10:
        return f"{round(ms, 1):g} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 59_995:
        return f"{ms / 1000:.2f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def streams(exchange: Exchange) -> bool:
    """True if its response is an event stream."""
    response = None if exchange.response is None else cast("events.HttpResponse", exchange.response.fact)
    return response is not None and response.content_type.startswith("text/event-stream")


def asks(fact: Any) -> bool:
    """True for a request: it wants an answer."""
    return getattr(fact, "rpc", None) == "request"


def ending_of(parts: EndingParts, entry_of: EntryOf) -> Ending:
    """The ending of an exchange with a number."""
    exchange, settled = parts.exchange, parts.settled
    found = _ending(parts, entry_of)
    record = None if parts.call is None else parts.call.record
    texts = [found.text]
    if settled is not None and record is not None:
        texts += [_undelivered(parts, record), _messages(record, 0 if parts.call is None else parts.call.reports)]
    if parts.dropped and found.state != "dropped":
        why = _short(cast("events.MessageDropped", parts.dropped[0].fact).why)
        texts.append(f"{_counted(len(parts.dropped), 'message')} not sent: {why}")
    if exchange.cut and found.state in ("running", "open"):
        texts.append("some of its entries are no longer known")
    return replace(found, text="; ".join(filter(None, texts)))


def lone_ending(fact: Any, answer: Entry | None) -> Ending:
    """The ending of an entry without an exchange, with its answer if any."""
    if answer is not None:
        return _answered(answer.fact)
    if isinstance(fact, events.MessageDropped):
        return _worded(Ending("dropped", detail=_short(fact.why)))
    if isinstance(fact, events.ClientMisuse):
        return _misuse(fact)
    return Ending("waiting" if asks(fact) else "done")


def _ending(parts: EndingParts, entry_of: EntryOf) -> Ending:
    exchange, settled = parts.exchange, parts.settled
    if settled is not None and settled.outcome != "completed":
        return stopped(settled, parts.call, parts.answers, entry_of)
    error = next((answer for answer in parts.answers if answer.rpc == "error"), None)
    response = None if exchange.response is None else cast("events.HttpResponse", exchange.response.fact)
    # An error without a message of the client repeats the head of the response.
    if response is not None and response.status >= 400 and (error is None or not parts.exchange.messages[0].received):
        return _worded(Ending("refused", detail=_short(response.problem)))
    if error is not None:
        return _answered((entry_of(error.seq) or error.entry).fact)
    if exchange.misuse is not None:
        return _misuse(cast("events.ClientMisuse", exchange.misuse.fact))
    if settled is not None:
        text = "" if parts.call is None or parts.call.task is None else "as a task"
        return Ending("completed", steps=settled.steps_done, steps_total=settled.steps_total, text=text)
    return Ending("answered") if parts.answers else _unanswered(parts)


def _unanswered(parts: EndingParts) -> Ending:
    exchange, call, fact = parts.exchange, parts.call, parts.head.fact
    by = exchange.ended_by
    if call is not None:
        return _running(call, exchange)
    if isinstance(fact, events.MessageDropped):
        return _worded(Ending("dropped", detail=_short(fact.why)))
    if streams(exchange):
        return _stream(exchange, by)
    if asks(fact) or (exchange.head is not None and exchange.response is None):
        if exchange.closed is None:
            return Ending("waiting")
        return Ending("unanswered", by=by, text=f"ended by {_party(by)}")
    return Ending("done")


def _stream(exchange: Exchange, by: str | None) -> Ending:
    if exchange.closed is None:
        return Ending("open", text="event stream")
    count = _counted(cast("events.HttpClosed", exchange.closed.fact).messages, "message")
    return Ending("ended", by=by, text=f"event stream, by {_party(by)}, {count}")


def _party(by: str | None) -> str:
    return "the client" if by == "client" else str(by)


def _running(call: Call, exchange: Exchange) -> Ending:
    record = call.record
    done, total = (None, None) if record is None else (record.steps_done, record.steps_total)
    asked = [message for message in exchange.messages if not message.received and asks(message.fact)]
    if call.cancelled is not None:
        how = cancelled_how(cast("events.CallCancelled", call.cancelled.fact).by)
        text = f"asked to stop {how}; the work has not stopped yet"
    elif asked and not asked[-1].replies:
        text = f"waits for the client's answer to {asked[-1].method}"
    else:
        text = "" if done is None else f"{_steps(done, total)} so far"
    return Ending("running", steps=done, steps_total=total, text=text)


def stopped(fact: events.CallSettled, call: Call | None, answers: Sequence[Message], entry_of: EntryOf) -> Ending:
    """The ending of a call stopped before its work was done."""
    result = _read(fact.result)
    code, text = _error(result)
    if text is None:
        text = _first_text(result) or fact.cancel_reason
    if text is None and answers:
        answer = answers[0]
        code, text = _error(_read(getattr((entry_of(answer.seq) or answer.entry).fact, "message", b"")))
    ending = Ending(
        cast("State", fact.outcome),
        by=fact.cancelled_by,
        steps=fact.steps_done,
        steps_total=fact.steps_total,
        stopped_ms=fact.scope_exit_ms,
        sent_after=fact.sent_after_cancel,
        code=code,
        detail=_short(text),
    )
    return replace(ending, text=_words(ending, fact, call, result, entry_of))


def _words(ending: Ending, fact: events.CallSettled, call: Call | None, result: Any, entry_of: EntryOf) -> str:
    said, reached = _coded(ending), _reached(fact, task=call is not None and call.task is not None)
    match fact.outcome:
        case "cancelled" if fact.cancelled_by is not None:
            reason = fact.cancel_reason if fact.cancelled_by in _THE_CLIENT else None
            given = "" if reason is None else f" ({_short(reason)})"
            return f"{cancelled_how(fact.cancelled_by)}{given} {reached}"
        case "cancelled":
            return f"by the tool itself: {said}"
        case "disconnected":
            return f"{fact.cancel_reason or 'the client was gone'} {reached}"
        case "timed_out":
            return f"{_deadline(call, entry_of)} {reached}"
        case "input_required":
            return f"{_questions(result)}; the answer comes with its next request"
        case _:
            return said


def _reached(fact: events.CallSettled, *, task: bool) -> str:
    """How far a call was, and how fast it stopped. A `task` was answered with its handle."""
    if fact.steps_done is None:
        parts = [f"after {duration(fact.duration_ms)}"]
    else:
        parts = [f"after {_steps(fact.steps_done, fact.steps_total)}"]
    if fact.scope_exit_ms is not None:
        parts.append(f"stopped in {duration(fact.scope_exit_ms)}")
    if fact.answered and not task:
        parts.append("answered with an error")
    elif fact.cancelled_by is not None:
        sent = fact.sent_after_cancel
        parts.append(f"{_counted(sent, 'message')} sent afterwards" if sent else "nothing sent afterwards")
    return ", ".join(parts)


def _deadline(call: Call | None, entry_of: EntryOf) -> str:
    newest = [] if call is None else call.in_order()[-_LOOKED_AT:]
    facts = [entry.fact for entry in map(entry_of, reversed(newest)) if entry is not None]
    expired = next((fact for fact in facts if isinstance(fact, events.DispatchExpired)), None)
    if expired is None:
        return "a deadline passed"
    if expired.deadline == "ceiling":
        return f"the ceiling of {_limit(expired.ceiling_ms)} passed"
    return f"no progress for {_limit(expired.idle_ms)}"


def _limit(ms: int) -> str:
    """A configured time: `5 s` for 5000 ms."""
    return f"{ms // 1000} s" if ms % 1000 == 0 and ms < 60_000 else duration(ms)


def _questions(result: Any) -> str:
    asked = members(members(result).get("inputRequests")).values()
    methods = dict.fromkeys(str(members(request).get("method")) for request in asked)
    return f"asked the client for {' and '.join(methods)}" if methods else "asked for the same request again"


def _undelivered(parts: EndingParts, record: CallRecord) -> str:
    """A task was answered with its handle; a cancelled call needs no answer."""
    if record.task is not None or record.cancelled_by is not None:
        return ""
    if not record.answered:
        return "no answer was sent"
    answer = parts.answers[0] if parts.answers else None
    lost = parts.exchange.closed is not None and answer is not None and answer.delivered is None
    return "the answer was not received" if lost else ""


def _messages(record: CallRecord, reports: int) -> str:
    if record.emitted == 0:
        unheard = record.steps_done is not None and record.progress_token is None
        return "its progress was not sent, as the client gave no token" if unheard else ""
    what = "progress notification" if record.emitted == reports else "message"
    merged = f", {record.coalesced} merged into later ones" if record.coalesced else ""
    return f"{record.delivered} of {_counted(record.emitted, what)} received{merged}"


def _misuse(fact: events.ClientMisuse) -> Ending:
    return Ending("misuse", detail=_short(fact.detail), text=f"{fact.what}: {_short(fact.detail)}")


def _answered(fact: Any) -> Ending:
    if getattr(fact, "rpc", None) != "error":
        return Ending("answered")
    code, text = _error(_read(fact.message))
    return _worded(Ending("error", code=code, detail=_short(text)))


def _worded(ending: Ending) -> Ending:
    return replace(ending, text=_coded(ending))


def _coded(ending: Ending) -> str:
    return ": ".join(filter(None, ["" if ending.code is None else str(ending.code), ending.detail]))


def _steps(done: float, total: float | None) -> str:
    many = done if total is None else total
    return f"{done:g}{'' if total is None else f' of {total:g}'} {'step' if many == 1 else 'steps'}"


def _counted(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _read(body: bytes) -> Any:
    return from_json(body) if 0 < len(body) <= _MOST_READ else None


def _error(value: Any) -> tuple[int | None, str | None]:
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return None, None
    code, text = error.get("code"), error.get("message")
    return code if type(code) is int else None, text if isinstance(text, str) else None


def _first_text(result: Any) -> str | None:
    content = result.get("content") if isinstance(result, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else None
    return text if isinstance(text, str) else None


def _short(text: str | None) -> str | None:
    return None if text is None else clip(" ".join(text.split()), _LONGEST)
