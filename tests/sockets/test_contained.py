"""`Contained`: what one connection does wrong ends there; what stops the program does not."""

from __future__ import annotations

import gc

import pytest

from probe.server.listener.calls import Contained, PeerGoneError


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ValueError("a defect"), True),
        (PeerGoneError("gone"), False),
        (ExceptionGroup("", [PeerGoneError("gone"), ValueError("a defect")]), True),
        (ExceptionGroup("", [ExceptionGroup("", [PeerGoneError("gone")])]), False),
    ],
    ids=["error", "gone", "both", "nested"],
)
def test_an_error_ends_here_and_only_a_peer_that_left_is_no_news(
    error: Exception, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with Contained("a test"):
        raise error
    assert ("a defect" in caplog.text, "error in a test" in caplog.text) == (logged, logged)


def test_what_stops_the_program_passes_also_beside_an_error(caplog: pytest.LogCaptureFixture) -> None:
    alone, beside = KeyboardInterrupt(), KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as one, Contained("a test"):
        raise alone
    with pytest.raises(BaseExceptionGroup) as several, Contained("a test"):
        raise BaseExceptionGroup("", [beside, ValueError("a defect")])
    assert (one.value, several.value.exceptions) == (alone, (beside,))
    assert "a defect" in caplog.text


def test_what_passes_leaves_nothing_to_the_collector() -> None:
    def passed() -> None:
        with Contained("a test"):
            raise BaseExceptionGroup("", [KeyboardInterrupt(), ValueError("a defect")])

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BaseExceptionGroup):
            passed()
        assert gc.collect() == 0
    finally:
        gc.enable()
