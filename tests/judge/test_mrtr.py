"""Rules `mrtr.*`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect
from .dialogues import CALL, FORM, MODERN_CAPABILITIES, SAMPLED, SAMPLING, STATE, open_round, retry
from .logs import Http, Log, Pipe, judged

ECHOED, ID, ISOLATION, SAME = "mrtr.state-echoed", "mrtr.new-id", "mrtr.isolation", "mrtr.same-request"
FIRST, KEYS, SHAPE = "mrtr.inputs-first", "mrtr.keys", "mrtr.answer-shape"
ALL = (ECHOED, ID, ISOLATION, SAME, FIRST, KEYS, SHAPE)
QUESTION = {"method": "elicitation/create", "params": FORM}
ASKED = {"name": QUESTION}
RESULT = {"action": "accept", "content": {"name": "ada"}}
GOOD = {"name": RESULT}
BOTH = {**ASKED, "text": {"method": "sampling/createMessage", "params": SAMPLING}}
ROOTS = {"roots": {"method": "roots/list", "params": {}}}
OTHER_STATE = "AAAAAAzyxwvutsrqponmlkjihgfedcba9876543210"
OTHER_CALL = {"name": "tool", "arguments": {"n": 2}}
BACK = {"inputResponses": GOOD, "requestState": STATE}
WAYS: dict[str, Callable[[Log], Http | Pipe]] = {"http": Log.http, "websocket": Log.websocket, "stdio": Log.stdio}


def retried(answers: Any = GOOD, *, asks: Any = ASKED, way: str = "http", **options: Any) -> Log:
    """A round and its retry."""
    log = Log()
    client = WAYS[way](log)
    open_round(client, asks)
    log.after(1)
    retry(client, answers, **options)
    return log


def sent(content: Any) -> Story:
    """An answer with some content."""
    return partial(retried, {"name": {**RESULT, "content": content, "extra": 1}})


def hidden(place: str, kind: str, **options: Any) -> Story:
    return partial(retried, message={"hidden": ((place, kind),)}, **options)


BAD: list[tuple[Expected, dict[str, Any]]] = [
    *(
        ({ECHOED: FAIL}, {"state": state})
        for state in (None, "", STATE[:-4], STATE + "=", STATE.lower(), STATE[:20] + "?" + STATE[21:], {"parsed": True})
    ),
    ({ECHOED: WARN}, {"state": OTHER_STATE}),
    ({ID: FAIL}, {"id": 1}),
    ({ISOLATION: FAIL}, {"call": {"name": "other", "arguments": {}}}),
    ({SAME: WARN}, {"call": OTHER_CALL}),
    ({FIRST: FAIL}, {"answers": None}),
    ({FIRST: FAIL}, {"answers": {}}),
    ({FIRST: WARN}, {"asks": BOTH}),
    ({KEYS: WARN}, {"answers": {**GOOD, "more": {"action": "cancel"}}}),
    ({SHAPE: FAIL}, {"answers": {"name": {"jsonrpc": "2.0", "id": 1, "result": RESULT}}}),
    ({SHAPE: FAIL}, {"answers": {"name": {"result": RESULT}}}),
    ({SHAPE: FAIL}, {"answers": {"name": {"action": "accept", "content": {"name": {"deep": 1}}}}}),
]

ONE_ROUND: list[tuple[Expected, Story]] = [
    *((dict.fromkeys((ECHOED, ID, SAME, FIRST, KEYS, SHAPE), PASS), partial(retried, way=way)) for way in WAYS),
    *((expected, partial(retried, way=way, **options)) for way in WAYS for expected, options in BAD),
    ({SHAPE: FAIL}, partial(retried, {"roots": {"folders": []}}, asks=ROOTS)),
    ({SHAPE: PASS}, partial(retried, {"roots": {"roots": []}}, asks=ROOTS)),
    # A number is content, whatever the schema file says.
    *(({SHAPE: PASS}, sent(content)) for content in ({"ratio": 0.25}, {"count": 5}, {"days": ["sat"]}, {"more": True})),
    # null for what was left empty
    ({SHAPE: WARN}, partial(retried, {"name": {"action": "decline", "content": None}})),
    ({SHAPE: WARN}, partial(retried, {"name": {"action": "accept", "content": {"name": None}}})),
    ({ECHOED: UNCLEAR}, hidden("/params/requestState", "string", state="-")),
    ({SAME: SILENT}, hidden("/params/arguments/token", "string", call=OTHER_CALL)),
    (
        {SHAPE: PASS},
        hidden("/params/inputResponses/name/content", "object", answers={"name": {"action": "accept", "content": "-"}}),
    ),
    ({FIRST: PASS}, partial(retried, {"name": {"action": "decline"}})),
    ({FIRST: PASS}, partial(retried, {"name": {"action": "cancel"}, "text": SAMPLED}, asks=BOTH)),
    # Arguments that are left out are equal to none at all.
    ({SAME: PASS}, partial(retried, call={"name": "tool"})),
    ({SAME: PASS, "tools.arguments-object": FAIL}, partial(retried, call={"name": "tool", "arguments": None})),
    # A question that the judge does not know has a key.
    (
        {KEYS: PASS, FIRST: PASS, SHAPE: SILENT},
        partial(retried, {"later": {"data": ""}}, asks={"later": {"method": "audio/record", "params": {}}}),
    ),
    # A round without questions may come back at once.
    ({FIRST: SILENT}, partial(retried, None, asks={})),
]


def two_rounds(answers: Any, **options: Any) -> Log:
    """Two rounds of one call, and what comes after the second."""
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    open_round(client, {"second": QUESTION}, answers=BACK, state=OTHER_STATE)
    retry(client, answers, state=OTHER_STATE, **options)
    return log


def two_calls(*retries: tuple[Any, str | None], second: Any = OTHER_CALL) -> Log:
    """Two calls at once, and retries with their states."""
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    open_round(client, ASKED, second, state=OTHER_STATE)
    for call, state in retries:
        retry(client, GOOD, call, state=state)
    return log


def another_process() -> Log:
    log = Log()
    first = log.stdio()
    open_round(first, ASKED)
    first.close()
    retry(log.stdio(), GOOD)
    return log


def no_round(state: str | None) -> Log:
    log = Log()
    retry(log.http(), GOOD, state=state)
    return log


def behind_a_gap() -> Log:
    log = Log()
    client = log.http()
    log.gap()
    open_round(client, ASKED)
    retry(client, GOOD, state=STATE[:-2])
    retry(client, GOOD)
    return log


def without_a_name() -> Log:
    log = Log()
    client = log.http(None)
    open_round(client, ASKED)
    retry(client, GOOD, state=None)
    return log


def out_of_memory() -> Log:
    log = Log()
    client = log.http()
    for number in range(1_001):
        open_round(client, ASKED, state=f"{number}{STATE}")
    retry(client, GOOD, state="0" + STATE)
    return log


def no_retry() -> Log:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/call", CALL, capabilities=MODERN_CAPABILITIES), {"content": []})
    return log


MORE_ROUNDS: list[tuple[Expected, Story]] = [
    # Answers of earlier rounds may be sent along, and the id is another than both before it.
    ({KEYS: PASS}, partial(two_rounds, {**GOOD, "second": {"action": "cancel"}})),
    *(
        ({ID: verdict}, partial(two_rounds, {"second": {"action": "cancel"}}, id=id))
        for id, verdict in ((1, FAIL), (2, FAIL), (3, PASS))
    ),
    ({ID: WARN}, another_process),
    ({ECHOED: PASS, ISOLATION: PASS}, partial(two_calls, (OTHER_CALL, OTHER_STATE), (CALL, STATE))),
    ({ISOLATION: FAIL}, partial(two_calls, (OTHER_CALL, STATE), (CALL, OTHER_STATE))),
    ({ECHOED: UNCLEAR}, partial(two_calls, (CALL, None), second=CALL)),
    ({ECHOED: UNCLEAR}, partial(no_round, None)),
    # of an earlier run
    ({ECHOED: WARN}, partial(no_round, STATE)),
    ({ECHOED: UNCLEAR}, behind_a_gap),
    ({ECHOED: UNCLEAR}, without_a_name),
    ({ECHOED: UNCLEAR}, out_of_memory),
    (dict.fromkeys(ALL, SILENT), no_retry),
]


@each("expected, story", [*ONE_ROUND, *MORE_ROUNDS])
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


def rounds(count: int, *, ends: str = "") -> Log:
    """A call whose rounds are all answered but for the last; it `ends` with another act of the client."""
    log = Log()
    client = log.http()
    states = [f"{STATE}{number}" for number in range(count)]
    for number, state in enumerate(states):
        before = {"inputResponses": GOOD, "requestState": states[number - 1]} if number else {}
        open_round(client, ASKED, state=state, answers=before)
        log.after(1)
    for act in ends.split():
        if act == "retry":
            retry(client, GOOD, state=states[-1])
        elif act == "again":
            # The POST before came once more.
            open_round(client, ASKED, state=states[-1], answers=before)
        elif act == "others":
            for number in range(1_001):
                open_round(client, ASKED, state=f"{number}{STATE}")
        elif act == "exit":
            log.process("exited", 0)
    log.idle(10 if ends == "early" else 400)
    return log


@each(
    "story, measured",
    [
        (partial(rounds, 11), 10),
        (partial(rounds, 11, ends="exit"), 10),
        (partial(rounds, 2), 1),
        (partial(rounds, 1), None),
        (partial(rounds, 11, ends="retry"), None),
        (partial(rounds, 11, ends="early"), None),
        *((partial(rounds, 2, ends=ends), None) for ends in ("again retry", "retry again", "others retry")),
        (partial(rounds, 2, ends="again"), 1),
    ],
)
def test_after_how_many_rounds_a_client_gives_up_is_measured(story: Story, measured: int | None):
    found = expect(story, {}, over=None)
    assert found.measured.get(FIRST, {}) == (
        {} if measured is None else {"rounds answered before it gave up": measured}
    )


def test_a_retry_that_is_posted_again_is_innocent():
    log = Log()
    client = log.http()
    open_round(client, ASKED)
    for _ in range(2):
        retry(client, GOOD, id=2)
    found = judged(log)["acme"]
    assert {found[rule] for rule in (ECHOED, ID, SAME, FIRST)} == {PASS}
    assert found.faults.keys().isdisjoint(ALL)


def test_the_states_of_two_clients_are_apart():
    log = Log()
    one, other = log.http("one"), log.http("other")
    open_round(one, ASKED)
    open_round(other, ASKED, state=OTHER_STATE)
    retry(other, GOOD, state=OTHER_STATE)
    retry(one, GOOD)
    assert [found.faults for found in judged(log).values()] == [{}, {}]
