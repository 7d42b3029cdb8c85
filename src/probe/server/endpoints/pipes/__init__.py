"""Wires that carry all messages of a connection in both directions: WebSockets and standard streams."""
