"""The wire client: it records each byte that arrives, and when.

Each request is sent once, on a connection of its own, and redirects are not followed.
"""
