"""Rules about HTTP, WebSockets and standard streams."""
