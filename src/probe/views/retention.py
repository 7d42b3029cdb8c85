"""How much the views keep: the one table of it. What makes room is let go, the oldest first.

What was let go has no content and no neighbours any more: a reader that still holds it gets `ForgottenError`, never an
empty value.
"""

from __future__ import annotations

from msgspec import Struct


class ForgottenError(Exception):
    """Something was asked for after it had made room for newer things."""


class Retention(Struct, frozen=True, kw_only=True):
    """What is kept of one log. Numbers are of things, unless they say bytes.

    Of all owners together:

    `calls`: tool calls that are listed, the newest. One that runs while it makes room is followed to its end; of these
    there are as many again, and of those that have ended since then the last 100, as their answers may yet be
    delivered. `other_calls`: requests that wait and are no tool calls, such as `tasks/result`.
    `exchanges`, `messages`, `streams`, `connections`, `sessions`, `tasks`, `clients`: the newest that a later entry can
    name. More of them are in flight nowhere. Of messages the content goes first, beyond `content_bytes`.
    `rows`: rows of a table that a page can show and a person can scroll through; a refusal, and a stream that is over,
    are nothing else any more. `dispatches`: calls at tool hosts, many times those that may run by default: more stay
    behind only where entries were missed.
    `evidence`: entries of all tool calls together, about ten megabytes. The call that settled first gives up its own.

    Of one owner:

    `of_call`: entries of a call's own: each of a tool's 100 steps, emitted and delivered, many times over. `visits`:
    entries of other exchanges about a call: a client that asks for its task ten times a second must not push out what
    becomes of the task. `ends`: entries beyond both that end something: a call that reported very much has an end, too.
    `before_call`: entries that name a call before it starts: the opening of its stream and the first message there.
    `of_exchange`: entries, messages and calls of an exchange; a batch is smaller. `of_stream`: messages of a stream
    that a delivery can still name, its readers and control events. `of_pipe`: numbers of messages of a pipe.
    `history`: changes of a task or a process; sessions, declarations and connections of a client.
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
