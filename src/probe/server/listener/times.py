"""Times for the end of a connection and for checks of a silent peer, in seconds."""

from __future__ import annotations

LOOK_S = 0.25
"""The interval of checks whether a peer has left, if it has sent too much ahead and is not read."""

LINGER_S = 2.0
"""The time for a peer that was still sending to read the response and close; closing at once would reset it."""

FLUSH_S = 0.5
"""The time to send queued bytes when the connection has to end; a last frame is lost only if the peer does not read.

This also bounds shutdown, whatever the write timeout is.
"""

LAST_WORDS_S = 0.25
"""The time for calls to end after the cancellation of their connection, so that open requests get their 503.

This bounds shutdown too.
"""
