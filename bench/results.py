"""What was measured, and the figures of it that one run is compared with another one by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from .feed import Feed
from .growth import Growth
from .hosts import Hosted
from .load import Cancellations, Streams, percentile
from .replicas import Pair, efficiency
from .tools import Calls

CONCURRENCIES = (1, 32, 256)


@dataclass(slots=True)
class Results:
    """By server; calls also by concurrency, one entry a round; cancellations idle and under load.

    `pipes` are by server and transport, then by the calls in flight; `starts` in seconds. `replicas` are pairs of
    windows.
    """

    calls: dict[tuple[str, int], list[Calls]] = field(default_factory=dict)
    http2: dict[str, Calls] = field(default_factory=dict)
    pipes: dict[str, dict[int, Calls]] = field(default_factory=dict)
    streams: dict[str, Streams] = field(default_factory=dict)
    many: dict[str, Streams] = field(default_factory=dict)
    cancellations: dict[str, tuple[Cancellations, Cancellations]] = field(default_factory=dict)
    listens: dict[str, Streams] = field(default_factory=dict)
    feeds: dict[str, Feed] = field(default_factory=dict)
    hosts: dict[str, Hosted] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    growth: dict[str, Growth] = field(default_factory=dict)
    replicas: list[Pair] = field(default_factory=list)

    def per_second(self, server: str, concurrency: int) -> float:
        """The median of the rounds."""
        return median_rate(self.calls[server, concurrency])

    def processor_us(self, server: str) -> float:
        """Of a call; unlike the rates it hardly depends on what else the machine does."""
        rounds = [self.calls.get((server, concurrency), []) for concurrency in CONCURRENCIES]
        return median(found.processor_us for turns in rounds for found in turns)

    def figures(self) -> dict[str, float]:
        """All that can be compared, by server and measure."""
        return dict((*self._of_calls(), *self._of_streams(), *self._of_the_rest()))

    def _of_calls(self) -> Iterator[tuple[str, float]]:
        for name, concurrency in self.calls:
            yield f"{name}: calls a second at {concurrency}", self.per_second(name, concurrency)
            yield f"{name}: processor a call", self.processor_us(name)
        for name, found in self.http2.items():
            yield f"{name}: HTTP/2 calls a second", found.per_second
            yield f"{name}: HTTP/2 processor a call", found.processor_us
        for name, piped in self.pipes.items():
            for in_flight, found in piped.items():
                yield f"{name}: calls a second with {in_flight} in flight", found.per_second
                yield f"{name}: processor a call with {in_flight} in flight", found.processor_us

    def _of_streams(self) -> Iterator[tuple[str, float]]:
        for name, streams in self.streams.items():
            yield f"{name}: lateness p99 of a streamed message", percentile(streams.lateness, 99)
            yield f"{name}: processor a streamed message", streams.message_us
            yield f"{name}: memory of an open stream", streams.open_bytes / 1000
        for name, streams in self.many.items():
            yield f"{name}: lateness p99 of 10,000 streams", percentile(streams.lateness, 99)
            yield f"{name}: missing messages of 10,000 streams", streams.missing
        for name, listens in self.listens.items():
            yield f"{name}: processor a message of a subscription", listens.message_us

    def _of_the_rest(self) -> Iterator[tuple[str, float]]:
        for name, (_, busy) in self.cancellations.items():
            yield f"{name}: cancellation p99 under load", percentile(busy.total, 99)
        for name, feed in self.feeds.items():
            yield f"{name}: calls beside dashboards", median_rate(feed.beside) / median_rate(feed.without)
        for name, hosted in self.hosts.items():
            yield f"{name}: added by a tool host", added_ms(hosted, min(hosted.local))
        for name, seconds in self.starts.items():
            yield f"{name}: cold start", seconds
        for number in (1, 2) if self.replicas else ():
            measured = [pair[number - 1] for pair in self.replicas]
            yield f"{number} replicas: calls a second", median(found.per_second for found in measured)
            yield f"{number} replicas: processor a call", median(found.all_us for found in measured)
        if self.replicas:
            yield "2 replicas: calls a second, of the ideal", efficiency(self.replicas)
        for name, growth in self.growth.items():
            for what, costs in (("sessions", growth.sessions), ("entries", growth.entries)):
                for count, cost in costs.items():
                    yield f"{name}: processor a call with {count:,} {what}", cost


def median_rate(turns: Sequence[Calls]) -> float:
    """Calls a second."""
    return median(turn.per_second for turn in turns)


def added_ms(hosted: Hosted, clients: int) -> float:
    """What the way to a tool host and back adds to the median call."""
    own, through = (median(turn.p50_ms for turn in turns[clients]) for turns in (hosted.local, hosted.hosted))
    return through - own
