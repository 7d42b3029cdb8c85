"""The questions of one task: every state of a key against every way to use it."""

from __future__ import annotations

from typing import Any

import pytest

from probe.core.task import TaskInputs, TaskInputsViolationError

ASK = {"method": "elicitation/create", "params": {"message": "?"}}
ANSWER = {"action": "decline"}
# The table of the module's docstring: what `ask` and `update` make of a key; None is a violation.
TABLE: dict[tuple[str, str], str | None] = {
    ("never used", "ask"): "outstanding",
    ("never used", "update"): "never used",
    ("outstanding", "ask"): None,
    ("outstanding", "update"): "answered",
    ("answered", "ask"): None,
    ("answered", "update"): "answered",
    ("withdrawn", "ask"): None,
    ("withdrawn", "update"): "withdrawn",
    ("never used", "withdraw"): "never used",
    ("outstanding", "withdraw"): "withdrawn",
    ("answered", "withdraw"): "answered",
    ("withdrawn", "withdraw"): "withdrawn",
}


def reach(state: str) -> TaskInputs:
    """Inputs whose key "it" has a state."""
    inputs = TaskInputs()
    if state != "never used":
        inputs.ask({"it": ASK})
    if state == "answered":
        inputs.update({"it": ANSWER})
    if state == "withdrawn":
        assert inputs.withdraw(["it"]) == 1
    assert state_of(inputs, "it") == state
    return inputs


def state_of(inputs: TaskInputs, key: str) -> str:
    if key in inputs.outstanding:
        assert inputs.answers([key]) is None
        return "outstanding"
    if key in inputs._withdrawn:
        assert inputs.answers([key]) is None
        return "withdrawn"
    return "never used" if inputs.answers([key]) is None else "answered"


def use(inputs: TaskInputs, how: str, value: Any) -> None:
    if how == "ask":
        inputs.ask({"it": value})
    elif how == "withdraw":
        inputs.withdraw(["it"])
    else:
        inputs.update({"it": value})


@pytest.mark.proves("ext-tasks/tasks/22")
@pytest.mark.parametrize(("state", "how"), [key for key, after in TABLE.items() if after is not None])
def test_a_row_of_the_table(state: str, how: str) -> None:
    inputs = reach(state)
    use(inputs, how, ASK if how == "ask" else {"action": "another"})
    assert state_of(inputs, "it") == TABLE[state, how]


@pytest.mark.proves("ext-tasks/tasks/17", "ext-tasks/tasks/18", "ext-tasks/tasks/19")
@pytest.mark.parametrize(("state", "how"), [key for key, after in TABLE.items() if after is None])
def test_a_key_is_never_used_for_a_second_question(state: str, how: str) -> None:
    inputs = reach(state)
    with pytest.raises(TaskInputsViolationError, match="the task has asked under it before"):
        use(inputs, how, ASK)
    assert state_of(inputs, "it") == state


def test_where_one_key_was_used_none_is_asked() -> None:
    inputs = reach("answered")
    with pytest.raises(TaskInputsViolationError, match="under it before"):
        inputs.ask({"new": ASK, "it": ASK})
    assert dict(inputs.outstanding) == {}
    inputs.ask({"new": ASK})
    assert dict(inputs.outstanding) == {"new": ASK}


def test_every_key_at_fault_is_named() -> None:
    inputs = TaskInputs()
    inputs.ask({"b": ASK, "a": ASK, "c": ASK})
    with pytest.raises(TaskInputsViolationError, match="under a, b before"):
        inputs.ask({"b": ASK, "a": ASK, "d": ASK})


@pytest.mark.parametrize(
    ("responses", "taken", "left"),
    [
        ({}, 0, ["a", "b", "c"]),
        ({"x": ANSWER}, 0, ["a", "b", "c"]),
        ({"b": ANSWER}, 1, ["a", "c"]),
        ({"b": ANSWER, "x": ANSWER}, 1, ["a", "c"]),
        ({"c": ANSWER, "a": ANSWER}, 2, ["b"]),
        ({"c": ANSWER, "a": ANSWER, "b": ANSWER}, 3, []),
    ],
)
def test_update_takes_what_is_outstanding_and_counts_it(responses: dict[str, Any], taken: int, left: list[str]) -> None:
    inputs = TaskInputs()
    inputs.ask({"a": ASK, "b": ASK, "c": ASK})
    assert inputs.update(responses) == taken
    assert list(inputs.outstanding) == left
    assert inputs.update(responses) == 0


def test_the_first_answer_is_kept() -> None:
    inputs = reach("answered")
    assert inputs.update({"it": {"action": "cancel"}}) == 0
    assert inputs.answers(["it"]) == {"it": ANSWER}


def test_answers_that_come_together_are_kept_apart() -> None:
    inputs = TaskInputs()
    inputs.ask({"a": ASK, "b": ASK, "c": ASK})
    given = {"c": {"n": 3}, "a": {"n": 1}, "b": {"n": 2}}
    inputs.update(given)
    assert inputs.answers(["a", "b", "c"]) == given


def test_an_answer_that_came_before_its_question_is_not_kept() -> None:
    inputs = TaskInputs()
    inputs.update({"it": ANSWER})
    inputs.ask({"it": ASK})
    assert inputs.answers(["it"]) is None


def test_answers_are_there_once_the_last_is_there() -> None:
    inputs = TaskInputs()
    inputs.ask({"a": ASK, "b": ASK})
    inputs.update({"b": {"n": 2}})
    assert inputs.answers(["a", "b"]) is None
    assert inputs.answers(["b"]) == {"b": {"n": 2}}
    inputs.update({"a": {"n": 1}})
    assert inputs.answers(["a", "b"]) == {"a": {"n": 1}, "b": {"n": 2}}
    assert inputs.answers([]) == {}


def test_two_sets_of_questions_may_be_open_at_once() -> None:
    inputs = TaskInputs()
    inputs.ask({"a": ASK})
    inputs.ask({"b": ASK})
    assert list(inputs.outstanding) == ["a", "b"]
    inputs.update({"b": ANSWER})
    assert (inputs.answers(["a"]), inputs.answers(["b"])) == (None, {"b": ANSWER})


def test_an_empty_answer_is_an_answer() -> None:
    inputs = reach("outstanding")
    assert inputs.update({"it": {}}) == 1
    assert inputs.answers(["it"]) == {"it": {}}


def test_what_was_read_is_not_changed_by_what_comes_later() -> None:
    inputs = reach("outstanding")
    read = inputs.outstanding
    inputs.update({"it": ANSWER})
    assert dict(read) == {"it": ASK}
