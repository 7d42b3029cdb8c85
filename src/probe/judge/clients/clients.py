"""The clients of a judge, and the windows in which entries of theirs are missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ...log.bounded import Newest
from ...views.clients import Client
from .series import ALWAYS
from .subject import Subject


class Clients:
    """At most `most` of them: the one that was seen longest ago makes room, and `forgotten` counts those.

    They live on from one log to the next, found by their labels. `missing` are the lists of windows whose last one is
    still open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._subjects: Newest[tuple[str, str], Subject] = Newest(most)
        self._places = count()
        self.forgotten = 0
        self.begin()

    def begin(self) -> None:
        """A log begins: its clients have not ended, and nothing of it is missing."""
        self.draining: float | None = None
        self._gaps: list[tuple[float, float]] = []
        self.missing: list[list[tuple[float, float]]] = []
        # The one that was seen last, and most often is seen next.
        self._last: tuple[Client, Subject] | None = None
        for subject in self._subjects.values():
            subject.ends = []
            subject.draining = None

    def of(self, client: Client) -> Subject:
        """The subject of a client, which is seen now."""
        last = self._last
        if last is not None and last[0] is client:
            return last[1]
        key = client.kind, client.label
        subject = self._subjects.get(key)
        if subject is None:
            label = "unattributed" if client.kind == "nothing" else client.label
            subject = Subject(label, client.kind, next(self._places), list(self._gaps))
            subject.draining = self.draining
            if len(self._subjects) >= self._most and client.kind != "nothing":
                self.forgotten += 1
        self._subjects.store(key, subject)
        self._last = client, subject
        return subject

    @property
    def subjects(self) -> Sequence[Subject]:
        """All of them, in the order in which they were first seen."""
        return sorted(self._subjects.values(), key=lambda subject: subject.place)

    def drain(self, at: float) -> None:
        """The server begins to end, and cuts off those that have not ended before."""
        self.draining = at
        for subject in self._subjects.values():
            if not subject.ends:
                subject.draining = at

    def miss(self, since: float) -> None:
        """Entries are missing from here on."""
        if not self.missing:
            self.missing = [self._gaps, *(subject.gaps for subject in self._subjects.values())]
            for gaps in self.missing:
                gaps.append((since, ALWAYS))

    def go_on(self, at: float) -> None:
        """Nothing is missing from here on."""
        for gaps in self.missing:
            gaps[-1] = gaps[-1][0], at
        self.missing = []
