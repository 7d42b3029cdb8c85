"""How long the end of a connection may take, and how often a silent peer is looked at; in seconds."""

from __future__ import annotations

LOOK_S = 0.25
"""How often a peer that is not read from, because it has sent too much ahead, is looked at for having left."""

LINGER_S = 2.0
"""How long a peer that was still sending may take to read the response and close; closing at once would reset it."""

FLUSH_S = 0.5
"""How long what is queued may take to leave when the connection has to end: a last frame is lost only by a peer that
does not read. This is also what bounds shutdown, whatever the write timeout is."""

LAST_WORDS_S = 0.25
"""How long calls that are cancelled with their connection may take to end, so that what is not answered gets its 503.
This, too, bounds shutdown."""
