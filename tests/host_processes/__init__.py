"""Tool hosts end to end: client, server and host are processes, what joins them are sockets, and each may be killed."""
