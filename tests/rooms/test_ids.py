"""The ids of rooms."""

from __future__ import annotations

import pytest

from probe.rooms.ids import RANDOM_BYTES, RoomIds, secret_of

KEY, OTHER = b"k" * 32, b"o" * 32
RANDOM = bytes(range(RANDOM_BYTES))
NOW = 1_780_000_000.0
ids = RoomIds([KEY])
ID = ids.make(RANDOM, NOW)


def test_it_is_two_segments_of_a_path_and_the_second_has_128_random_bits() -> None:
    routing, secret = ID.split("/")
    assert (len(routing), len(secret)) == (8, 40)
    assert secret_of(ID) == secret
    assert RANDOM_BYTES - 6 == 128 / 8
    assert ids.make(RANDOM[:-1] + b"x", NOW).split("/")[1] != secret


@pytest.mark.parametrize("age", [0, 59, -59, 3600])
def test_every_process_with_the_key_knows_its_age(age: int) -> None:
    assert RoomIds([KEY]).age(ID, NOW + age) == age


def test_a_key_that_signed_before_still_knows_it() -> None:
    assert RoomIds([OTHER, KEY]).age(ID, NOW) == 0
    assert RoomIds([OTHER]).age(ID, NOW) is None


def test_no_other_text_is_one() -> None:
    for place, character in enumerate(ID):
        changed = "B" if character == "A" else "A"
        assert ids.age(ID[:place] + changed + ID[place + 1 :], NOW) is None
    for text in ("", "/", ID[:-1], ID + "A", ID.replace("/", ""), ID + "\n", ID.upper(), "ä" * 8 + ID[8:]):
        assert ids.age(text, NOW) is None


def test_the_read_only_one_is_routed_alike_and_opens_no_room() -> None:
    reading = ids.reading(ID)
    assert (reading[:9], len(reading)) == (ID[:9], len(ID))
    assert secret_of(reading) != secret_of(ID)
    assert ids.age(reading, NOW) is None
    assert RoomIds([OTHER, KEY]).reading(ID) == reading
