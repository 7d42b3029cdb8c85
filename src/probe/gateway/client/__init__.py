"""The wire client: it shows what arrives, and when, and hides nothing.

    response.py     HTTP/1.1 responses read strictly, as a machine that is fed bytes
    response2.py    the same of one HTTP/2 stream, over h2
    sse.py          events, comments and ids of an event stream
    records.py      what is kept of an exchange
    target.py       where to connect, and as whom
    streams2.py     many requests on one HTTP/2 connection
    live.py         one exchange while it runs: a task reads and stamps, others wait for what they need
    websocket.py    one WebSocket

No request is ever sent twice, each has a connection of its own, and no redirect is followed. A library for clients
would hide what is looked for here: retries, headers, framing and resets.
"""
