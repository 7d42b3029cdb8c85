"""HTTP/1.1 on httptools: a connection in one task."""
