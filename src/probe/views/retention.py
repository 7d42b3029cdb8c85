"""How much the views keep, and the parsed contents of messages. The oldest make room first.

A view that made room has no content and no references any more: a reader that still holds it gets `ForgottenError`,
never an empty value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct
from pydantic_core import from_json


class ForgottenError(Exception):
    """A reader asked for a content after it had made room."""


class Retention(Struct, frozen=True, kw_only=True):
    """The bounds of the views of one log: numbers of items; bytes where the name has `bytes`.

    Of all owners together:

    `calls`: listed tool calls, the newest. A call that makes room while running is followed to its end: as many again,
    and the last `ended_calls` of these, as their answers may yet be delivered. `other_calls`: waiting requests other
    than tool calls, such as `tasks/result`.

    `ended_sessions`: sessions that were closed before the first entry of their log, where calls go with their entries,
    too. A late request may name one, and is judged by its end.

    `unfinished`: of each kind, messages, exchanges, streams and waiting requests without an end there, whose entries
    the log has let go: some hundred are in flight in a room, and the end of others was missed.

    `modern_clients`: sessions of modern clients there, if the log has no entry of them any more: as many as the server
    knows.

    `exchanges`, `messages`, `streams`, `connections`, `sessions`, `tasks`, `clients`: the newest. Later entries refer
    to these only: more are never in flight. The content of messages goes first, beyond `content_bytes`; `parsed_bytes`
    of it are kept parsed: more than arrive before the answer to most requests.

    `rows`: rows of a table, as many as a page can show; the bound of refusals, and of streams that are over.
    `dispatches`: calls at tool hosts, many times the default limit of running ones: more remain only after missed
    entries.

    `evidence`: entries of all tool calls together, about ten megabytes. The call that settled first gives up its own.
    `line_exchanges`: exchanges of a filter line that change at the same time. Beyond it, all entries of an exchange
    are looked at again.

    Of one owner:

    `of_call`: entries of a call's own: each of a tool's 100 steps, emitted and delivered, many times over. `visits`:
    entries of other exchanges about a call: a client that sends `tasks/get` ten times a second must not push out the
    end of the task. `ends`: entries of ends beyond both bounds, so that a call with very many reports has an end, too.
    `before_call`: entries of a call before its start: the opening of its stream and the first message there.
    `of_exchange`: entries, messages and calls of an exchange; a batch is smaller. `of_stream`: undelivered messages of
    a stream, its readers and control events. `of_pipe`: numbers of messages of a pipe. `history`: changes of a task or
    a process; sessions, declarations and connections of a client. `names`: different names counted for a session;
    the others count together.
    """

    calls: int = 5_000
    ended_calls: int = 100
    other_calls: int = 10_000
    exchanges: int = 20_000
    messages: int = 20_000
    content_bytes: int = 32 * 1024 * 1024
    parsed_bytes: int = 128 * 1024
    streams: int = 20_000
    connections: int = 20_000
    sessions: int = 20_000
    ended_sessions: int = 100
    unfinished: int = 500
    modern_clients: int = 1_000
    tasks: int = 20_000
    clients: int = 20_000
    rows: int = 2_000
    dispatches: int = 10_000
    evidence: int = 250_000
    line_exchanges: int = 1_000
    of_call: int = 2_000
    visits: int = 1_000
    ends: int = 100
    before_call: int = 10
    of_exchange: int = 100
    of_stream: int = 1_000
    of_pipe: int = 5_000
    history: int = 1_000
    names: int = 100


class Content:
    """A message, parsed. `params` and its `_meta` are empty where the message has no such object."""

    __slots__ = ("meta", "params", "size", "value")

    def __init__(self, raw: bytes) -> None:
        self.size = len(raw)
        self.value: Any = from_json(raw)
        self.params = members(members(self.value).get("params"))
        self.meta = members(self.params.get("_meta"))


class Holder(Protocol):
    """A message, with a place for its parsed content."""

    parsed: Content | None


class Contents:
    """Keeps the newest contents parsed; an older one is parsed anew each time."""

    __slots__ = ("_bytes", "_holders", "_most_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._holders: deque[tuple[Holder, int]] = deque()
        self._bytes = 0

    def keep(self, holder: Holder, content: Content) -> None:
        """The oldest make room."""
        holder.parsed = content
        self._holders.append((holder, content.size))
        self._bytes += content.size
        # The newest one is kept, however large it is. Messages that were forgotten meanwhile are not.
        while len(self._holders) > 1 and (self._bytes > self._most_bytes or self._holders[0][0].parsed is None):
            oldest, size = self._holders.popleft()
            oldest.parsed = None
            self._bytes -= size


def members(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def covers(hidden: Iterable[tuple[str, str]], place: str) -> bool:
    """True if the log hides the member at a JSON pointer, or one below or above it."""
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for path, _ in hidden)
