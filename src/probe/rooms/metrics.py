"""The metrics of rooms. No label has an id of a room, which is a secret."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from ..telemetry.metrics import Values, counter, gauge
from .rooms import ENDED, REFUSED, Rooms


def families(rooms: Rooms) -> Iterator[Metric]:
    """The values at this moment."""
    ended: Values = {(why,): rooms.ended[why] for why in ENDED}
    refused: Values = {(why,): rooms.refused[why] for why in REFUSED}
    yield gauge("rooms", "Rooms that are open.", len(rooms))
    yield counter("rooms_opened", "Rooms that were opened.", {(): rooms.opened})
    yield counter("rooms_ended", "Rooms that have ended.", ended, ("why",))
    yield counter("room_refusals", "Requests that found no room, and rooms that were not made.", refused, ("why",))
