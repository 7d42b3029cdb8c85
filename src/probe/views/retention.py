"""How much the views keep. The oldest make room first.

A view that made room has no content and no references any more: a reader that still holds it gets `ForgottenError`,
never an empty value.
"""

from __future__ import annotations

from msgspec import Struct


class ForgottenError(Exception):
    """A reader asked for a content after it had made room."""


class Retention(Struct, frozen=True, kw_only=True):
    """The bounds of the views of one log: numbers of items; bytes where the name has `bytes`.

    Of all owners together:

    `calls`: listed tool calls, the newest. A call that makes room while running is followed to its end: as many again,
    and the last 100 that have ended since, as their answers may yet be delivered. `other_calls`: waiting requests other
    than tool calls, such as `tasks/result`.

    `exchanges`, `messages`, `streams`, `connections`, `sessions`, `tasks`, `clients`: the newest. Later entries refer
    to these only: more are never in flight. The content of messages goes first, beyond `content_bytes`.

    `rows`: rows of a table, as many as a page can show; the bound of refusals, and of streams that are over.
    `dispatches`: calls at tool hosts, many times the default limit of running ones: more remain only after missed
    entries.

    `evidence`: entries of all tool calls together, about ten megabytes. The call that settled first gives up its own.

    Of one owner:

    `of_call`: entries of a call's own: each of a tool's 100 steps, emitted and delivered, many times over. `visits`:
    entries of other exchanges about a call: a client that sends `tasks/get` ten times a second must not push out the
    end of the task. `ends`: entries of ends beyond both bounds, so that a call with very many reports has an end, too.
    `before_call`: entries of a call before its start: the opening of its stream and the first message there.
    `of_exchange`: entries, messages and calls of an exchange; a batch is smaller. `of_stream`: undelivered messages of
    a stream, its readers and control events. `of_pipe`: numbers of messages of a pipe. `history`: changes of a task or
    a process; sessions, declarations and connections of a client.
    """

    calls: int = 5_000
    other_calls: int = 10_000
    exchanges: int = 20_000
    messages: int = 20_000
    content_bytes: int = 32 * 1024 * 1024
    streams: int = 20_000
    connections: int = 20_000
    sessions: int = 20_000
    tasks: int = 20_000
    clients: int = 20_000
    rows: int = 2_000
    dispatches: int = 10_000
    evidence: int = 250_000
    of_call: int = 2_000
    visits: int = 1_000
    ends: int = 100
    before_call: int = 10
    of_exchange: int = 100
    of_stream: int = 1_000
    of_pipe: int = 5_000
    history: int = 1_000
