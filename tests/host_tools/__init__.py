"""Tool hosts, as the server sees them."""
