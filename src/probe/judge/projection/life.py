"""All that is known of one subject of the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ...log.bounded import Newest
from .dialogue import Dialogue
from .listings import Lists
from .views import Era, Pipe, Scope, Sent, Session, Transport

_LISTS: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"}
)
_USES: Final = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})


@dataclass(slots=True, eq=False)
class Life:
    """All that is known of one subject, over its sessions, connections and processes.

    `kind` says what makes it one: the `label` that somebody gave it, a legacy `session`, the connection of a `pipe`, a
    modern client by its name and address (`client`), or `nothing`: what could not be attributed to anybody. `whole`
    says that no entry of it can be missing so far; `several` says why more than one client may speak under its name.
    `said` is the name and the version that its first message with them had. `agents` counts its `User-Agent` headers.
    `suspended` is when a limit of the server, or its end, last disturbed it. `listings` and `uses` count its requests
    for lists, and those that use an item of one. `lists` are those that were delivered to it, in all its sessions and
    outside of any. `dialogue` is what the server asked of it, and told it of its tasks.
    """

    label: str
    kind: Literal["label", "session", "pipe", "client", "nothing"]
    began: float
    whole: bool
    scope: Scope
    several: str | None = None
    said: tuple[str, Any] | None = None
    suspended: float | None = None
    draining: bool = False
    last_act: float = 0.0
    last_act_seq: int = 0
    last_request: float = 0.0
    sessions: Newest[str, Session] = field(default_factory=lambda: Newest(1_000))
    pipes: Newest[str, Pipe] = field(default_factory=lambda: Newest(1_000))
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)
    revisions: set[str] = field(default_factory=set)
    transports: set[Transport] = field(default_factory=set)
    eras: set[Era] = field(default_factory=set)
    capabilities: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    listings: int = 0
    uses: int = 0
    exchanges: int = 0
    lists: Lists = field(default_factory=Lists)
    dialogue: Dialogue = field(default_factory=Dialogue)

    @property
    def is_one_process(self) -> bool:
        """Whether everything of it comes from one client, as far as anybody can know."""
        return self.kind in ("label", "session", "pipe") and self.several is None

    def act(self, mono: float, seq: int, session: Session | None, pipe: Pipe | None) -> None:
        """Note that the client did something, in a session and on a pipe where it has these."""
        self.last_act, self.last_act_seq = mono, seq
        if session is not None:
            session.last_act = mono
        if pipe is not None:
            pipe.last_act = mono

    def count_request(self, method: str | None) -> None:
        """Count one request."""
        self.requests += 1
        self.listings += method in _LISTS
        self.uses += method in _USES

    def change_list(self, sent: Sent) -> None:
        """Note that a list has changed, as the client was told by a message."""
        if sent.method is not None and sent.delivered is not None:
            for lists in (self.lists, *(() if sent.session is None else (sent.session.lists,))):
                lists.change(sent.method, sent.delivered)
