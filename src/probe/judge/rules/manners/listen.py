"""Rules `listen.*`: changes of lists, and subscriptions to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ....log.bounded import Newest
from ...projection.listings import CHANGES, LISTS
from ...projection.views import Message, Scope, Sent, members
from ..predicate import Predicate, Wait, judges
from .requests import digest

_USES: Final = {
    "tools/call": ("tools/list",),
    "prompts/get": ("prompts/list",),
    "resources/read": ("resources/list", "resources/templates/list"),
}
_MOST: Final = 1_000
_FLAGS: Final = frozenset({"toolsListChanged", "promptsListChanged", "resourcesListChanged"})
# The tasks extension adds `taskIds`.
_NAMES: Final = frozenset({"resourceSubscriptions", "taskIds"})
_ABOUT_LISTS: Final = re.compile(r"tool|prompt|resource|listchanged")
_TASKS: Final = "io.modelcontextprotocol/tasks"
_REPEATS: Final = 3


class _Change:
    """A list that has changed, as one session or connection was told. `uses` are what it used of the list since."""

    def __init__(self, told: Sent) -> None:
        self.told = told
        self.at = told.delivered or told.at
        self.used: Message | None = None
        self.traffic = False
        self.overdue = False
        self.wait: Wait | None = None


@judges("listen.relists")
class ListenRelists(Predicate):
    """Lists again when a list has changed.

    A lazy client lists at its next turn; so a use of the list has to come first, or five minutes with traffic.
    """

    methods = frozenset({*LISTS, *_USES, *CHANGES})
    one_process = True

    def setup(self) -> None:
        self._asked: Newest[tuple[Scope, str], None] = Newest(_MOST)
        self._changes: Newest[tuple[Scope, str], _Change] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        method = message.method or ""
        if method in LISTS:
            self._asked.store((message.scope, method), None)
            # A client with several sessions needs to ask in one of them.
            for key in [key for key in self._changes if key[1] == method]:
                self._take(key, message)
        elif self._changes:
            for used in _USES[method]:
                self._use((message.scope, used), message)

    def on_message(self, message: Message) -> None:
        if not self._changes or message.method in (None, "ping"):
            return
        for (scope, method), change in self._changes.items():
            if scope is message.scope and message.method != method and message.at - change.at > self.allowances.alive_s:
                change.traffic = True

    def on_told(self, notification: Sent) -> None:
        scope = self._scope_of(notification)
        for method in CHANGES.get(notification.method or "", ()):
            key = (scope, method)
            if key not in self._asked:
                continue
            change = _Change(notification)
            before = self._changes.store(key, change)
            if before is not None and before.wait is not None:
                before.wait.cancel()
            due = change.at + self.allowances.alive_s
            change.wait = self.give_time(due, self._look, key, change, of=notification)

    def on_gap(self) -> None:
        self._changes.clear()

    def is_decided_at_end(self, wait: Wait) -> bool:
        key, change = wait.arguments
        return self._changes.get(key) is not change

    def _take(self, key: tuple[Scope, str], message: Message) -> None:
        change = self._changes.pop(key)
        if change.wait is not None:
            change.wait.cancel()
        self.ok(change.told, message.seq)

    def _use(self, key: tuple[Scope, str], message: Message) -> None:
        change = self._changes.get(key)
        if change is None or message.began - change.at < self.allowances.settle_s:
            return
        change.used = message
        if change.overdue:
            self._blame(key, change)

    def _look(self, key: tuple[Scope, str], change: _Change) -> None:
        """Thirty seconds after the notification."""
        if self._changes.get(key) is not change:
            return
        change.overdue = True
        if change.used is not None:
            self._blame(key, change)
        else:
            due = change.at + self.allowances.person_s
            change.wait = self.give_time(due, self._look_again, key, change, of=change.told)
            change.wait.since = change.at

    def _look_again(self, key: tuple[Scope, str], change: _Change) -> None:
        """Five minutes after the notification; without traffic it may still come."""
        if self._changes.get(key) is change and change.traffic:
            self._blame(key, change)

    def _blame(self, key: tuple[Scope, str], change: _Change) -> None:
        del self._changes[key]
        if change.wait is not None:
            change.wait.cancel()
        if change.used is None:
            self.warn(change.told, f"{change.told.method} came, and no {key[1]} followed in five minutes")
        else:
            remark = f"{change.told.method} came, and {change.used.method} without {key[1]} before it"
            self.warn(change.told, remark, change.used.seq)

    def _scope_of(self, sent: Sent) -> Scope:
        if sent.session is not None:
            return sent.session.scope
        return self.life.scope if sent.pipe is None else sent.pipe.scope


@judges("listen.filter-known")
class ListenFilterKnown(Predicate):
    """Asks in subscriptions/listen for notifications that exist. Members of extensions are free."""

    methods = frozenset({"subscriptions/listen"})

    def on_request(self, message: Message) -> None:
        wanted = message.params.get("notifications")
        if not isinstance(wanted, dict):
            return
        declared = members(members(message.meta.get("io.modelcontextprotocol/clientCapabilities")).get("extensions"))
        wrong = [_wrong(name, value, bool(declared.keys() - {_TASKS})) for name, value in wanted.items()]
        remarks = [remark for remark in wrong if remark is not None]
        if remarks:
            self.fail(message, "; ".join(remarks[:5]))
        else:
            self.ok(message)


def _wrong(name: str, value: Any, has_extensions: bool) -> str | None:
    if name in _FLAGS:
        return None if isinstance(value, bool) else f"{name} is no boolean"
    if name in _NAMES:
        strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return None if strings else f"{name} is no list of strings"
    plain = re.sub(r"[^a-z]", "", name.casefold())
    known = has_extensions or not _ABOUT_LISTS.search(plain)
    return None if known else f"{name[:100]} is no member of the filter"


@judges("listen.partly-granted")
class ListenPartlyGranted(Predicate):
    """Does not repeat a subscription that was granted in part.

    A stream that others end may be opened again, so only repeats beside one that is still open, or that the client has
    left itself, are counted.
    """

    methods = frozenset({"subscriptions/listen", "notifications/subscriptions/acknowledged"})

    def setup(self) -> None:
        # By filter: the newest subscription, and the times of those after the first that lacked something.
        self._partly: Newest[tuple[Scope, bytes], tuple[Message, list[float]]] = Newest(_MOST)

    def on_request(self, message: Message) -> None:
        key = (message.scope, _filter(message.params.get("notifications")))
        known = self._partly.get(key)
        if known is None:
            return
        before, times = known
        stream = before.stream
        by = "" if stream is None or not stream.readers else stream.readers[-1].by
        if by in ("", "client"):
            times[:] = [*(at for at in times if message.at - at <= self.allowances.repeat_s), message.at]
        self._partly[key] = (message, times)
        if len(times) > _REPEATS:
            self.warn(message, "asked again and again for what the server had granted in part only", before.seq)

    def on_told(self, notification: Sent) -> None:
        request = notification.request
        if notification.method != "notifications/subscriptions/acknowledged" or request is None:
            return
        wanted = members(request.params.get("notifications"))
        granted = members(notification.params.get("notifications"))
        key = (request.scope, _filter(wanted))
        if _is_granted(wanted, granted) or key in self._partly:
            return
        times: list[float] = []
        self._partly.store(key, (request, times))
        self.give_time(self.now + self.allowances.repeat_s, self._look, notification, times, of=notification)

    def _look(self, notification: Sent, times: list[float]) -> None:
        if len(times) <= _REPEATS and self.life.last_act > (notification.delivered or 0):
            self.ok(notification)


def _filter(wanted: Any) -> bytes:
    """A digest that tells a filter from others; the filter itself can be as long as a message."""
    return digest(wanted)


def _is_granted(wanted: Mapping[str, Any], granted: Mapping[str, Any]) -> bool:
    """Whether all that was asked for was granted; false and an empty list ask for nothing."""
    for name, value in wanted.items():
        if isinstance(value, list):
            given = granted.get(name)
            if any(each not in (given if isinstance(given, list) else ()) for each in value):
                return False
        elif value and granted.get(name) != value:
            return False
    return True
