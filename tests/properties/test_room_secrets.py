"""However a client writes the id of its room, a collector gets no part of it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from probe.rooms.exported import HiddenSecrets, room_number
from probe.rooms.ids import RANDOM_BYTES, RoomIds, secret_of
from probe.wire.jsonrpc import clip

PART = 12
IDS = RoomIds([b"a key of the test"])
ids = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES).map(lambda random: IDS.make(random, 1_790_000_000))


def _coded(text: str) -> str:
    return "".join(f"%{ord(letter):02x}" for letter in text)


SPELLINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.lower,
    _coded,
    lambda text: _coded(text).upper(),
    lambda text: _coded(text.swapcase()),
    lambda text: _coded(text).replace("%", "%25"),
    lambda text: _coded(_coded(text)),
]
spellings = st.sampled_from(SPELLINGS)
other = st.text(st.sampled_from("aF25_-/%… \nİſ"), max_size=8) | st.sampled_from(
    ["%", "%2", "%25", "…", "/r/Hb3Qit2o/", "%2F"]
)


@st.composite
def texts(draw: st.DrawFn, secrets: list[str]) -> str:
    """Parts of secrets in some spellings among other text, clipped, within a message that may be clipped, too."""
    written = ""
    for _ in range(draw(st.integers(1, 4))):
        secret = draw(st.sampled_from(secrets))
        begin, end = sorted(draw(st.tuples(st.integers(0, 40), st.integers(0, 40))))
        # Each half has a spelling of its own.
        split = draw(st.integers(begin, end))
        halves = draw(spellings)(secret[begin:split]) + draw(spellings)(secret[split:end])
        written += draw(other) + clip(halves, draw(st.integers(1, 80))) + draw(other)
    return clip(f"Task not found: {clip(written, draw(st.integers(10, 300)))} is unknown", draw(st.integers(10, 300)))


@given(st.data(), ids)
def test_nothing_that_is_sent_has_a_part_of_a_secret(data: st.DataObject, id: str) -> None:
    secrets = [secret_of(id), secret_of(IDS.reading(id))]
    sent = HiddenSecrets(secrets, room_number(id))(data.draw(texts(secrets)))
    once = unquote(sent, "latin-1")
    for read in (sent, once, unquote(once, "latin-1")):
        for secret in secrets:
            parts = {secret[at : at + PART].lower() for at in range(len(secret) - PART + 1)}
            assert not {part for part in parts if part in read.lower()}, read
