"""Rules about lists, and how considerately a client asks."""
