"""The door of WebSockets for programs that know a secret of this server: tool hosts, and processes that report.

A handshake is judged before the upgrade, so that a program learns by an HTTP status what is wrong with it.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass, field

from ..core.inbound import HostPolicy, HttpHead
from ..wire.errors import Rejection
from .problem_details import RefusedError


@dataclass(frozen=True, slots=True)
class SecretDoor:
    """The credentials that a program has to bring: the secret of a setting, and the subprotocol. `who` is its name."""

    secret: str = field(repr=False)
    setting: str
    protocol: str
    who: str

    def judge(self, head: HttpHead, policy: HostPolicy, subprotocols: Collection[str]) -> None:
        """Raise `RefusedError` for whoever may not come in."""
        try:
            policy.check(head)
            origin, credentials = head.get("origin"), head.get("authorization")
        except Rejection as rejection:
            raise RefusedError(rejection.refusal.status, rejection.message) from None
        if origin is not None:
            raise RefusedError(403, f"a request with Origin comes from a web page, and no web page is a {self.who}")
        if not self._knows_secret(credentials):
            # RFC 6750, section 3.
            challenge = [(b"www-authenticate", f'Bearer realm="{self.who.replace(" ", "")}"'.encode())]
            why = f"the secret is missing or not this server's ({self.setting}): Authorization is Bearer and the secret"
            raise RefusedError(401, why, challenge)
        if self.protocol not in subprotocols:
            raise RefusedError(400, f'Sec-WebSocket-Protocol must offer "{self.protocol}"')

    def _knows_secret(self, credentials: str | None) -> bool:
        scheme, _, given = (credentials or "").partition(" ")
        same = hmac.compare_digest(given.strip(" ").encode(), self.secret.encode())
        return same and scheme.lower() == "bearer"
