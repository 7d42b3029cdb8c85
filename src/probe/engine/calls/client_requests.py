"""Requests from the server to one client: sampling, elicitation, roots, ping. Each has its own time-out.

The ids count from 1 in each session, so one id may be in use in both directions, and in two sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import trio

from ...log.context import Recorder
from ...wire.jsonrpc import Json, RefusedResponse, RequestId, Response
from ..catalogue.tool import ClientRequestError


@dataclass(slots=True, eq=False)
class _Pending:
    answered: trio.Event
    question: Recorder | None = None
    answer: Response | RefusedResponse | None = None
    answered_by: Recorder | None = None


class ClientAnswer(NamedTuple):
    """A client's result, and the recorder of its message."""

    result: Json
    recorder: Recorder


class ClientRequests:
    """The requests of one session, or of one stream, that wait for the client. That session or stream owns it.

    The ids are numbers. With a `prefix` they are strings: such requests may outlive their session.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._next = 0
        self._pending: dict[RequestId, _Pending] = {}

    def resolve(self, answer: Response | RefusedResponse, recorder: Recorder) -> bool:
        """Take a client's answer, or a message that was refused in its place; `recorder` is the message's.

        Returns False if no request waits for this id: it is unknown, answered before, or given up.
        """
        pending = None if answer.id is None else self._pending.pop(answer.id, None)
        if pending is None:
            return False
        pending.answer, pending.answered_by = answer, recorder
        pending.answered.set()
        return True

    def question(self, id: RequestId | None) -> Recorder | None:
        """The recorder of the request that waits for an answer with this id; its cause is the `message.emitted`."""
        pending = None if id is None else self._pending.get(id)
        return None if pending is None else pending.question

    async def ask(
        self,
        method: str,
        send: Callable[[RequestId], Recorder | None],
        withdraw: Callable[[RequestId, str], None],
        timeout_s: float,
    ) -> ClientAnswer:
        """Send a request through `send(id)`, which returns its recorder, and wait for its result.

        On time-out, and when the work that asks is cancelled, this calls `withdraw(id, reason)` (2025-11-25
        basic/lifecycle, Timeouts: "the sender SHOULD issue a cancellation notification"). The caller decides whether to
        send that: after a client has cancelled a call, it gets no further message for it, not even this one.

        Raises `ClientRequestError` on time-out, for an error answer, and for a malformed one.
        """
        self._next += 1
        id: RequestId = f"{self._prefix}{self._next}" if self._prefix else self._next
        pending = _Pending(trio.Event())
        self._pending[id] = pending
        try:
            pending.question = send(id)
            with trio.fail_after(timeout_s):
                await pending.answered.wait()
        except trio.TooSlowError:
            # An answer may arrive after the time has passed and before this line runs. It counts.
            if pending.answer is None:
                withdraw(id, f"no answer within {timeout_s:g} s")
                raise ClientRequestError(f"The client did not answer {method} within {timeout_s:g} s") from None
        except trio.Cancelled:
            if pending.answer is None:
                withdraw(id, "the work that asked was cancelled")
            raise
        finally:
            self._pending.pop(id, None)
        assert pending.answered_by is not None, "the event is set only together with the answer"
        return ClientAnswer(_result(method, pending.answer), pending.answered_by)


def _result(method: str, answer: Response | RefusedResponse | None) -> Json:
    assert answer is not None, "the event is set only together with the answer"
    if isinstance(answer, RefusedResponse):
        fault = "is malformed" if answer.malformed else "was not taken"
        raise ClientRequestError(f"The client's answer to {method} {fault}: {answer.why}")
    if answer.error is not None:
        error = answer.error
        raise ClientRequestError(f"The client answered {method} with error {error['code']}: {error['message']}")
    return dict(answer.result or {})
