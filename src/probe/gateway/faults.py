"""The catalogue of faults, read from `catalogue.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["A", "B", "C", "D"]


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do about a fault: `lines` for the configuration of a product, or advice for any gateway without one."""

    product: str | None
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([*([] if self.product is None else [f"{self.product}:"]), *self.lines])


@dataclass(frozen=True, slots=True)
class Advice:
    """The hints for one fault, or for one case of it: in general, and for single products by their names."""

    general: str
    products: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def hints(self, named: str | None) -> list[Hint]:
        """The hints for the products in `named`; where none of them is known, the general one.

        Without a name the general one comes first, and each product after it.
        """
        of_products = [Hint(product, lines) for product, lines in self.products.items() if _is_in(product, named)]
        return of_products if named is not None and of_products else [Hint(None, (self.general,)), *of_products]


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One fault."""

    number: int
    name: str
    severity: Severity
    title: str
    advice: Advice
    cases: Mapping[str, Advice] = field(default_factory=dict)

    def hints(self, named: str | None, cases: Sequence[str] = ()) -> tuple[Hint, ...]:
        """The hints for the gateway `named` so in its responses, or None.

        They are hints for `cases` of the fault, such as "merged", or for the whole fault without cases.
        """
        advice = [self.cases[case] for case in cases] or [self.advice]
        return tuple(hint for each in advice for hint in each.hints(named))


def _is_in(product: str, named: str | None) -> bool:
    return named is None or any(name.lower() in named.lower() for name in (product, *_other_names().get(product, ())))


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))


def _other_names() -> Mapping[str, Sequence[str]]:
    names: Mapping[str, Sequence[str]] = _data()["products"]
    return names


def _advice(item: Mapping[str, Any]) -> Advice:
    lines = {name: (one,) if isinstance(one, str) else tuple(one) for name, one in item.get("for", {}).items()}
    return Advice(item["hint"], lines)


@cache
def catalogue() -> Mapping[int, KnownFault]:
    """All faults by their number."""
    known = [
        KnownFault(
            item["number"],
            item["name"],
            item["severity"],
            item["title"],
            _advice(item),
            {name: _advice(case) for name, case in item.get("cases", {}).items()},
        )
        for item in _data()["fault"]
    ]
    return {fault.number: fault for fault in known}
