"""A kind of opportunity: `opportunities.py` has all of them."""

from __future__ import annotations

from typing import Generic, TypeVar

View = TypeVar("View")


class Kind(Generic[View]):
    """A kind of opportunity, by its name; `View` is what a rule gets.

    Of one that is `about_messages` a rule is asked only at the revisions and transports that it is for. Of one that is
    `about_exchanges` its `methods` are those of HTTP.
    """

    __slots__ = ("about_exchanges", "about_messages", "name")

    def __init__(self, name: str, *, about_messages: bool = False, about_exchanges: bool = False) -> None:
        self.name = name
        self.about_messages = about_messages
        self.about_exchanges = about_exchanges

    def __repr__(self) -> str:
        """Its name."""
        return self.name
