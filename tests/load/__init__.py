"""The load session: that it runs, and that it would notice what it looks for."""
