"""`subscriptions/listen`: the open subscriptions, and the notifications for each.

A subscription runs until the client closes its stream, as a cancellation, or the server ends it with a final result.
The request's own trio task owns it, with one ticker for each ticking resource.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import trio

from ...core.subscription import Change, ChangeFate, Filter, Subscription
from ...log.context import Recorder
from ...log.events import LimitReached
from ...wire.jsonrpc import Json, RequestId, notification
from ...wire.v2026.meta import SUBSCRIPTION_ID
from ...wire.v2026.registry import ListenFilter
from ..calls.outcome import Outcome
from ..calls.scope import CallScope, run
from ..catalogue.offers import Offer
from ..catalogue.tool import ListKind
from ..services import Services
from ..streams.stream import Stream

_NOTIFICATIONS = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resource": "notifications/resources/updated",
    "task": "notifications/tasks",
}


@dataclass(slots=True, eq=False)
class Listener:
    """One open subscription. `id` is the id of its request, chosen by the client; `number` is unique in this engine."""

    number: int
    id: RequestId
    selection: str
    has_hosts: bool
    machine: Subscription
    call: CallScope
    stream: Stream
    ended: trio.Event = field(default_factory=trio.Event)


class Listeners:
    """The open subscriptions of one engine."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._limits = services.limits
        self._open: dict[int, Listener] = {}
        # Most changes are of tasks without a subscription, so subscriptions are found by the change.
        self._by_change: dict[Change, dict[int, Listener]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._open)

    def accept(self, asked: ListenFilter, offer: Offer, is_task: Callable[[str], bool], recorder: Recorder) -> Filter:
        """The accepted part of a filter: lists that exist, and up to the limit, uris and task ids that exist."""
        announced, most = offer.announced, self._limits.max_subscriptions
        asked_uris, asked_tasks = dict.fromkeys(asked.resource_subscriptions or ()), dict.fromkeys(asked.task_ids or ())
        if max(len(asked_uris), len(asked_tasks)) > most:
            recorder.append(LimitReached("max_subscriptions", most))
        return Filter(
            tools=bool(asked.tools_list_changed) and "tools" in announced,
            prompts=bool(asked.prompts_list_changed) and "prompts" in announced,
            resources=bool(asked.resources_list_changed) and "resources" in announced,
            uris=tuple(uri for uri in islice(asked_uris, most) if offer.has_resource(uri)),
            tasks=tuple(id for id in islice(asked_tasks, most) if is_task(id)),
        )

    def open(self, id: RequestId, accepted: Filter, offer: Offer, call: CallScope, stream: Stream) -> Listener:
        """Acknowledge a subscription; it gets its notifications from now on.

        "The server MUST send `notifications/subscriptions/acknowledged` as the first message".
        """
        machine = Subscription(accepted, max_queue=self._limits.max_listen_queue)
        self._count += 1
        listener = Listener(self._count, id, offer.selection, offer.has_hosts, machine, call, stream)
        self._open[listener.number] = listener
        for change in machine.changes:
            self._by_change.setdefault(change, {})[listener.number] = listener
        params = {"notifications": _shown(accepted)}
        self._send(listener, "notifications/subscriptions/acknowledged", params, call.recorder)
        return listener

    async def serve(self, listener: Listener, offer: Offer) -> Outcome | None:
        """Send ticks until the subscription ends. Returns its settled outcome, None if the client ended it."""
        resources = [offer.resource(uri) for uri in listener.machine.acknowledged.uris]
        ticking = {item.uri: item.ticks_s for item in resources if item is not None and item.ticks_s is not None}
        try:
            work = partial(self._wait_ended, listener)
            return listener.call.settle(await run(listener.call, work, partial(self._tick_all, listener, ticking)))
        finally:
            self._forget(listener)

    def publish(self, change: Change, params: Callable[[], Json], recorder: Recorder) -> None:
        shared = None
        for listener in self._interested(change):
            shared = params() if shared is None else shared
            self.offer(listener, change, shared, recorder)

    def publish_list(self, changed: ListKind, selection: str, cause: int | None) -> None:
        """`cause` is the entry of the change."""
        for listener in self._interested(Change(changed)):
            if listener.selection == selection:
                self.offer(listener, Change(changed), {}, listener.call.recorder.caused_by(cause))

    def publish_hosted(self) -> None:
        for listener in self._interested(Change("tools")):
            if listener.has_hosts:
                self.offer(listener, Change("tools"), {}, listener.call.recorder.caused_by(None))

    def _interested(self, change: Change) -> list[Listener]:
        return list(self._by_change.get(change, {}).values())

    def _forget(self, listener: Listener) -> None:
        del self._open[listener.number]
        for change in listener.machine.changes:
            others = self._by_change[change]
            del others[listener.number]
            if not others:
                del self._by_change[change]

    def end_all(self) -> None:
        for listener in list(self._open.values()):
            if listener.machine.end():
                listener.ended.set()

    def offer(self, listener: Listener, change: Change, params: Json, recorder: Recorder) -> None:
        queue, most = listener.stream.replay, self._limits.replay_bytes
        # The other half is kept for the largest single message: if that pushed out others, they would be lost.
        verdict = listener.machine.offer(change, len(queue), room=queue.bytes <= most // 2)
        if verdict is ChangeFate.END:
            limit = LimitReached("max_listen_queue", self._limits.max_listen_queue)
            listener.call.recorder.caused_by(recorder.cause).append(limit)
            listener.ended.set()
        elif verdict is ChangeFate.SEND:
            self._send(listener, _NOTIFICATIONS[change.kind], params, recorder)

    def _send(self, listener: Listener, method: str, params: Json, recorder: Recorder) -> None:
        message = notification(method, {**params, "_meta": {SUBSCRIPTION_ID: listener.id}})
        listener.call.emit(listener.stream, message, recorder=recorder)

    async def _wait_ended(self, listener: Listener) -> Json:
        await listener.ended.wait()
        return {"_meta": {SUBSCRIPTION_ID: listener.id}}

    async def _tick_all(self, listener: Listener, ticking: Mapping[str, float]) -> None:
        async with trio.open_nursery() as nursery:
            for uri, every_s in ticking.items():
                nursery.start_soon(self._tick, listener, uri, every_s)
            await trio.sleep_forever()

    async def _tick(self, listener: Listener, uri: str, every_s: float) -> None:
        while True:
            await trio.sleep(self._clock.until_tick(every_s))
            self.offer(listener, Change("resource", uri), {"uri": uri}, listener.call.recorder.caused_by(None))


def _shown(accepted: Filter) -> Json:
    shown = {
        "toolsListChanged": accepted.tools,
        "promptsListChanged": accepted.prompts,
        "resourcesListChanged": accepted.resources,
        "resourceSubscriptions": list(accepted.uris),
        "taskIds": list(accepted.tasks),
    }
    return {member: value for member, value in shown.items() if value}
