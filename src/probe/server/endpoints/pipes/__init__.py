"""The wires of connections that carry all messages both ways: WebSockets and standard streams."""
