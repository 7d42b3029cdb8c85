"""The end of cycles of references.

Objects that refer to each other are freed by a pass of the garbage collector over all objects of the process. It stops
the server for a second, so the server makes such passes rare, and an owner that ends cuts the cycles of what it had.
"""

from __future__ import annotations

from msgspec import Struct


def cut(*over: object) -> None:
    """Remove the values of all attributes of objects that nobody uses any more: a later use is an `AttributeError`.

    Its one caller for views and judges is the end of a room (`Room.let_go`), where no use can follow:

    * Requests of the owner and of readers, such as pages, exports, reports and streams, have left. If one stays longer
      than its time, nothing is cut. A later request finds no room.
    * The services of the engine, such as tools, tasks and the followers of the log, have been joined before.
    * Spans and log records of the room are made of entries as the observer takes them, and metrics of the process are
      read from rooms that are open.
    """
    for each in over:
        if isinstance(each, Struct):
            for name in each.__struct_fields__:
                setattr(each, name, None)
        else:
            vars(each).clear()
