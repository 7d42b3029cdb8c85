"""Rules about questions of the server, and about tasks."""
