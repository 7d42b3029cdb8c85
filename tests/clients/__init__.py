"""Independent clients: what the official SDKs see of this server."""
