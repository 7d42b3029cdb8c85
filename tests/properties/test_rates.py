"""Token buckets against the definition: within any time a client gets a burst and what the rate gives, and no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probe.core.budgets import Rates

steps = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=120)


@given(steps=steps, rate=st.integers(1, 8), burst=st.integers(1, 6))
def test_as_many_as_the_definition_allows(steps, rate: int, burst: int) -> None:
    """In eighths of a second, so that no float is rounded."""
    rates, now = Rates(rate, burst, 10), 0.0
    tokens, filled = dict.fromkeys("abc", float(burst)), dict.fromkeys("abc", 0.0)
    for client, pause in steps:
        now += pause / 8
        tokens[client] = min(burst, tokens[client] + (now - filled[client]) * rate)
        filled[client] = now
        verdict = rates.take(client, now)
        assert (verdict.wait_s == 0) == (tokens[client] >= 1)
        if verdict.wait_s:
            assert abs(verdict.wait_s - (1 - tokens[client]) / rate) < 1e-9
        else:
            tokens[client] -= 1


@given(costs=st.lists(st.integers(1, 9), min_size=1, max_size=30), rate=st.integers(1, 8), burst=st.integers(1, 6))
def test_who_waits_as_told_keeps_to_the_rate(costs, rate: int, burst: int) -> None:
    rates, now, spent = Rates(rate, burst, 10), 0.0, 0
    for cost in costs:
        spent += cost
        now += rates.charge("a", cost, now).wait_s
        assert spent <= burst + now * rate + 1e-6


@given(keys=st.lists(st.integers(0, 50), max_size=300), most=st.integers(1, 10))
def test_the_table_is_bounded(keys: list[int], most: int) -> None:
    rates = Rates(1.0, 5, most)
    for at, key in enumerate(keys):
        rates.take(str(key), at / 16)
        assert len(rates) <= most
