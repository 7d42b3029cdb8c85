"""A tool host: its tools, its connection to a server, and `run` for scripts."""

from __future__ import annotations

import logging
import random
import signal
import ssl
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import trio

from ..core.exceptions import first
from ..wire.jsonrpc import clip
from ..wire.toolhost import RegisterResult
from .connection import LONGEST_S, REGISTER_S, Address, Backoff, ServerConnection, read_registered
from .context import HostRefusedError
from .conversation import Conversation
from .dispatch import MOST_DISPATCHES, HandlerRun
from .tool import HostOffer, Tool, by_name, update

logger = logging.getLogger(__package__)

# After a registration of this length the waits begin at the shortest again.
_HELD_S: Final = LONGEST_S


class Host:
    """A process that offers tools under a name: 1 to 32 letters, digits and hyphens, the first no hyphen.

    `serve` runs all its tasks. `version` is shown on the pages of the server. `jitter` gives numbers from 0 to 1, for
    the waits between attempts to connect. Raises `ValueError` for a wrong name and for two tools of the same name,
    `TypeError` for what is no tool.
    """

    def __init__(
        self,
        name: str,
        tools: Iterable[Tool[..., Any]],
        *,
        version: str | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._offer = HostOffer(name, version, tools)
        self._jitter = jitter
        self._served: ServedHost | None = None

    @property
    def name(self) -> str:
        return self._offer.name

    @property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        return tuple(self._offer.tools.values())

    async def serve(
        self,
        url: str,
        secret: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Offer the tools at `url` (`ws://127.0.0.1:8000/toolhost`, or `wss://…`) until cancelled.

        Starts, after the first registration, with the names by which MCP clients know the tools. The loss of a
        connection cancels its handlers; the next one is made after 0.5 to 30 s. A cancellation cancels the handlers and
        closes the connection; handlers in threads are left behind.

        Raises `HostRefusedError` where trying again would not help, before the first registration: a wrong secret,
        tools that cannot be used, another host with the name; `RuntimeError` if this host is being served already.
        """
        if self._served is not None:
            raise RuntimeError(f"the host {self.name} is being served already")
        address = Address.parse(url)
        _check_secret(secret)
        # Room for every dispatch: `send_nowait` never fails.
        jobs, to_do = trio.open_memory_channel[HandlerRun](MOST_DISPATCHES)
        self._offer.begin()
        served = self._served = ServedHost(self._offer, url, jobs, task_status)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(served.run_dispatches, to_do)
                refused = await served.keep(address, secret, ssl_context, Backoff(self._jitter))
                nursery.cancel_scope.cancel()
        finally:
            self._served = None
        raise refused

    async def replace_tools(self, tools: Iterable[Tool[..., Any]]) -> list[str]:
        """Offer these tools in place of those before; returns the names by which MCP clients know them.

        Without a registration it returns an empty list, and the next one offers them. Running dispatches go on. Raises
        `HostRefusedError` if the server refuses them, and then all is as it was; `TypeError` and `ValueError` as `Host`
        does. After a cancellation the server may have them or not.
        """
        offered = by_name(tools)
        async with self._offer.changing:
            conversation = None if self._served is None else self._served.registered_in
            if conversation is None:
                self._offer.tools = offered
                return []
            return await self._update(conversation, offered)

    async def _update(self, conversation: Conversation, offered: dict[str, Tool[..., Any]]) -> list[str]:
        names: list[str] = []

        def accept(result: Mapping[str, Any]) -> None:
            self._offer.tools = offered
            registered = read_registered(result)
            names.extend(registered.tools if registered is not None else ())

        answer = None
        with trio.move_on_after(REGISTER_S):
            answer = await conversation.ask("host.update", update(offered.values()), accept)
        if answer is None:
            # The server may have the tools; the next registration has them in any case.
            self._offer.tools = offered
        elif answer.error is not None:
            raise HostRefusedError(f"the server refused the tools: {clip(answer.error['message'], 500)}")
        return names


class ServedHost:
    """The state of one `serve`: its present connection, and the dispatches of all its connections."""

    def __init__(
        self,
        offer: HostOffer,
        url: str,
        jobs: trio.MemorySendChannel[HandlerRun],
        task_status: trio.TaskStatus[list[str]],
    ) -> None:
        self.registered_in: Conversation | None = None
        """The conversation with the registration."""
        self._offer = offer
        self._url = url
        self._jobs = jobs
        self._task_status = task_status
        self._conversation = Conversation(self.find, self.start)
        self._ever_registered = False
        self._registered_at = 0.0
        self._running = 0
        self._said = ""

    async def run_dispatches(self, to_do: trio.MemoryReceiveChannel[HandlerRun]) -> None:
        """Own the tasks of all dispatches: a handler may take longer to stop than its connection lasts."""
        async with trio.open_nursery() as nursery:
            async for dispatch in to_do:
                nursery.start_soon(self._run, dispatch)

    async def keep(
        self, address: Address, secret: str, context: ssl.SSLContext | None, backoff: Backoff
    ) -> HostRefusedError:
        """Connect, again and again; returns the reason once the server refuses this host."""
        while True:
            self._conversation = Conversation(self.find, self.start)
            connection = ServerConnection(self._conversation, self._offer, self.registered)
            ended = await connection.run(address, secret, context)
            if self.registered_in is not None and trio.current_time() - self._registered_at >= _HELD_S:
                backoff.reset()
            self.registered_in = None
            # After one registration a refusal is not final: a proxy may cause it.
            if (ended.refused or ended.name_taken) and not self._ever_registered:
                return HostRefusedError(f"{self._url}: {ended.why}")
            self._say(f"{self._url}: {ended.why}; trying again")
            await trio.sleep(backoff.wait_s())

    def find(self, name: str) -> Tool[..., Any] | None:
        return self._offer.tools.get(name)

    def start(self, dispatch: HandlerRun) -> bool:
        if self._running >= MOST_DISPATCHES:
            return False
        self._running += 1
        self._jobs.send_nowait(dispatch)
        return True

    def registered(self, result: RegisterResult) -> None:
        self.registered_in = self._conversation
        self._registered_at = trio.current_time()
        self._said = ""
        logger.info("%s: registered as %s with %s", self._url, result.host, ", ".join(result.tools) or "no tools")
        if not self._ever_registered:
            self._ever_registered = True
            self._task_status.started(result.tools)

    async def _run(self, dispatch: HandlerRun) -> None:
        try:
            await dispatch.run()
        finally:
            self._running -= 1

    def _say(self, what: str) -> None:
        # A lost server would give the same line each half minute.
        logger.log(logging.DEBUG if what == self._said else logging.WARNING, "%s", what)
        self._said = what


def _check_secret(secret: str) -> None:
    if not (secret and secret.isascii() and secret.isprintable() and " " not in secret):
        raise HostRefusedError("the secret must be visible ASCII characters, as the server's is")


def run(host: Host, url: str, secret: str) -> None:
    """Serve a host until SIGINT or SIGTERM, and return.

    The signal cancels handlers and closes the connection; a second one ends the process at once. Without logging of the
    program, the library logs to standard error. Raises `HostRefusedError` where trying again would not help.
    """
    if not logging.getLogger().handlers:
        logging.basicConfig(format="%(message)s", level=logging.WARNING)
        logging.getLogger(__package__).setLevel(logging.INFO)
    try:
        trio.run(_until_signal, host, url, secret)
    except* HostRefusedError as group:
        refused = group
    else:
        return
    raise HostRefusedError(str(first(refused))) from None


async def _until_signal(host: Host, url: str, secret: str) -> None:
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            nursery.start_soon(partial(host.serve, url, secret))
            async for _ in signals:
                break
        nursery.cancel_scope.cancel()
