"""The end of cycles of references.

Objects that refer to each other are freed by a pass of the garbage collector over all objects of the process. It stops
the server for a second, so the server makes such passes rare, and an owner that ends cuts the cycles of what it had.
"""

from __future__ import annotations

from msgspec import Struct


def cut(*over: object) -> None:
    """Remove the values of all attributes of objects that nobody uses any more."""
    for each in over:
        if isinstance(each, Struct):
            for name in each.__struct_fields__:
                setattr(each, name, None)
        else:
            vars(each).clear()
