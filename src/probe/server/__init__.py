"""The server's side of connections: the listener, the endpoints behind it, and forwarded logs."""
