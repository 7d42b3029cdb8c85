"""The services that every part of one engine uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from ..log.context import Recorder
from ..log.event_log import EventLog
from ..settings import Limits, Settings
from .budgets import AddressShares, ByteLimit
from .clock import Clock
from .interactions import Interactions


@dataclass(frozen=True, slots=True)
class Services:
    """The log, the clock, the settings, and all that the clients of one engine share.

    `new_id` returns ids that cannot be guessed, of visible ASCII characters; `exchanges` returns the numbers of
    exchanges. `piped` counts unsent bytes on pipes, `unsent` those of HTTP responses.
    """

    log: EventLog
    clock: Clock
    settings: Settings
    shares: AddressShares
    interactions: Interactions
    new_id: Callable[[], str]
    piped: ByteLimit
    unsent: ByteLimit
    exchanges: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def limits(self) -> Limits:
        """The limits in the settings."""
        return self.settings.limits

    @property
    def recorder(self) -> Recorder:
        """The recorder of facts about the server as a whole."""
        return Recorder(self.log)
