"""Which functions of rules are asked about an opportunity: chosen once for all opportunities that are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from ..views.values import Message
from .clients.series import Kind
from .clients.subject import Subject
from .retention import BOUNDS
from .rules.catalogue import Rule, RuleCatalogue
from .trace import opportunities as each
from .trace.finder import Opportunity
from .trace.rules import RuleFunction

Functions: TypeAlias = Sequence[tuple[RuleFunction, Rule]]


class About(NamedTuple):
    """The choice of functions for an opportunity depends on these.

    `method` counts where any function names it. Of a message also its revision, kind (`rpc`) and transport (None for
    one of the server) count, a `_meta`, and if it is outside of legacy sessions. `client` is the kind of the
    client, `nothing` where none is known; `had` are the remembered kinds of opportunity that it had.
    """

    kind: Kind[Any]
    client: str
    had: frozenset[Kind[Any]]
    method: str | None = None
    revision: str | None = None
    rpc: str | None = None
    transport: str | None = None
    has_meta: bool = True
    is_sessionless: bool = True


class FunctionChoice:
    """Chooses from `functions`, the code of the rules by their ids."""

    def __init__(self, catalogue: RuleCatalogue, functions: Mapping[str, Sequence[RuleFunction]]) -> None:
        self._catalogue = catalogue
        self._functions = functions
        self._chosen: dict[Any, tuple[Functions, Functions]] = {}

    @cached_property
    def _rules(self) -> Functions:
        # 16 kB that a judge without clients does not need.
        found = self._functions
        return [(function, self._catalogue.rules[id]) for id in sorted(found) for function in found[id]]

    @cached_property
    def _methods(self) -> frozenset[str]:
        return frozenset().union(*(function.methods or () for function, _ in self._rules))

    @cached_property
    def _split_by_session(self) -> frozenset[Kind[Any]]:
        kinds = {function.each for function, _ in self._rules if function.sessionless}
        return frozenset(kind for kind in each.OF_MESSAGES if kind in kinds or kind.within in kinds)

    def rules_about(self, subject: Subject) -> Sequence[Rule]:
        """The rules that can be asked about a client, by their ids.

        Nothing is known of who sent what belongs to nobody, so only the form of each message can be judged there.
        """
        known = self._rules if subject.kind != "nothing" else [each for each in self._rules if _is_certain(*each)]
        return list({rule.id: rule for _, rule in known}.values())

    def of(self, opportunity: Opportunity) -> tuple[Functions, Functions]:
        """The functions to ask, the general ones apart."""
        about = self._about(opportunity)
        chosen = self._chosen.get(about)
        if chosen is None:
            if len(self._chosen) >= BOUNDS.views:
                self._chosen.clear()
            kinds = (about[0].within, about[0])
            known = [each for kind in kinds for each in self._rules if each[0].each is kind]
            known = [each for each in known if _is_for(*each, About(*about))]
            chosen = [each for each in known if not each[0].general], [each for each in known if each[0].general]
            self._chosen[about] = chosen
        return chosen

    def _about(self, opportunity: Opportunity) -> Any:
        subject, kind, view, _ = opportunity
        client, had = subject.kind, subject.had
        if kind.about_exchanges:
            method = view.request.method
            return kind, client, had, method if method in self._methods else None
        if not kind.about_messages:
            return kind, client, had
        # A client chooses its methods.
        method = view.method
        if method not in self._methods:
            method = None
        if type(view) is not Message:
            return kind, client, had, method, view.revision
        transport = view.transport if view.received else None
        sessionless = kind in self._split_by_session and view.in_session is None
        return kind, client, had, method, view.revision, view.rpc, transport, view.has_meta, sessionless


def _is_for(function: RuleFunction, rule: Rule, about: About) -> bool:
    if about.client == "nothing" and not _is_certain(function, rule):
        return False
    if function.after is not None and function.after not in about.had:
        return False
    if function.methods is not None and about.method not in function.methods:
        return False
    return not about.kind.about_messages or _is_for_messages(function, rule, about)


def _is_for_messages(function: RuleFunction, rule: Rule, about: About) -> bool:
    if about.transport is not None and about.transport not in rule.transports:
        return False
    if function.rpcs is not None and about.rpc not in function.rpcs:
        return False
    if (function.with_meta and not about.has_meta) or (function.sessionless and not about.is_sessionless):
        return False
    # While the revision is not known, only rules of all revisions can be asked.
    if function.any_revision:
        return True
    return about.revision in rule.revisions if about.revision is not None else rule.is_of_all_revisions


def _is_certain(function: RuleFunction, rule: Rule) -> bool:
    """True if a rule needs nothing but one message, whoever sent it."""
    return rule.kind == "form" and not function.one_process
