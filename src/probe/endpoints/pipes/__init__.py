"""Connections that carry all messages both ways: WebSockets and standard streams."""
