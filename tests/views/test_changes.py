"""What changed since a reader last looked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probe.views.tables.changes import Changes


def noted(*names: str, most: int = 100) -> Changes:
    changes = Changes(most)
    for name in names:
        changes.note(name)
    return changes


def names(changed: list[tuple[str, int]]) -> list[str]:
    return [name for name, _ in changed]


def test_each_thing_comes_once_in_the_order_of_its_latest_change() -> None:
    assert noted("a", "b", "a", "c").since(0) == [("b", 2), ("a", 3), ("c", 4)]


def test_a_reader_gets_what_changed_after_its_version() -> None:
    changes = noted("a", "b")
    seen = changes.version
    assert changes.since(seen) == []
    changes.note("a")
    assert changes.since(seen) == [("a", 3)]
    assert names(changes.since(1)) == ["b", "a"]


def test_what_is_forgotten_is_told_to_nobody() -> None:
    changes = noted("a", "b")
    changes.forget("a")
    changes.forget("never there")
    assert (names(changes.since(0)), changes.version, changes.lost) == (["b"], 2, 0)


def test_the_thing_unchanged_longest_makes_room_and_that_shows() -> None:
    changes = noted("a", "b", "a", "c", most=2)
    assert (names(changes.since(0)), changes.lost) == (["a", "c"], 2)


def test_many_changes_that_nobody_looks_at_are_remembered_like_few() -> None:
    changes = noted(*(f"n{number % 7}" for number in range(10_000)), most=3)
    assert changes.since(0) == [(f"n{number % 7}", number + 1) for number in range(9_997, 10_000)]
    assert (changes.version, changes.lost) == (10_000, 9_997)
    assert len(changes._noted) == 0
    for number in range(10_000):
        changes.note(f"n{number}")
        assert len(changes._noted) < 1000


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["note", "forget", "read"]), st.sampled_from("abcdef")), max_size=60),
)
def test_a_reader_misses_nothing_unless_it_is_told(most: int, story: list[tuple[str, str]]) -> None:
    """The model: every change there ever was."""
    changes, history, gone, seen = Changes(most), list[str](), set[str](), 0
    for what, name in story:
        if what == "note":
            changes.note(name)
            history.append(name)
            gone.discard(name)
        elif what == "forget":
            changes.forget(name)
            gone.add(name)
        else:
            got, later = names(changes.since(seen)), history[seen:]
            latest = sorted(set(later) - gone, key=lambda each: max(at for at, it in enumerate(later) if it == each))
            assert len(got) <= most
            assert got == (latest if seen >= changes.lost else latest[len(latest) - len(got) :])
            seen = changes.version
    assert changes.version == len(history)
