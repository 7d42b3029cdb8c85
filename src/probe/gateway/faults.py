"""The catalogue of faults, read from `catalogue.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["A", "B", "C", "D"]


@dataclass(frozen=True, slots=True)
class Known:
    """One fault. `products` are hints for those who make or run one gateway, by its name."""

    number: int
    name: str
    severity: Severity
    title: str
    hint: str
    products: Mapping[str, str] = field(default_factory=dict)

    def hint_for(self, product: str | None) -> str:
        """Advice for the maker of this product; without a product, for each maker."""
        for name, hint in self.products.items():
            if product is not None and name.lower() in product.lower():
                return f"{name}: {hint}"
        if product is not None or not self.products:
            return self.hint
        return " ".join([self.hint, *(f"({name}: {hint})" for name, hint in self.products.items())])


@cache
def catalogue() -> Mapping[int, Known]:
    """All faults by their number."""
    data = tomllib.loads((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))
    known = [
        Known(item["number"], item["name"], item["severity"], item["title"], item["hint"], item.get("for", {}))
        for item in data["fault"]
    ]
    return {fault.number: fault for fault in known}
