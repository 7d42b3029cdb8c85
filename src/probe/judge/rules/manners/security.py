"""Rules `security.*`: what a client should keep to itself."""

from __future__ import annotations

from typing import Final

from ...projection.views import Exchange
from ..predicate import Predicate, judges
from ..transports.heads import query_names

_SECRETS: Final = frozenset({"access_token", "token", "api_key", "apikey", "key", "authorization", "secret"})


@judges("security.session-id-kept")
class SecuritySessionIdKept(Predicate):
    """Keeps the session id out of addresses.

    The server compares before it hides anything. The sentence is of 2025-11-25: of an id in an address alone it must be
    known that its session is of that revision.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        session = exchange.session
        if exchange.session_in_query:
            revisions = (
                {each.revision for each in self.life.sessions.values()} if session is None else {session.revision}
            )
            if revisions == set(self.rule.revisions):
                self.fail(exchange, "the id of a session stands in the address (client or gateway)")
            elif revisions & set(self.rule.revisions) or not revisions:
                self.unclear(exchange, "the id of a session of an unknown revision stands in the address")
        elif session is not None and session.revision in self.rule.revisions:
            self.ok(exchange)


@judges("security.secrets-not-in-query")
class SecuritySecretsNotInQuery(Predicate):
    """Sends no credentials in the query.

    A person gives the address, and some gateways demand it.
    """

    def on_exchange(self, exchange: Exchange) -> None:
        if not exchange.query or not (exchange.is_endpoint or exchange.path.rstrip("/").endswith("/ws")):
            return
        found = _SECRETS & query_names(exchange.query)
        if found:
            self.fail(exchange, f"{' and '.join(sorted(found))} in the query of the address")
        else:
            self.ok(exchange)
