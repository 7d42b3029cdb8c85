"""Multi-round-trip requests: a request that needs input ends, and comes again with the answers.

    round    the client sends                        the work runs from its beginning, and
    1        the request                             asks A: the result is A's request and state {}
    2        the request, answer to A, state {}      asks A, which returns; asks B: B's request and state {A}
    3        the request, answer to B, state {A}     asks A and B, which return; the result is final

The server keeps no state between rounds. The sealed state has the answers of earlier rounds, so a retry may reach
another process with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip
from ...wire.v2026.meta import required_capabilities
from ...wire.v2026.registry import client_answer, offers
from ..catalogue.tool import Ask, InputRequiredError
from ..clock import Clock
from ..request_state import RequestStates
from .incoming import Incoming

# Members that belong to a round and not to the request, so they may differ between rounds.
_OF_THE_ROUND = frozenset({"_meta", "inputResponses", "requestState", "task"})


def check_declared(asks: Mapping[str, Ask], capabilities: Mapping[str, Any]) -> None:
    """Raise `McpError` -32021 for a question of a kind that the client did not declare.

    2026-07-28 basic/patterns/mrtr: "Servers MUST NOT send an `inputRequests` that the client has not declared".
    """
    wanted = [(ask.method, str(ask.params.get("mode", "form"))) for ask in asks.values()]
    missing = dict.fromkeys(
        method.partition("/")[0] + (".url" if mode == "url" else "")
        for method, mode in wanted
        if not offers(capabilities, method, mode)
    )
    if missing:
        why = f"Missing required client capability: {', '.join(missing)}"
        raise McpError(Code.MISSING_CLIENT_CAPABILITY, why, required_capabilities(missing))


def check_answers(asked: Mapping[str, str], responses: Mapping[str, Any]) -> None:
    """Raise `McpError` -32602 for an answer of the wrong form for its question; `asked` has the methods by key.

    "Protocol errors (malformed JSON, invalid schema, internal server errors) SHOULD return a JSON-RPC error".
    """
    for key in responses:
        fault = client_answer(asked[key], responses[key]) if key in asked else None
        if fault is not None:
            where = f"params.inputResponses[{clip(key)!r}] answers {asked[key]}"
            raise McpError(Code.INVALID_PARAMS, f"Invalid params: {where}, but {fault}")


class RoundTrips:
    """Opens the rounds of one engine. A state is valid for `ttl_s` seconds."""

    def __init__(self, states: RequestStates, clock: Clock, ttl_s: float, max_bytes: int) -> None:
        self._states = states
        self._clock = clock
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes

    def open(self, incoming: Incoming) -> Rounds:
        """The rounds up to this request. Raises `McpError` -32602 for a state of another server or request."""
        params = incoming.request.params or {}
        state, memory = params.get("requestState"), {}
        if state is not None:
            memory = self._states.open(state, binding=_binding(incoming), now=self._clock.wall())
        return Rounds(self, incoming, memory, params.get("inputResponses") or {}, resumed=state is not None)

    def seal(self, memory: Json, incoming: Incoming) -> str:
        """Seal answers as a state. Raises `McpError` -32602 if it is larger than a client may return."""
        expires_at = self._clock.wall() + self._ttl_s
        state = self._states.seal(memory, binding=_binding(incoming), expires_at=expires_at)
        if len(state) > self._max_bytes:
            why = f"the answers so far make a requestState of more than {self._max_bytes} bytes (max_request_state)"
            raise McpError(Code.INVALID_PARAMS, f"Invalid params: {why}")
        return state


def _binding(incoming: Incoming) -> Json:
    """The members of a request that are the same in all its rounds."""
    params = incoming.request.params or {}
    own = {key: value for key, value in params.items() if key not in _OF_THE_ROUND}
    return {"method": incoming.request.method, "selection": incoming.offer.selection, "params": own}


class Rounds:
    """The answers to a request in all its rounds; `memory` is the content of its sealed state."""

    def __init__(
        self, trips: RoundTrips, incoming: Incoming, memory: Json, given: Mapping[str, Any], *, resumed: bool
    ) -> None:
        self.resumed = resumed
        self._trips = trips
        self._incoming = incoming
        self._known: Json = memory.get("answers", {})
        self._kept: Json = memory.get("kept", {})
        self._given = given

    def keep(self, key: str, make: Callable[[], str]) -> str:
        """A value that is made in the round that needs it first, and is the same in all later rounds."""
        if key not in self._kept:
            self._kept[key] = make()
            # Such an answer is older than the new value.
            self._given = {name: answer for name, answer in self._given.items() if name != key}
        return str(self._kept[key])

    def answers(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """The client's results, by key.

        Raises `McpError` for a question that the client did not declare, and for an answer of the wrong form. Raises
        `InputRequiredError` while an answer is missing: its question is sent again, and the other answers are kept.
        """
        if not asks:
            return {}
        check_declared(asks, self._incoming.meta.capabilities)
        # A sealed answer stays: a second answer for its key is to a question that is no longer open.
        fresh = {key: self._given[key] for key in asks if key not in self._known and key in self._given}
        check_answers({key: ask.method for key, ask in asks.items()}, fresh)
        self._known.update(fresh)
        missing = {
            key: {"method": ask.method, "params": ask.params} for key, ask in asks.items() if key not in self._known
        }
        if missing:
            state = self._trips.seal({"answers": self._known, "kept": self._kept}, self._incoming)
            raise InputRequiredError({"inputRequests": missing, "requestState": state})
        return {key: self._known[key] for key in asks}


class Admitted(Struct, frozen=True):
    """A call that will run: its checked arguments, and the answers to its `inputs`."""

    arguments: Mapping[str, Any]
    answers: Mapping[str, Json]
    rounds: Rounds
