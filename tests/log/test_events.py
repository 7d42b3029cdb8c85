"""The vocabulary: every event can be told apart, stored and shown."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import iter_modules
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import structs

from probe.log import events
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.wire.jsonrpc import encode

from ..support.shown import as_value

KINDS = get_args(events.Event)


def test_each_kind_of_fact_has_a_name_of_its_own() -> None:
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    assert all(kind.kind.count(".") == 1 for kind in KINDS)


def parts(annotation: Any) -> set[Any]:
    """The types that values of an annotation are made of."""
    if get_origin(annotation) in (ClassVar, Literal):
        return {str}
    if get_origin(annotation) not in (UnionType, Union, tuple):
        return {annotation}
    return set().union(*[parts(each) for each in get_args(annotation) if each is not ...])


def test_no_fact_can_be_a_part_of_a_cycle_as_the_garbage_collector_does_not_look_at_it() -> None:
    held = {part for kind in KINDS for each in get_type_hints(kind).values() for part in parts(each)}
    assert held == {str, bytes, int, float, bool, NoneType}
    assert not [kind for kind in (*KINDS, Entry, Context) if kind.__struct_config__.gc]


def test_every_class_of_the_vocabulary_is_part_of_it() -> None:
    modules = [import_module(f"{events.__name__}.{found.name}") for found in iter_modules(events.__path__)]
    named = [item for module in modules for item in vars(module).values()]
    kinds = {item for item in named if isinstance(item, type) and hasattr(item, "kind")}
    assert kinds - {events.UnknownEvent} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_an_event_is_immutable_documented_and_can_be_shown_as_json(kind: Any) -> None:
    values = {name: b"{}" if kind.__annotations__[name] == "bytes" else "x" for name in kind.__struct_fields__}
    event = kind(**values)
    with pytest.raises(AttributeError):
        setattr(event, kind.__struct_fields__[0], "other")
    context = Context("tcp1", 2, "label", "s3", "c4", "t5", "p6")
    shown = json.loads(encode(as_value(Entry(7, 2.0, 3.0, context, event, 5))))
    expected = {name: {} if value == b"{}" else value for name, value in values.items()}
    place = {"seq": 7, "at": 2.0, "mono": 3.0, "kind": kind.kind, "cause": 5}
    assert shown == {**place, **structs.asdict(context), **expected}
    assert not expected.keys() & {*place, *context.__struct_fields__}, (
        "no field of a fact hides the place or the context"
    )
    assert kind.__doc__
