"""Version negotiation: 2025-11-25 basic/lifecycle."""

from __future__ import annotations

from typing import get_args

import pytest

from probe.core.call import Cause as CallCause
from probe.wire.revisions import LEGACY, negotiate
from probe.wire.toolhost import Cause

from ..support.schemas import schema


def test_the_legacy_revisions_are_those_with_initialize_oldest_first() -> None:
    assert sorted(LEGACY) == list(LEGACY) == ["2025-03-26", "2025-06-18", "2025-11-25"]
    assert all("InitializeRequest" in schema(revision).definitions for revision in LEGACY)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_supported_version_is_answered_with_itself(revision: str) -> None:
    """ "If the server supports the requested protocol version, it MUST respond with the same version"."""
    assert negotiate(revision) == revision


@pytest.mark.parametrize("requested", ["2024-11-05", "2026-07-28", "2099-01-01", "", "1.0", "2025-06-18 "])
def test_any_other_version_is_answered_with_the_latest(requested: str) -> None:
    """ "Otherwise, the server MUST respond with another protocol version it supports. This SHOULD be the latest"."""
    assert negotiate(requested) == "2025-11-25"


# What both ends of a tool host's connection agree on.


def test_every_cause_that_can_end_a_call_can_be_told_to_a_host() -> None:
    assert set(get_args(Cause)) == {cause.value for cause in CallCause}
