"""The wire client: it records each byte that arrives, and when.

    response.py     responses of HTTP/1.1 and HTTP/2 read strictly, and the events in them; no sockets
    records.py      the record of an exchange
    live.py         where to connect, one exchange while it runs, and many at once on one HTTP/2 connection
    websocket.py    one WebSocket

Each request is sent once, on a connection of its own, and redirects are not followed.
"""
