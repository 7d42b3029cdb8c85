"""A trial: what one step did on one way, and the entries of the log about it. A run is all of them, as a file of lines.

{"kind":"gateway-run","version":3,…}   first: the program, the time, both addresses, the profile
{"kind":"trial",…}                     one trial
{"kind":"end","trials":…}              last: the file is not cut off
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pydantic_core import from_json

from ..wire.jsonrpc import Json, encode
from .behind import Behind
from .client.records import ClientExchange, exchange_from
from .side import Way

VERSION: Final = 3
_HEAD: Final = ("program", "started_at", "direct", "through", "profile", "api", "log", "names", "partial", "others")


class RunError(ValueError):
    """The file is no run; the message names the line."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One step, once, on one way.

    `mark` begins its block of marks (`marks.py`); 0 for a skipped step. `moments` are actions of the client, such as
    "closed", in seconds since the epoch. `behind` are its entries in the log. `skipped` is the reason why the step was
    not done.
    """

    step: str
    way: Way
    turn: int
    mark: int
    exchanges: tuple[ClientExchange, ...]
    moments: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    behind: Behind = field(default_factory=lambda: Behind(()))
    skipped: str = ""

    def __getitem__(self, name: str) -> ClientExchange:
        for item in self.exchanges:
            if item.name == name:
                return item
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(item.name == name for item in self.exchanges)


@dataclass(frozen=True, slots=True)
class GatewayRun:
    """All trials of a run, with the offers of both ways. `log` identifies the run of the probe at `api`.

    `names` are the gateway's names of the probe's tools. `partial` is the reason why steps are missing, empty for a
    complete run. `others` is true if another run used the probe meanwhile.
    """

    program: str
    started_at: float
    direct: str
    through: str
    profile: str
    trials: tuple[Trial, ...]
    offers: Mapping[str, tuple[str, ...]]
    api: str = ""
    log: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    partial: str = ""
    others: bool = False

    def of(self, step: str, way: Way) -> list[Trial]:
        return [trial for trial in self.trials if trial.step == step and trial.way == way]


def dump(run: GatewayRun) -> Iterator[bytes]:
    """The lines of a file."""
    head = {
        "kind": "gateway-run",
        "version": VERSION,
        **{name: getattr(run, name) for name in _HEAD},
        "offers": {way: sorted(offers) for way, offers in run.offers.items()},
    }
    yield encode(head) + b"\n"
    for trial in run.trials:
        values = {name: getattr(trial, name) for name in ("step", "way", "turn", "mark", "skipped")}
        values |= {"moments": dict(trial.moments), "facts": dict(trial.facts)}
        values |= {"exchanges": [asdict(item) for item in trial.exchanges], "behind": list(trial.behind.entries)}
        yield encode({"kind": "trial", **values}) + b"\n"
    yield encode({"kind": "end", "trials": len(run.trials)}) + b"\n"


def load(lines: Iterable[bytes]) -> GatewayRun:
    """Read what `dump` wrote. Raises `RunError`."""
    head: Json | None = None
    trials: list[Trial] = []
    ended = False
    for number, line in enumerate(lines, 1):
        value = _object(number, line)
        try:
            if head is None:
                head = _head(number, value)
            elif value["kind"] == "trial":
                trials.append(_trial(value))
            else:
                ended = value["trials"] == len(trials)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"line {number} is no part of a run: {error}") from None
    if head is None or not ended:
        raise RunError("the file is cut off: its last line is missing")
    offers = {way: tuple(names) for way, names in head.pop("offers").items()}
    return GatewayRun(**head, trials=tuple(trials), offers=offers)


def _object(number: int, line: bytes) -> Json:
    try:
        value = from_json(line)
    except ValueError as error:
        raise RunError(f"line {number} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RunError(f"line {number} is no object")
    return value


def _head(number: int, value: Json) -> Json:
    if value.pop("kind", None) != "gateway-run" or value.pop("version", None) != VERSION:
        raise RunError(f'line {number}: a run begins with {{"kind":"gateway-run","version":{VERSION}, …}}')
    return {name: value[name] for name in (*_HEAD, "offers")}


def _trial(value: Json) -> Trial:
    return Trial(
        value["step"],
        value["way"],
        value["turn"],
        value["mark"],
        tuple(map(exchange_from, value["exchanges"])),
        value["moments"],
        value["facts"],
        Behind(tuple(value["behind"])),
        value["skipped"],
    )
