"""The names of the probe's tools at the gateway: given by the user, or guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic_core import from_json


class NamingError(ValueError):
    """The given names are not valid, or the gateway does not list them."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names given by the user: a `prefix` of all names, such as "demo_", and single names by our own."""

    prefix: str = ""
    given: Mapping[str, str] = field(default_factory=dict)

    def of(self, ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
        """The name of each of our tools at the gateway, without tools it does not list.

        Names in `given` come first. The others have the given prefix, or the prefix of more than half of the gateway's
        names. Without a prefix a name is found if it is the same, or the only one with ours at its end (`-` counts as
        `_`): an aggregator also lists tools of other servers. Raises `NamingError` if none of the given names is
        listed.
        """
        there = set(theirs)
        known = {own: name for own, name in self.given.items() if own in ours and name in there}
        if self.given and not known:
            raise NamingError(f"the gateway lists none of the tools of --names, but {_some(theirs)}")
        rest = [own for own in ours if own not in self.given]
        if not self.prefix:
            return known | _guessed(rest, [name for name in theirs if name not in known.values()])
        found = {own: self.prefix + own for own in rest if self.prefix + own in there}
        if not found and not known:
            raise NamingError(f"no tool of the gateway is one of ours behind {self.prefix!r}; it lists {_some(theirs)}")
        return known | found


GUESSED: Final = Naming()


def read_names(text: str) -> Mapping[str, str]:
    """Read `{"progress": "do_progress", …}`. Raises `NamingError`."""
    try:
        value = from_json(text)
    except ValueError as error:
        raise NamingError(f"it is no JSON: {error}") from None
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value.values()):
        raise NamingError('it is no object of names: {"progress": "what it is called there", …}')
    return value


def _guessed(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    prefix = _common_prefix(ours, theirs)
    if prefix:
        # A tool without the prefix belongs to another server.
        plain = {_plain(other): other for other in theirs}
        return {name: plain[prefix + _plain(name)] for name in ours if prefix + _plain(name) in plain}
    known = set(theirs)
    found = {name: name for name in ours if name in known}
    for name in ours:
        alike = [other for other in theirs if _plain(other).endswith(_plain(name)) and other not in ours]
        exact = [other for other in alike if _plain(other) == _plain(name)]
        if name not in found and len(exact or alike) == 1:
            found[name] = (exact or alike)[0]
    return found


def _common_prefix(ours: Sequence[str], theirs: Sequence[str]) -> str:
    own = [_plain(name) for name in ours]
    # A name may end as two of ours do: `demo_sync_with_progress` as `progress`, too.
    ends = [{_plain(other).removesuffix(name) for name in own if _plain(other).endswith(name)} for other in theirs]
    alike = [prefixes for prefixes in ends if prefixes]
    common = Counter(prefix for prefixes in alike for prefix in prefixes).most_common(1)
    return common[0][0] if common and 2 * common[0][1] > len(alike) else ""


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])} …" if names else "no tool"
