"""Rules as functions and as rows of data, by their ids, and members of messages by their JSON pointers (RFC 6901).

    @rule("progress.token-unique", each=REQUEST)
    def own_token(request: Message, trace: Trace) -> Finding | None: ...

    form("meta.protocol-version", each=REQUEST, where=is_modern, member="/params/_meta/…", must=is_text, needed=True)

A rule with two kinds of opportunity has two functions. A function is pure: the same view and the same log give the same
finding, whenever it is asked. The modules of `judge/rules/` register theirs when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from ...views.values import Message
from ...wire.jsonrpc import Rpc
from ..clients.series import Kind
from ..values import shown
from .findings import FAIL, PASSED, WARN, Finding, Hidden
from .trace import Trace

MISSING: Final = object()
"""Stands for a member that a message does not have."""


# Rules name some dozens.
@lru_cache(maxsize=256)
def names_in(pointer: str) -> Sequence[str]:
    """The names in a JSON pointer."""
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


def member(message: Message, pointer: str, *, below: bool = False) -> Any:
    """The value of a member, `MISSING` without it. Raises `Hidden` where it is hidden at or above the pointer.

    With `below` also where something inside of it is hidden, so that its content is not known.
    """
    if below and message.hides(pointer):
        raise Hidden
    return member_of(message, names_in(pointer), pointer)


def member_of(message: Message, names: Sequence[str], pointer: str) -> Any:
    """The value of a member, by a pointer and the names in it; as `member`."""
    hidden = message.hidden
    if hidden and any(path == pointer or pointer.startswith(path + "/") for path, _ in hidden):
        raise Hidden
    value = message.value
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


View = TypeVar("View")
Ask: TypeAlias = Callable[[View, Trace], Finding | None]


class RuleFunction(Struct, frozen=True, eq=False):
    """One function of a rule. `methods` are those of its messages or exchanges, None for all.

    `general`: asked after all others, and leaves to them what they have found (`Trace.found_by_others`). `one_process`:
    accuses only a client that is known to be one. `any_revision`: asked about all messages, also where their revision
    is not known. `rpcs`: about messages of these kinds only. `with_meta`: about those with a `_meta`. `sessionless`:
    about those outside of legacy sessions. `after`: only for clients that had an opportunity of that kind before.
    """

    id: str
    each: Kind[Any]
    ask: Ask[Any]
    methods: frozenset[str] | None = None
    general: bool = False
    one_process: bool = False
    any_revision: bool = False
    rpcs: frozenset[str] | None = None
    with_meta: bool = False
    sessionless: bool = False
    after: Kind[Any] | None = None


_FUNCTIONS: dict[str, list[RuleFunction]] = {}


def registered() -> Mapping[str, Sequence[RuleFunction]]:
    """The functions of the modules that were imported, by rule."""
    return dict(_FUNCTIONS)


def _check_methods(id: str, each: Kind[View], methods: Collection[str] | None) -> None:
    if methods is not None and not methods:
        raise ValueError(f"{id}: `methods` is empty, so the function would never be asked")
    if each.methods is None:
        return
    known = f"the methods of {each!r} are {', '.join(sorted(each.methods))}"
    if methods is None:
        raise ValueError(f"{id}: a function about {each!r} names its methods: {known}")
    if unknown := sorted({*methods} - {*each.methods}):
        raise ValueError(f"{id}: no function about {each!r} is asked about {', '.join(unknown)}: {known}")


def rule(
    id: str,
    *,
    each: Kind[View],
    methods: Collection[str] | None = None,
    general: bool = False,
    one_process: bool = False,
    any_revision: bool = False,
    rpcs: Collection[Rpc] | None = None,
    with_meta: bool = False,
    sessionless: bool = False,
    after: Kind[Any] | None = None,
) -> Callable[[Ask[View]], Ask[View]]:
    """Make a function one of a rule. Raises `ValueError` for methods with which it would never be asked."""
    _check_methods(id, each, methods)

    def register(function: Ask[View]) -> Ask[View]:
        made = RuleFunction(
            id,
            each,
            function,
            None if methods is None else frozenset(methods),
            general,
            one_process,
            any_revision,
            None if rpcs is None else frozenset(rpcs),
            with_meta,
            sessionless,
            after,
        )
        _FUNCTIONS.setdefault(id, []).append(made)
        return function

    return register


def form(
    id: str,
    *,
    each: Kind[Message],
    member: str,
    must: Callable[[Any], bool],
    nearly: Callable[[Any], bool] | None = None,
    needed: bool = False,
    where: Callable[[Message, Trace], bool] | None = None,
    words: Callable[[Any], str] = shown,
    **options: Any,
) -> None:
    """A rule about the form of one member, by its JSON pointer; `options` are those of `rule`.

    `must` is what is right, `nearly` what is only a WARN (5.0 for 5); with `needed` a message without it breaks the
    rule. A member that is hidden is no opportunity, nor is a message without `where`. `words` shows a wrong value.
    """
    names = names_in(member)
    holder = names[-2] if len(names) > 1 else "the message"

    def ask(message: Message, trace: Trace) -> Finding | None:
        if where is not None and not where(message, trace):
            return None
        value = member_of(message, names, member)
        if value is MISSING:
            return FAIL(f"{holder} has no {names[-1]}") if needed else None
        if must(value):
            return PASSED
        return (WARN if nearly is not None and nearly(value) else FAIL)(f"{names[-1]} is {words(value)}")

    in_meta = member.startswith("/params/_meta/") and not needed
    rule(id, each=each, with_meta=in_meta, **options)(ask)
