"""Rules about questions of the server, and about tasks, as functions."""
