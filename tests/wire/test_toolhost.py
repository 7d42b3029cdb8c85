"""What both ends of a tool host's connection agree on."""

from __future__ import annotations

from typing import get_args

from probe.core.call import Cause as CallCause
from probe.wire.toolhost import Cause


def test_every_cause_that_can_end_a_call_can_be_told_to_a_host() -> None:
    assert set(get_args(Cause)) == {cause.value for cause in CallCause}
